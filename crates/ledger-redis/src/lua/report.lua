-- Rebuilds a long window from what one node debited, after a loss. ARGV from 8
-- on are pairs: for a sliding window age and tokens, for a calendar window the
-- span (`from-to`) and tokens.
--
-- What is known from before (a replica, a file) and what all nodes report are
-- two views of the same debits, so the larger counts. Who reports too late for
-- that adds his: others may have debited since.
local version, kind, node = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local epoch, quiet = tonumber(ARGV[4]), tonumber(ARGV[5])
local grain, window = tonumber(ARGV[6]), tonumber(ARGV[7])

local clock = open(KEYS[1])
local state = read(KEYS[2])
if epoch ~= clock.epoch then
  return reply(clock, 'epoch', clock.start)
end
if number(state['reported_by_' .. node]) == epoch then
  return reply(clock, 'reported')
end
local is_late = clock.now >= clock.start + quiet
local mine, last = {}, clock.now
for i = 8, #ARGV, 2 do
  local place, tokens = ARGV[i], tonumber(ARGV[i + 1])
  if kind == 'window' then
    place = math.floor((clock.now - tonumber(place)) / grain)
    last = math.max(last, (place + 1) * grain + window)
  else
    local stop = tonumber(string.match(place, '%-(%d+)$'))
    last = math.max(last, clock.now + stop - clock.wall)
  end
  mine[place] = (mine[place] or 0) + tokens
end

local known, reported = {}, {}
local function read_list(text, into)
  for place, tokens in string.gmatch(text or '', '([%d%-]+):(%d+)') do
    if kind == 'window' then
      place = tonumber(place)
    end
    into[place] = tonumber(tokens)
  end
end
local function write_list(list)
  local parts = {}
  for _, place in ipairs(sorted(list)) do
    local name = place
    if kind == 'window' then
      name = whole(place)
    end
    parts[#parts + 1] = name .. ':' .. whole(list[place])
  end
  return table.concat(parts, ' ')
end
if state.kind == 'window' and kind == 'window' then
  known = regrain(read_slots(state.slots), number(state.grain), grain)
elseif state.kind == kind then
  read_list(state.spans, known)
end
if number(state.reported_epoch) == epoch then
  read_list(state.reported, reported)
end
local used = 0
for place, tokens in pairs(mine) do
  reported[place] = (reported[place] or 0) + tokens
  if is_late then
    known[place] = (known[place] or 0) + tokens
  else
    known[place] = math.max(known[place] or 0, reported[place])
  end
end
for _, tokens in pairs(known) do
  used = used + tokens
end
local fields = {
  'kind', kind, 'version', math.max(version, number(state.version)), 'used', used,
  'reported', write_list(reported), 'reported_epoch', epoch, 'reported_by_' .. node, epoch,
}
local function add(field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end
if kind == 'window' then
  add('slots', write_list(known))
  add('grain', grain)
else
  add('spans', write_list(known))
end
write(KEYS[2], clock, state, last, fields)
return reply(clock, 'reported', used)
