-- Leases tokens of a sliding window. Debits are counted in slots, and all of a
-- slot leave the window with its last moment.
local version, cost = tonumber(ARGV[1]), tonumber(ARGV[2])
local count, window, grain = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local class, wanted, at_least = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local queue_max, takes = tonumber(ARGV[10]), tonumber(ARGV[11])
local is_long, quiet, life = ARGV[12] == '1', tonumber(ARGV[13]), tonumber(ARGV[14])

local clock = open(KEYS[1])
local state = read(KEYS[2])
local refusal = barred(clock, state, version, cost)
if refusal then
  return refusal
end
local now = clock.now

-- Whoever debited something says so first: see report.lua.
if is_long and now < clock.start + quiet then
  return reply(clock, 'refused', clock.start + quiet - now)
end

local slots = {}
local function count_in(index, tokens)
  slots[index] = (slots[index] or 0) + tokens
end
if not is_long and number(state.epoch) ~= clock.epoch then
  -- Nothing is known: all of it was used when the epoch began.
  count_in(math.floor(clock.start / grain), count)
elseif state.kind == 'window' then
  slots = regrain(read_slots(state.slots), number(state.grain), grain)
elseif state.kind then
  count_in(math.floor(now / grain), math.min(count, used_by_another(clock, state)))
end

local function leaves_at(index)
  return (index + 1) * grain + window
end
local used, last = 0, now
for _, index in ipairs(sorted(slots)) do
  if leaves_at(index) <= now then
    slots[index] = nil
  else
    used, last = used + slots[index], leaves_at(index)
  end
end

local function save(more)
  local fields = {
    'kind', 'window', 'version', ARGV[1], 'cost', ARGV[2], 'count', ARGV[4],
    'window', ARGV[5], 'grain', ARGV[6], 'slots', write_slots(slots), 'used', used,
  }
  for _, value in ipairs(more) do
    fields[#fields + 1] = value
  end
  write(KEYS[2], clock, state, last, fields)
end

-- What is owed to those who ask is theirs; what is owed to others stays.
local mine, others = owed_to(clock, state, class), owed_below(clock, state, class)
if mine >= at_least then
  others, wanted = 0, math.min(wanted, mine)
end
others = math.min(others, math.max(0, count - 2 * cost))
if used + at_least + others > count then
  local first, left = now, used
  for _, index in ipairs(sorted(slots)) do
    if left + at_least + others <= count then
      break
    end
    left, first = left - slots[index], leaves_at(index)
  end
  local at = promise(state, class, first, takes, queue_max)
  local pause, more = at - now, { 'promised_' .. class, at }
  if used + at_least <= count then
    pause = math.min(pause, OWED_PAUSE)
  end
  hear(clock, state, pause, more)
  save(more)
  return reply(clock, 'refused', pause)
end
local tokens = math.max(at_least, math.min(wanted, count - used - others))
local index = math.floor(now / grain)
count_in(index, tokens)
used, last = used + tokens, leaves_at(index)
local more = {}
local handed = earn(clock, state, class, tokens, more)
save(more)
return leased(clock, tokens, life, handed)
