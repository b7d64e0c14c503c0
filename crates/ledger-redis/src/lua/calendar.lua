-- Leases tokens of a calendar window. The caller says where the boundaries of
-- this period and the next are; the ledger's wall clock picks.
local version, cost = tonumber(ARGV[1]), tonumber(ARGV[2])
local count, kept, largest = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local class, wanted, at_least = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local queue_max, takes = tonumber(ARGV[10]), tonumber(ARGV[11])
local is_long, quiet = ARGV[12] == '1', tonumber(ARGV[13])
local life_max, life_min = tonumber(ARGV[14]), tonumber(ARGV[15])

local clock = open(KEYS[1])
local state = read(KEYS[2])
local refusal = barred(clock, state, version, cost)
if refusal then
  return refusal
end
local now, wall = clock.now, clock.wall

local from, to = tonumber(ARGV[16]), tonumber(ARGV[17])
if wall >= to then
  from, to = tonumber(ARGV[18]), tonumber(ARGV[19])
end
if wall < from or wall >= to then
  return reply(clock, 'time')
end
if is_long and now < clock.start + quiet then
  return reply(clock, 'refused', clock.start + quiet - now)
end

-- The last windows that were used; every window before those is closed, so that
-- a clock that steps back opens none that was spent.
local SPANS_MAX = 4
local spans, closed, used = {}, number(state.closed_before), 0
if state.kind == 'calendar' then
  for start, stop, tokens in string.gmatch(state.spans or '', '(%d+)-(%d+):(%d+)') do
    start, stop, tokens = tonumber(start), tonumber(stop), tonumber(tokens)
    if start <= wall and wall < stop then
      used = used + tokens
    else
      spans[#spans + 1] = { start, stop, tokens }
    end
  end
elseif state.kind and number(state.epoch) == clock.epoch then
  used = math.min(count, used_by_another(clock, state))
end
local is_unknown = number(state.epoch) ~= clock.epoch or not state.kind
if not is_long and is_unknown and from <= clock.start_wall then
  used = math.max(used, count)
end
if wall < closed then
  return reply(clock, 'refused', closed - wall)
end

local function save(more)
  spans[#spans + 1] = { from, to, used }
  table.sort(spans, function(a, b) return a[1] < b[1] end)
  while #spans > SPANS_MAX do
    closed = math.max(closed, spans[1][2])
    table.remove(spans, 1)
  end
  local parts = {}
  for i, span in ipairs(spans) do
    parts[i] = whole(span[1]) .. '-' .. whole(span[2]) .. ':' .. whole(span[3])
  end
  local fields = {
    'kind', 'calendar', 'version', ARGV[1], 'cost', ARGV[2], 'count', ARGV[4],
    'spans', table.concat(parts, ' '), 'closed_before', closed, 'used', used,
  }
  for _, value in ipairs(more) do
    fields[#fields + 1] = value
  end
  write(KEYS[2], clock, state, now + to - wall, fields)
end

-- No lease lives across the boundary.
local left = to - wall
local life = math.min(life_max, left - math.floor(left / 1000) - 1)
if life < life_min then
  return reply(clock, 'refused', left)
end
local floor = math.floor(kept * left / (to - from))
floor = math.min(floor, math.max(0, count - largest) * 1000)
local free = math.max(0, count - used)
-- What is owed to those who ask is theirs; what is owed to others stays.
local mine, others = owed_to(clock, state, class), owed_below(clock, state, class)
if mine >= at_least then
  floor, others, wanted = 0, 0, math.min(wanted, mine)
end
local most = math.max(0, count - 2 * largest) * 1000
local kept_for_others = math.max(0, math.min(others * 1000, most - floor))
if at_least * 1000 + floor + kept_for_others > free * 1000 then
  local more = {}
  if at_least * 1000 + floor <= free * 1000 then
    hear(clock, state, OWED_PAUSE, more)
    save(more)
    return reply(clock, 'refused', OWED_PAUSE)
  end
  if floor > 0 then
    -- As much is kept as there is time left: it melts.
    local covered = math.max(0, free - at_least) * 1000 * (to - from) / kept
    local pause = math.ceil(math.max(0, left - covered)) + 1
    hear(clock, state, pause, more)
    save(more)
    return reply(clock, 'refused', pause)
  end
  local at = promise(state, class, now + left, takes, queue_max)
  more = { 'promised_' .. class, at }
  hear(clock, state, at - now, more)
  save(more)
  return reply(clock, 'refused', at - now)
end
local room = math.floor(free - (floor + kept_for_others) / 1000)
local tokens = math.max(at_least, math.min(wanted, room))
used = used + tokens
local more = {}
local handed = earn(clock, state, class, tokens, more)
save(more)
return leased(clock, tokens, life, handed)
