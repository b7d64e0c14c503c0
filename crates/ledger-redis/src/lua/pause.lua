-- Pauses a limit, or lifts that if it is for no time, and tells everybody.
-- KEYS[3] is the tag's list of pauses.
local lasts, key, channel = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local clock = open(KEYS[1])
if lasts == 0 then
  redis.call('HDEL', KEYS[2], 'paused_until')
  redis.call('ZREM', KEYS[3], key)
  redis.call('PUBLISH', channel, 'pause 0 ' .. key)
  return reply(clock, 'paused', 0)
end
local until_at = math.max(clock.now + lasts, number(redis.call('HGET', KEYS[2], 'paused_until')))
redis.call('HSET', KEYS[2], 'paused_until', until_at)
local ms = math.ceil((until_at - clock.now) / 1000) + IDLE_MS
if redis.call('PTTL', KEYS[2]) < ms then
  redis.call('PEXPIRE', KEYS[2], whole(math.min(ms, TTL_MAX_MS)))
end
redis.call('ZADD', KEYS[3], until_at, key)
redis.call('PUBLISH', channel, 'pause ' .. whole(until_at - clock.now) .. ' ' .. key)
return reply(clock, 'paused', until_at - clock.now)
