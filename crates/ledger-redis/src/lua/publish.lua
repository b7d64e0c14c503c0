-- Publishes a policy to the fleet. KEYS are the version and the policies; an
-- empty text is a tombstone, so that those who were away learn of it.
local id, text, channel = ARGV[1], ARGV[2], ARGV[3]
local known = redis.call('HGET', KEYS[2], id)
local version = tonumber(string.match(known or '', '^(%d+) ')) or 0
if ARGV[4] ~= '' and tonumber(ARGV[4]) ~= version then
  return { 'changed', version }
end
-- Versions only grow, even if the last one was lost: ARGV[5] is the highest that
-- the caller knows.
local fresh = math.max(tonumber(redis.call('GET', KEYS[1])) or 0, tonumber(ARGV[5])) + 1
redis.call('SET', KEYS[1], string.format('%.0f', fresh))
redis.call('HSET', KEYS[2], id, string.format('%.0f', fresh) .. ' ' .. text)
redis.call('PUBLISH', channel, 'policies ' .. string.format('%.0f', fresh))
return { 'published', fresh }
