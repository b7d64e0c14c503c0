-- Leases a run of spaced tokens, if the one before is over. A key goes on from a
-- bucket, and a bucket from it: small bursts are leased in runs too.
local version, cost, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local interval, pause, overlap = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local gap, run_max, life_min = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local wanted, least, step = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local class, node = tonumber(ARGV[13]), ARGV[14]

local clock = open(KEYS[1])
local state = read(KEYS[2])
local refusal = barred(clock, state, version, cost)
if refusal then
  return refusal
end
local now = clock.now

local ends_at, tokens, not_before = clock.start + longest, 0, 0
if state.kind == 'runs' then
  tokens = number(state.tokens)
  if number(state.epoch) == clock.epoch then
    ends_at = number(state.ends_at)
  else
    ends_at = math.max(ends_at, number(state.ends_at))
  end
  -- What is left of the pause under other numbers is left in tokens.
  local old, before = number(state.interval), number(state.overlap)
  not_before = number(state.not_before)
  local left = math.max(ends_at + old * least - before, not_before) - now
  if (old ~= interval or before ~= overlap) and old > 0 and left > 0 then
    not_before = now + math.ceil(left * interval / old)
  end
elseif state.kind == 'bucket' and number(state.epoch) == clock.epoch then
  ends_at = now + number(state.life)
elseif state.kind then
  ends_at = math.max(ends_at, now + longest)
end

-- Who was refused comes back in the order in which he was, the urgent first: the
-- one behind may take what those before him have not taken by then.
local QUEUE_MAX = 32
local queue, place = {}, nil
for rank, name in string.gmatch(state.waiting or '', '(%d):(%S+)') do
  if name ~= node then
    queue[#queue + 1] = { tonumber(rank), name }
  elseif tonumber(rank) == class then
    queue[#queue + 1] = { class, node }
    place = #queue
  end
end
if not place then
  place = 1
  while queue[place] and queue[place][1] <= class do
    place = place + 1
  end
end

-- Those to whom something is owed come first; the others wait for them as long
-- as a lease lives at least.
local mine, others = owed_to(clock, state, class), owed_below(clock, state, class)
local is_due = mine >= least
local waits_for_them = 0
if not is_due and others >= least then
  waits_for_them = life_min
end

local more = {}
local function save(free_at)
  local waiting = {}
  for i = 1, math.min(#queue, QUEUE_MAX) do
    waiting[i] = queue[i][1] .. ':' .. queue[i][2]
  end
  local fields = {
    'kind', 'runs', 'version', ARGV[1], 'cost', ARGV[2], 'interval', ARGV[4],
    'overlap', ARGV[6], 'ends_at', ends_at, 'not_before', not_before, 'tokens', tokens,
    'waiting', table.concat(waiting, ' '),
  }
  for _, value in ipairs(more) do
    fields[#fields + 1] = value
  end
  write(KEYS[2], clock, state, free_at, fields)
end

local free_at = math.max(ends_at + pause - overlap, not_before)
local mine_at = free_at + waits_for_them + step * (place - 1)
if is_due then
  mine_at = free_at
end
if now < mine_at then
  if not queue[place] or queue[place][2] ~= node then
    table.insert(queue, place, { class, node })
  end
  hear(clock, state, math.ceil(mine_at - now), more)
  save(free_at)
  return reply(clock, 'refused', math.ceil(mine_at - now))
end
-- Runs grow while anybody was refused since the last one began.
local grown = 0
if #queue > 0 then
  grown = tokens * 2
end
-- Those who did not come in time have lost their place.
local is_queued = queue[place] and queue[place][2] == node
if is_due then
  if is_queued then
    table.remove(queue, place)
  end
else
  for _ = 1, is_queued and place or place - 1 do
    table.remove(queue, 1)
  end
end
local before = tokens
if is_due then
  tokens = math.max(math.min(wanted, mine), least)
else
  tokens = math.max(math.min(math.max(wanted, grown), run_max), least)
end
local life = math.floor(life_min + gap * (tokens - least))
-- A node's clock may run slow by a thousandth.
ends_at, not_before = now + math.ceil(life * 1.001) + 1, 0
local granted = tokens
if is_due then
  -- What is paid back in between does not make the others' runs shorter.
  tokens = math.max(tokens, before)
end
local handed = earn(clock, state, class, granted, more)
save(ends_at + pause)
return leased(clock, granted, life, handed)
