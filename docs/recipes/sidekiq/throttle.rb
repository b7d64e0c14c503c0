# frozen_string_literal: true

require "redis_client" # Sidekiq 7 and later bring it.

# Asks Outflow before a call to somebody who counts calls.
#
#   throttle = Throttle.new(address: "127.0.0.1:6380", token: token)
#   throttle.with(Throttle::Limit.new(key: "api.example.com", rates: ["100/s burst 10"])) { call }
#
# All limits are taken together or none is. The server keeps who waits in line,
# so there is no polling here. Can be shared by threads.
class Throttle
  # One question stands in line for so long; then it is asked again.
  CALL_WAIT_S = 25.0
  CONNECT_TIMEOUT_S = 2.0
  # An answer that is later than its wait by so much does not come any more.
  ANSWER_TIMEOUT_S = 5.0
  BACKOFF_FIRST_S = 0.05
  BACKOFF_MAX_S = 2.0

  # Without numbers it is what the server's policies say of the key.
  Limit = Struct.new(:key, :rates, :concurrency, :cost, keyword_init: true) do
    def words
      rates = Array(self.rates).flat_map { |rate| ["RATE", rate] }
      slots = concurrency ? ["CONCURRENCY", concurrency] : []
      [key, cost || 1, *rates, *slots]
    end
  end

  # Not granted in time. It is worth coming back after `retry_after` seconds.
  class Refused < StandardError
    attr_reader :by, :retry_after

    def initialize(by, retry_after)
      super("#{by} has nothing left; come back in #{retry_after} s")
      @by = by
      @retry_after = retry_after
    end
  end

  # The server could not be asked.
  class Away < StandardError
    def retry_after = BACKOFF_MAX_S
  end

  # The question is wrong, or its cost is more than the limit ever has. It does
  # not help to ask again.
  class Wrong < StandardError; end

  # A connection for each thread that stands in line: over one that is shared, a
  # question that waits would hold up those behind it.
  def initialize(address:, token:, threads: 10, when_away: :closed)
    raise ArgumentError, "when_away is :closed or :open" unless %i[closed open].include?(when_away)

    host, _, port = address.rpartition(":")
    config = RedisClient.config(
      host: host, port: Integer(port), password: token,
      connect_timeout: CONNECT_TIMEOUT_S, read_timeout: ANSWER_TIMEOUT_S,
      write_timeout: ANSWER_TIMEOUT_S,
      reconnect_attempts: 1 # What was idle for long is closed by the server.
    )
    @pool = config.new_pool(timeout: ANSWER_TIMEOUT_S, size: threads)
    @when_away = when_away
  end

  # Waits for the limits, and gives slots back at the end.
  def with(*limits, **how)
    permit = acquire(*limits, **how)
    begin
      yield
    ensure
      release(permit)
    end
  end

  # Waits up to `patience` seconds: the permit, for `release`. `urgency` is the
  # class: critical, high, normal or low. A slot of a concurrency limit comes back
  # by itself after `ttl` seconds, so let that be longer than the work can take.
  def acquire(*limits, patience: 30.0, urgency: "normal", ttl: 60.0)
    ends_at = now + patience
    backoff = BACKOFF_FIRST_S
    begin
      ask(limits, urgency, (ends_at - now).clamp(0.0, CALL_WAIT_S), ttl)
    rescue Refused => e
      # The server knows when: to ask earlier helps nobody.
      raise if now + e.retry_after >= ends_at

      sleep(e.retry_after)
      retry
    rescue Away
      pause = backoff * rand(0.5..1.0)
      backoff = [2 * backoff, BACKOFF_MAX_S].min
      if now + pause >= ends_at
        return "0" if @when_away == :open

        raise
      end
      sleep(pause)
      retry
    end
  end

  # Gives slots back. If that fails they come back by themselves, when their time
  # is over; what was done with them is done all the same.
  def release(permit)
    call(0, "RELEASE", permit) unless permit == "0" # Nothing is held by it.
  rescue Away
    nil
  end

  # Has a key grant nothing for a while: its provider asked for that.
  def pause(key, seconds)
    call(0, "PAUSE", key, [1, millis(seconds)].max)
  end

  private

  def ask(limits, urgency, wait, ttl)
    words = limits.map(&:words).reduce { |all, limit| [*all, "AND", *limit] }
    granted, name, retry_after_ms = call(
      wait, "ACQUIRE", *words, "CLASS", urgency, "WAIT", millis(wait), "TTL", millis(ttl)
    )
    return name if granted == 1
    raise Wrong, "#{name} never has as much as that at once" if retry_after_ms.negative?

    raise Refused.new(name, retry_after_ms / 1000.0)
  end

  def call(wait, *words)
    @pool.blocking_call(wait + ANSWER_TIMEOUT_S, *words)
  rescue RedisClient::CommandError => e
    raise Away, e.message if e.message.start_with?("BUSY")

    raise Wrong, e.message
  rescue RedisClient::Error => e
    raise Away, e.message
  end

  def millis(seconds) = (seconds * 1000).round

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
