-- Leases tokens of a bucket. It holds what the burst leaves after the life of
-- leases is paid, and is kept as the time at which it will be full.
local version, cost, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local interval, holds, life = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local floor, class = tonumber(ARGV[7]), tonumber(ARGV[8])
local wanted, at_least, lot = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local queue_max = tonumber(ARGV[12])

local clock = open(KEYS[1])
local state = read(KEYS[2])
local refusal = barred(clock, state, version, cost)
if refusal then
  return refusal
end
local now = clock.now

-- How long thousandths of a token take, rounded up.
local function time_for(milli)
  return math.ceil(milli * interval / 1000)
end

local fill = time_for(holds * 1000)
local full_at
if number(state.epoch) ~= clock.epoch then
  -- Nothing is known, or what is known may lack debits: all of it was used, as
  -- late as can be. Long after the beginning of the epoch that is a full bucket.
  full_at = clock.start + longest + fill
  if state.kind == 'bucket' then
    full_at = math.max(full_at, number(state.full_at))
  end
elseif state.kind == 'bucket' then
  full_at = number(state.full_at)
  if number(state.interval) ~= interval or number(state.holds) ~= holds then
    local missing = math.max(0, full_at - now) / number(state.interval)
    local level = math.min(math.max(0, number(state.holds) - missing), holds)
    full_at = now + math.ceil((holds - level) * interval)
  end
elseif state.kind == 'runs' then
  local ends_at = number(state.ends_at) + math.ceil(cost * number(state.interval))
  full_at = math.max(now, ends_at, number(state.not_before)) + fill
else
  full_at = now + longest + fill
end

-- What is owed to those who ask is theirs; what is owed to others stays.
local mine, others = owed_to(clock, state, class), owed_below(clock, state, class)
local is_due = mine >= at_least
if is_due then
  floor, others, wanted = 0, 0, math.min(wanted, mine)
end
local most = math.max(0, holds - 2 * cost) * 1000
local own_floor = floor
floor = floor + math.max(0, math.min(others * 1000, most - floor))

local level = fill - math.max(0, full_at - now)
local function fits(tokens)
  return time_for(tokens * 1000 + floor) <= level
end

local fields = {
  'kind', 'bucket', 'version', ARGV[1], 'cost', ARGV[2],
  'interval', ARGV[4], 'holds', ARGV[5], 'life', ARGV[6],
}
local function add(field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end

local least = at_least
if not is_due and promised(state, class) > now then
  least = lot
end
if not fits(least) then
  local need = lot * 1000 + floor
  if need > holds * 1000 then
    need = at_least * 1000 + floor
  end
  local first = now + math.max(0, time_for(need) - level)
  local at = promise(state, class, first, time_for(lot * 1000), queue_max)
  add('full_at', full_at)
  add('promised_' .. class, at)
  local pause = at - now
  if time_for(least * 1000 + own_floor) <= level then
    pause = math.min(pause, OWED_PAUSE)
  end
  hear(clock, state, pause, fields)
  write(KEYS[2], clock, state, math.max(full_at, at), fields)
  return reply(clock, 'refused', pause)
end
local tokens = math.floor(level / interval - floor / 1000)
tokens = math.max(least, math.min(tokens, wanted))
while tokens > least and not fits(tokens) do
  tokens = tokens - 1
end
full_at = math.max(full_at, now) + time_for(tokens * 1000)
add('full_at', full_at)
local handed = earn(clock, state, class, tokens, fields)
write(KEYS[2], clock, state, full_at, fields)
return leased(clock, tokens, life, handed)
