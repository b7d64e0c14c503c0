-- Stands before every script of the ledger.
--
-- KEYS[1] is the epoch of a tag, KEYS[2] the limit: both carry the tag, so that
-- they live in one slot of a cluster. Times are whole microseconds on the
-- ledger's own clock, which doubles hold exactly.

-- A key that nobody asks for stays this long, so that its version and its
-- largest cost are not forgotten at once.
local IDLE_MS = 60000
local TTL_MAX_MS = 315360000000

local function number(text)
  return tonumber(text) or 0
end

local function whole(value)
  return string.format('%.0f', value)
end

-- The ledger's clock and the epoch of its counts.
--
-- A clock that goes back goes on from where it was: `offset` makes up for it.
-- The record is missing after a loss, and carries another server's `run` after a
-- restart or a failover; both begin a new epoch. The server is asked for its own
-- id here, not the caller: he may have been connected to another one.
local function open(key)
  local time = redis.call('TIME')
  local wall = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
  local known = redis.call('HMGET', key, 'number', 'start', 'run', 'offset', 'seen', 'wall')
  local offset = number(known[4])
  local now = wall + offset
  if now < number(known[5]) then
    now = number(known[5])
    offset = now - wall
  end
  local clock = { now = now, wall = wall }
  if known[1] and known[3] == run then
    clock.epoch, clock.start = tonumber(known[1]), tonumber(known[2])
    clock.start_wall = number(known[6])
    if offset == number(known[4]) then
      redis.call('HSET', key, 'seen', whole(now))
    else
      redis.call('HSET', key, 'seen', whole(now), 'offset', whole(offset))
    end
  else
    clock.epoch = math.max(number(known[1]) + 1, wall)
    clock.start, clock.start_wall = now, wall
    redis.call('HSET', key, 'number', whole(clock.epoch), 'start', whole(now),
      'wall', whole(wall), 'run', run, 'offset', whole(offset), 'seen', whole(now))
  end
  return clock
end

local function reply(clock, word, first, second)
  return { word, first or 0, second or 0, clock.now, clock.wall, clock.epoch }
end

local function read(key)
  local flat, state = redis.call('HGETALL', key), {}
  for i = 1, #flat, 2 do
    state[flat[i]] = flat[i + 1]
  end
  return state
end

-- What stands before every count: numbers that are out of date, a pause, and a
-- largest cost that the caller does not know of.
local function barred(clock, state, version, cost)
  if version < number(state.version) then
    return reply(clock, 'stale', number(state.version))
  end
  local paused = number(state.paused_until)
  if paused > clock.now then
    return reply(clock, 'paused', paused - clock.now)
  end
  if number(state.cost) > cost then
    return reply(clock, 'cost', number(state.cost))
  end
end

-- Writes the fields that changed, and has the key expire once a fresh one would
-- know as much.
local function write(key, clock, state, lasts_until, fields)
  local changed = { 'epoch', whole(clock.epoch) }
  if state.epoch == changed[2] then
    changed = {}
  end
  for i = 1, #fields, 2 do
    local value = fields[i + 1]
    if type(value) == 'number' then
      value = whole(value)
    end
    if state[fields[i]] ~= value then
      changed[#changed + 1] = fields[i]
      changed[#changed + 1] = value
    end
  end
  if #changed > 0 then
    redis.call('HSET', key, unpack(changed))
  end
  local until_at = math.max(lasts_until, number(state.paused_until))
  local ms = math.max(0, math.ceil((until_at - clock.now) / 1000)) + IDLE_MS
  redis.call('PEXPIRE', key, whole(math.min(ms, TTL_MAX_MS)))
end

-- Who was refused comes back one lot after the other, the urgent not behind the
-- less urgent. `first` is when a lot will be there, `takes` how long one takes.
local function promised(state, class)
  local last = 0
  for i = 0, class do
    last = math.max(last, number(state['promised_' .. i]))
  end
  return last
end

local function promise(state, class, first, takes, queue_max)
  local queued = math.min(promised(state, class) + takes, first + queue_max)
  return math.max(first, queued)
end

-- What a fleet owes to lower classes: core's `ledger/owed.rs` says how. A script
-- that leases is told last which classes wait where it is asked, as a mask, how
-- much may be owed at most, and for how long who waits is believed.
local OWED_PAUSE, OWED_PERMILLE, LOWEST = 50000, 22, 3

local function owed_to(clock, state, class)
  if number(state['waits_' .. class]) <= clock.now then
    return 0
  end
  return math.floor(number(state['owed_' .. class]) / 1000)
end

local function owed_below(clock, state, class)
  local owed = 0
  for lower = class + 1, LOWEST do
    owed = owed + owed_to(clock, state, lower)
  end
  return owed
end

local function is_waiting(class)
  return math.floor(tonumber(ARGV[#ARGV - 2]) / 2 ^ class) % 2 == 1
end

-- These classes wait at a node that asks again after `pause` at the latest.
local function hear(clock, state, pause, fields)
  local waits_until = clock.now + pause + tonumber(ARGV[#ARGV])
  for class = 1, LOWEST do
    local name = 'waits_' .. class
    if is_waiting(class) and number(state[name]) < waits_until then
      state[name] = waits_until
      fields[#fields + 1] = name
      fields[#fields + 1] = waits_until
    end
  end
end

-- Tokens were granted to a class. What the node owes itself from now on.
local function earn(clock, state, class, tokens, fields)
  hear(clock, state, 0, fields)
  local most, handed = tonumber(ARGV[#ARGV - 1]) * 1000, {}
  for lower = class, LOWEST do
    local name = 'owed_' .. lower
    local owed = number(state[name])
    if lower == class then
      owed = math.max(0, owed - tokens * 1000)
    elseif number(state['waits_' .. lower]) <= clock.now then
      owed = 0
    elseif is_waiting(lower) then
      handed[#handed + 1] = name
      handed[#handed + 1] = math.floor(owed / 1000)
      owed = owed % 1000
    else
      owed = math.min(owed + tokens * OWED_PERMILLE, most)
    end
    if owed ~= number(state[name]) then
      fields[#fields + 1] = name
      fields[#fields + 1] = owed
    end
  end
  return handed
end

local function leased(clock, tokens, life, handed)
  local answer = reply(clock, 'leased', tokens, life)
  for _, value in ipairs(handed) do
    answer[#answer + 1] = value
  end
  return answer
end

-- Tokens that a count of another algorithm knows to be used.
local function used_by_another(clock, state)
  if state.kind == 'bucket' then
    return math.ceil(math.max(0, number(state.full_at) - clock.now) / number(state.interval))
  elseif state.kind == 'runs' then
    return number(state.tokens)
  end
  return number(state.used)
end

-- Lists of `index:tokens`.
local function read_slots(text)
  local slots = {}
  for index, tokens in string.gmatch(text or '', '(%d+):(%d+)') do
    slots[tonumber(index)] = tonumber(tokens)
  end
  return slots
end

local function sorted(slots)
  local order = {}
  for index in pairs(slots) do
    order[#order + 1] = index
  end
  table.sort(order)
  return order
end

local function write_slots(slots)
  local parts = {}
  for _, index in ipairs(sorted(slots)) do
    parts[#parts + 1] = whole(index) .. ':' .. whole(slots[index])
  end
  return table.concat(parts, ' ')
end

-- The slots of a window whose slots were `old` long, as slots of `grain`.
local function regrain(slots, old, grain)
  if old == grain then
    return slots
  end
  local moved = {}
  for index, tokens in pairs(slots) do
    local place = math.floor(((index + 1) * old - 1) / grain)
    moved[place] = (moved[place] or 0) + tokens
  end
  return moved
end
