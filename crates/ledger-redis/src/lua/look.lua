-- Tells the epoch of a tag, and which of its limits are paused for how long.
-- KEYS[2] is the tag's list of pauses.
local clock = open(KEYS[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', clock.now)
local answer = reply(clock, 'epoch', clock.start)
local paused = redis.call('ZREVRANGE', KEYS[2], 0, tonumber(ARGV[1]) - 1, 'WITHSCORES')
for i = 1, #paused, 2 do
  answer[#answer + 1] = paused[i]
  answer[#answer + 1] = tonumber(paused[i + 1]) - clock.now
end
return answer
