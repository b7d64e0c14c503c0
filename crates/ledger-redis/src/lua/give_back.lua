-- Credits tokens that were leased and not used: once, and only if the debit is
-- known. What accrued since would have accrued to a full bucket too.
local tokens, epoch, at = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = open(KEYS[1])
local state = read(KEYS[2])
if epoch ~= clock.epoch or number(state.epoch) ~= clock.epoch or at > clock.now then
  return reply(clock, 'given', 0)
end
if state.kind == 'bucket' then
  local interval, full_at = number(state.interval), number(state.full_at)
  local credit = math.floor(tokens * interval) - (clock.now - at)
  credit = math.max(0, math.min(credit, full_at - clock.now))
  redis.call('HSET', KEYS[2], 'full_at', full_at - credit)
  return reply(clock, 'given', math.floor(credit / interval))
elseif state.kind == 'window' then
  local slots = read_slots(state.slots)
  local index = math.floor(at / number(state.grain))
  local given = math.min(tokens, slots[index] or 0)
  if given > 0 then
    slots[index] = slots[index] - given
    if slots[index] == 0 then
      slots[index] = nil
    end
    redis.call('HSET', KEYS[2], 'slots', write_slots(slots),
      'used', number(state.used) - given)
  end
  return reply(clock, 'given', given)
elseif state.kind == 'calendar' then
  -- The debit's moment on the wall, if the clock did not step since.
  local wall, given, parts = clock.wall - (clock.now - at), 0, {}
  for start, stop, used in string.gmatch(state.spans or '', '(%d+)-(%d+):(%d+)') do
    used = tonumber(used)
    if tonumber(start) <= wall and wall < tonumber(stop) then
      given = math.min(tokens, used)
      used = used - given
    end
    parts[#parts + 1] = start .. '-' .. stop .. ':' .. whole(used)
  end
  redis.call('HSET', KEYS[2], 'spans', table.concat(parts, ' '))
  return reply(clock, 'given', given)
end
return reply(clock, 'given', 0)
