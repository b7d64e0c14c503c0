-- Holds slots for a node. A dead node's slots come back when its hold expires.
--
-- Where nodes want more than there are, each has its share (core's
-- `ledger/slots.rs` says which): who holds more hears that he is to do with
-- less, and what he uses above that counts until he says that it is free.
local version, node = tonumber(ARGV[1]), 'held_by_' .. ARGV[2]
local held, wanted, slots = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local life, pause, no = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local least, turn, wants_for = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

local clock = open(KEYS[1])
local state = read(KEYS[2])
local now = clock.now
-- A node's clock may run slow by a thousandth.
local paid = math.ceil(life * 1.001) + 1

least = math.max(1, math.min(least, math.max(1, wanted)))
local mine = { node = node, wants = wanted, least = least, turn_ends = now }
local others, line = 0, { mine }
for field, value in pairs(state) do
  if string.sub(field, 1, 8) == 'held_by_' then
    local count, expires_at, last = string.match(value, '(%d+) until (%d+) no (%d+)')
    local wants, of, wants_until, turn_ends =
      string.match(value, 'wants (%d+) of (%d+) until (%d+) turn (%d+)')
    count, expires_at = tonumber(count), tonumber(expires_at)
    if field == node then
      -- What was on its way over a connection that broke may come later than
      -- what was asked after it.
      if expires_at > now and tonumber(last) > no then
        return reply(clock, 'refused', pause)
      end
      mine.turn_ends = tonumber(turn_ends) or now
    elseif expires_at <= now then
      redis.call('HDEL', KEYS[2], field)
    else
      others = others + count
      wants = tonumber(wants) or count
      if now >= number(wants_until) then
        wants = math.min(count, wants)
      end
      line[#line + 1] = {
        node = field, wants = wants, least = tonumber(of) or 1,
        turn_ends = tonumber(turn_ends) or now,
      }
    end
  end
end

-- First what one message takes, for those who have waited longest; then the
-- lowest of those who have that are raised together.
local function share()
  local function rank(it)
    return it.turn_ends > now and 0 or it.turn_ends
  end
  table.sort(line, function(a, b)
    if rank(a) ~= rank(b) then
      return rank(a) < rank(b)
    end
    return a.node < b.node
  end)
  local room = slots
  for _, it in ipairs(line) do
    local first = math.min(it.least, it.wants)
    it.share = first <= room and first or 0
    room = room - it.share
  end
  while room > 0 do
    local lowest, level, raised = nil, nil, 0
    for _, it in ipairs(line) do
      if it.share > 0 and it.share < it.wants then
        lowest = math.min(lowest or it.share, it.share)
      end
    end
    if not lowest then
      break
    end
    for _, it in ipairs(line) do
      if it.share > 0 and it.share < it.wants then
        local nearest = it.share > lowest and it.share or it.wants
        level = math.min(level or nearest, nearest)
        raised = raised + (it.share == lowest and 1 or 0)
      end
    end
    local step = math.max(1, math.min(math.floor(room / raised), level - lowest))
    for _, it in ipairs(line) do
      if it.share > 0 and it.share == lowest and it.share < it.wants and room > 0 then
        it.share = it.share + step
        room = room - step
      end
    end
  end
  return mine.share
end

local bar = barred(clock, state, version, math.huge)
local granted
if bar or now < clock.start + paid then
  -- What is in use is in use; what others hold is not known yet, or does not
  -- matter.
  granted = held
else
  granted = math.max(0, math.min(share(), slots - others))
end
local counted = math.max(granted, held)
local expires_at = now + paid
local wants_until = granted < wanted and now + wants_for or expires_at
if granted >= least and mine.turn_ends <= now then
  -- As `slots::turn_at`: in a fixed rhythm a node could have slots whenever it
  -- lacks the tokens of another limit.
  mine.turn_ends = now + turn * (1 + math.floor(now / turn) % 3)
end
write(KEYS[2], clock, state, expires_at, {
  'kind', 'holds', 'version', math.max(version, number(state.version)),
  node, whole(counted) .. ' until ' .. whole(expires_at) .. ' no ' .. whole(no)
    .. ' wants ' .. whole(wanted) .. ' of ' .. whole(least)
    .. ' until ' .. whole(wants_until) .. ' turn ' .. whole(mine.turn_ends),
})
if counted == 0 and wanted > 0 then
  return bar or reply(clock, 'refused', math.max(pause, clock.start + paid - now))
end
return reply(clock, 'leased', granted, life)
