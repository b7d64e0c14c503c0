-- Leases a run of spaced tokens, if the one before is over. A key goes on from a
-- bucket, and a bucket from it: small bursts are leased in runs too.
local version, cost, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local interval, pause, overlap = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local gap, run_max, life_min = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local wanted, least, step = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])

local clock = open(KEYS[1])
local state = read(KEYS[2])
local refusal = barred(clock, state, version, cost)
if refusal then
  return refusal
end
local now = clock.now

local ends_at, tokens, refused = clock.start + longest, 0, 0
if state.kind == 'runs' then
  tokens, refused = number(state.tokens), number(state.refused)
  if number(state.epoch) == clock.epoch then
    ends_at = number(state.ends_at)
  else
    ends_at = math.max(ends_at, number(state.ends_at))
  end
elseif state.kind == 'bucket' and number(state.epoch) == clock.epoch then
  ends_at = now + number(state.life)
elseif state.kind then
  ends_at = math.max(ends_at, now + longest)
end

local fields = {
  'kind', 'runs', 'version', version, 'cost', cost,
  'interval', interval, 'overlap', overlap,
}
local function save(free_at)
  for _, value in ipairs({ 'ends_at', ends_at, 'tokens', tokens, 'refused', refused }) do
    fields[#fields + 1] = value
  end
  write(KEYS[2], clock, state, free_at, fields)
end

local free_at = ends_at + pause - overlap
if now < free_at then
  local retry = free_at - now + step * refused
  refused = refused + 1
  save(free_at)
  return reply(clock, 'refused', math.ceil(retry))
end
local grown = 0
if refused > 0 then
  grown = tokens * 2
end
tokens = math.max(math.min(math.max(wanted, grown), run_max), least)
refused = 0
local life = math.floor(life_min + gap * (tokens - least))
-- A node's clock may run slow by a thousandth.
ends_at = now + math.ceil(life * 1.001) + 1
save(ends_at + pause)
return reply(clock, 'leased', tokens, life)
