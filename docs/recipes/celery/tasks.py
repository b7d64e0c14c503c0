"""Celery tasks that begin when all of their limits allow it, over all workers.

Put `throttle.py` of the Python recipe beside this file.
"""

import os
import random

from celery import Celery, Task
from celery.exceptions import Retry

from throttle import Away, Limit, Refused, from_environment

app = Celery("tasks", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:6379/0"))
app.conf.update(
    task_acks_late=True,  # A task that is lost with its worker comes again.
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)
throttle = from_environment()

# A broker on Redis hands a task out again that is not done with after its
# visibility_timeout (an hour), also one that only waits for its time. So no task
# is put off for longer than this; it just asks again.
PUT_OFF_MAX_S = 600.0


class Throttled(Task):
    """A task that asks first. Set these in `@app.task(base=Throttled, ...)`."""

    abstract = True
    limits = ()
    urgency = "normal"
    # How long a process of the worker stands in line. Then the task goes back to
    # the broker until the limit has room, and others get the process.
    patience = 5.0
    # Longer than the task can take: see `time_limit`.
    ttl = 300.0

    def limits_of(self, *args, **kwargs):
        """The limits of one call. Override it if they depend on the arguments."""
        return self.limits

    def __call__(self, *args, **kwargs):
        limits = self.limits_of(*args, **kwargs)
        how = {"patience": self.patience, "urgency": self.urgency, "ttl": self.ttl}
        try:
            permit = throttle.acquire(*limits, **how)
        except (Refused, Away) as error:
            raise self.put_off(error) from error
        try:
            return self.run(*args, **kwargs)
        finally:
            throttle.release(permit)

    def put_off(self, error):
        """Puts the task back until it is worth asking again. That is no attempt:
        `max_retries` is for what the task itself does wrong."""
        request = self.request
        if request.called_directly or request.is_eager:
            return error
        # Those who are put off together do not all come back at once.
        countdown = min(error.retry_after, PUT_OFF_MAX_S) * random.uniform(1.0, 1.1)
        again = self.signature_from_request(
            request, countdown=countdown, retries=request.retries
        )
        again.apply_async()
        return Retry(str(error), when=countdown, sig=again)


class PerTenant(Throttled):
    """Limits that depend on the arguments, and several at once: all or none."""

    def limits_of(self, tenant, *args, **kwargs):
        return (
            Limit("api.example.com", ("100/s burst 10", "50k/day")),
            Limit(f"sends of {tenant}", "20/s burst 5"),
            Limit("api.example.com connections", concurrency=8),
        )


@app.task(base=Throttled, limits=(Limit("api.example.com", "100/s burst 10"),))
def call(number):
    print(f"call {number}", flush=True)


@app.task(base=PerTenant, bind=True, urgency="critical", time_limit=60, ttl=90, max_retries=5)
def send_code(self, tenant, to):
    seconds = provider_says_wait(to)
    if seconds:  # 429 with Retry-After: that holds for everybody who calls it.
        throttle.pause("api.example.com", seconds)
        raise self.retry(countdown=seconds)


def provider_says_wait(to):
    """Stands for the call that is limited."""
    print(f"code for {to}", flush=True)
    return 0


if __name__ == "__main__":
    for number in range(600):
        call.delay(number)
    send_code.delay("acme", "+12025550123")
