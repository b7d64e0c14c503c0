"""The Python recipe against the real server, both ways to ask."""

import os
import sys
import threading

from throttle import Away, HttpThrottle, Limit, RedisThrottle, Refused, Wrong

url, address, token, run = sys.argv[1:]


def check(holds, what):
    if not holds:
        raise SystemExit(f"not so: {what}")


def fails(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise SystemExit(f"{kind.__name__} was not raised")


def use(throttle, name):
    # Many at once, in line at the server.
    def calls():
        for _ in range(10):
            with throttle.permit(Limit(name, "50/s burst 5")):
                pass

    threads = [threading.Thread(target=calls) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # Several limits: all of them or none, and a refusal says which and when.
    slot, rate = Limit(f"{name}-slot", concurrency=1), Limit(f"{name}-slow", "1/h burst 2")
    with throttle.permit(slot, rate, urgency="critical"):
        refused = fails(Refused, lambda: throttle.acquire(slot, rate, patience=0, urgency="critical"))
        check(refused.by == slot.key and refused.retry_after > 0, refused)
    # The slot was given back, and the refusal had taken nothing of the rate.
    with throttle.permit(slot, rate, patience=0, urgency="critical"):
        pass
    refused = fails(Refused, lambda: throttle.acquire(rate, patience=1, urgency="critical"))
    check(refused.by == rate.key and refused.retry_after > 60, refused)

    throttle.pause(name, 3600)
    refused = fails(Refused, lambda: throttle.acquire(Limit(name, "50/s burst 5"), patience=1))
    check(refused.retry_after > 60, refused)

    fails(Wrong, lambda: throttle.acquire(Limit("x", "1/s burst 2", cost=3)))
    fails(Wrong, lambda: throttle.acquire(Limit("x", "often")))
    fails(Wrong, lambda: throttle.acquire(Limit("no policy has this")))

    # A fork has connections of its own.
    child = os.fork()
    if child == 0:
        with throttle.permit(Limit(f"{name}-fork", "10/s burst 2")):
            os._exit(0)
    with throttle.permit(Limit(f"{name}-fork", "10/s burst 2")):
        check(os.waitpid(child, 0)[1] == 0, "the child was granted one")


use(HttpThrottle(url, token), f"{run}-http")
use(RedisThrottle(address, token), f"{run}-redis")
fails(Wrong, lambda: HttpThrottle(url, "wrong").acquire(Limit("x", "1/s")))
fails(Wrong, lambda: RedisThrottle(address, "wrong").acquire(Limit("x", "1/s")))
# Nobody listens at port 1.
for away, options in [(HttpThrottle, ("http://127.0.0.1:1", token)), (RedisThrottle, ("127.0.0.1:1", token))]:
    fails(Away, lambda: away(*options).acquire(Limit("x", "1/s"), patience=0.2))
    permit = away(*options, when_away="open").acquire(Limit("x", "1/s"), patience=0.2)
    check(permit == "0", permit)
print("done")
