# frozen_string_literal: true

require "sidekiq"
require_relative "throttle"

# Jobs that begin when all of their limits allow it, over all Sidekiq processes.
# A job that has a method `limits`, called with its arguments, asks first.
#
#   bundle exec sidekiq -r ./throttled_jobs.rb
class ThrottledJobs
  include Sidekiq::ServerMiddleware

  # How long a thread stands in line. Then the job goes back to Redis until the
  # limit has room, and others get the thread.
  PATIENCE_S = 5.0
  # A job is put off for no longer than this; it just asks again.
  PUT_OFF_MAX_S = 600.0

  def initialize(throttle)
    @throttle = throttle
  end

  def call(instance, job, _queue)
    return yield unless instance.respond_to?(:limits)

    permit = acquire(instance, job)
    return unless permit # It was put off.

    begin
      yield
    ensure
      @throttle.release(permit)
    end
  end

  private

  def acquire(instance, job)
    options = instance.class.get_sidekiq_options
    urgency = options.fetch("urgency", "normal")
    ttl = options.fetch("permit_ttl", 300.0)
    limits = instance.limits(*job["args"])
    @throttle.acquire(*limits, patience: PATIENCE_S, urgency: urgency, ttl: ttl)
  rescue Throttle::Refused, Throttle::Away => e
    put_off(job, e.retry_after)
    nil
  end

  # That is no attempt: `retry` is for what the job itself does wrong. And those
  # who are put off together do not all come back at once.
  def put_off(job, seconds)
    at = Time.now.to_f + ([seconds, PUT_OFF_MAX_S].min * rand(1.0..1.1))
    Sidekiq::Client.push(job.merge("at" => at))
  end
end

Sidekiq.configure_server do |config|
  throttle = Throttle.new(
    address: ENV.fetch("OUTFLOW_THROTTLE", "127.0.0.1:6380"),
    token: ENV.fetch("OUTFLOW_TOKEN"),
    threads: config.concurrency # With several capsules: their sum.
  )
  config.server_middleware { |chain| chain.add(ThrottledJobs, throttle) }
end

# A job with several limits at once: all of them or none.
class SendCode
  include Sidekiq::Job
  sidekiq_options retry: 5, urgency: "critical", permit_ttl: 90

  def limits(tenant, _to)
    [
      Throttle::Limit.new(key: "api.example.com", rates: ["100/s burst 10", "50k/day"]),
      Throttle::Limit.new(key: "sends of #{tenant}", rates: ["20/s burst 5"]),
      Throttle::Limit.new(key: "api.example.com connections", concurrency: 8)
    ]
  end

  def perform(_tenant, to)
    logger.info("code for #{to}")
  end
end
