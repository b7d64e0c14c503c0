-- Holds slots for a node: as many as it has in use at least. A dead node's slots
-- come back when its hold expires.
local version, node = tonumber(ARGV[1]), 'held_by_' .. ARGV[2]
local held, wanted, slots = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local life, pause, no = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

local clock = open(KEYS[1])
local state = read(KEYS[2])
local now = clock.now
-- A node's clock may run slow by a thousandth.
local paid = math.ceil(life * 1.001) + 1

local others, mine = 0, 0
for field, value in pairs(state) do
  if string.sub(field, 1, 8) == 'held_by_' then
    local count, expires_at, last = string.match(value, '(%d+) until (%d+) no (%d+)')
    if tonumber(expires_at) <= now then
      redis.call('HDEL', KEYS[2], field)
    elseif field == node then
      -- What was on its way over a connection that broke may come later than
      -- what was asked after it.
      if tonumber(last) > no then
        return reply(clock, 'refused', pause)
      end
      mine = tonumber(count)
    else
      others = others + tonumber(count)
    end
  end
end

local bar = barred(clock, state, version, math.huge)
local granted
if bar or now < clock.start + paid then
  -- What is in use is in use; what others hold is not known yet, or does not
  -- matter.
  granted = math.max(held, math.min(mine, wanted))
else
  granted = math.max(held, math.min(wanted, slots - others))
end
granted = math.max(granted, 0)
local expires_at = now + paid
write(KEYS[2], clock, state, expires_at, {
  'kind', 'holds', 'version', math.max(version, number(state.version)),
  node, whole(granted) .. ' until ' .. whole(expires_at) .. ' no ' .. whole(no),
})
if granted == 0 and wanted > 0 then
  return bar or reply(clock, 'refused', math.max(pause, clock.start + paid - now))
end
return reply(clock, 'leased', granted, life)
