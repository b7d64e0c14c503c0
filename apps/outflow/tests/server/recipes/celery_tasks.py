"""Tasks of the test: limited by the recipe, and beside it by Celery itself. Each
writes down when it began, on the clock that the server's log of grants has."""

import os
import time

from tasks import Limit, Throttled, app

FOLDER = os.environ["STARTS"]


def began(name, note=""):
    """One write to a file that is only appended to: lines stay whole."""
    at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    file = os.open(os.path.join(FOLDER, name), flags, 0o600)
    os.write(file, f"{at_ns} {note}\n".encode())
    os.close(file)


@app.task(base=Throttled, limits=(Limit("celery", "100/s burst 10"),))
def by_recipe():
    began("celery-recipe")


# Celery's limit is quicker for tasks that are acknowledged early.
@app.task(rate_limit="100/s", acks_late=False)
def by_celery():
    began("celery-own")


# It stands in line for less than a turn takes, so most go back to the broker.
@app.task(
    base=Throttled, bind=True, patience=0.02, max_retries=0, limits=(Limit("put-off", "20/s burst 1"),)
)
def put_off(self):
    began("celery-put-off", self.request.retries)


# Fails at first: then it is an attempt, and its slot is free for the next.
@app.task(base=Throttled, bind=True, max_retries=1, limits=(Limit("slot", concurrency=1),))
def fails_once(self):
    began("celery-fails", self.request.retries)
    if self.request.retries == 0:
        raise self.retry(countdown=0)


def fill(task, count, per_s=None):
    """Adds tasks over one connection, at once or so many a second."""
    began_at = time.monotonic()
    with app.pool.acquire(block=True) as connection, app.amqp.Producer(connection) as producer:
        for number in range(count):
            if per_s:
                time.sleep(max(0.0, began_at + number / per_s - time.monotonic()))
            task.apply_async(producer=producer)
