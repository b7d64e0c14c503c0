"""Asks Outflow before a call to somebody who counts calls.

    throttle = HttpThrottle("http://127.0.0.1:8025", token)   # no packages needed
    throttle = RedisThrottle("127.0.0.1:6380", token)         # `redis`; faster

    with throttle.permit(Limit("api.example.com", "100/s burst 10"), patience=30):
        call()

All limits are taken together or none is. The server keeps who waits in line, so
there is no polling here. If nothing was granted in time, `Refused` says when to
come back; if the server could not be asked, `Away` is raised and nothing runs,
unless `when_away="open"` says otherwise.
"""

import contextlib
import dataclasses
import http.client
import json
import os
import random
import threading
import time
import urllib.parse

# One question stands in line for so long; then it is asked again. Shorter than a
# request may take at the server ([server] request_timeout, 30 s).
CALL_WAIT_S = 25.0
CONNECT_TIMEOUT_S = 2.0
# An answer that is later than its wait by so much does not come any more.
ANSWER_TIMEOUT_S = 5.0
BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.05, 2.0


class Refused(Exception):
    """Not granted in time. It is worth coming back after `retry_after` seconds."""

    def __init__(self, by, retry_after):
        super().__init__(f"{by} has nothing left; come back in {retry_after:.3f} s")
        self.by, self.retry_after = by, retry_after


class Away(Exception):
    """The server could not be asked."""

    retry_after = BACKOFF_MAX_S


class Wrong(Exception):
    """The question is wrong, or its cost is more than the limit ever has. It does
    not help to ask again."""


@dataclasses.dataclass(frozen=True)
class Limit:
    """One limit. Without numbers it is what the server's policies say of the key."""

    key: str
    rate: str | tuple[str, ...] = ()  # "100/s burst 10", or ("14/s", "50k/day")
    concurrency: int | None = None
    cost: int = 1

    @property
    def rates(self):
        return (self.rate,) if isinstance(self.rate, str) else tuple(self.rate)


class Throttle:
    """What both ways to ask have in common. Can be shared by threads, and by
    processes that fork."""

    def __init__(self, when_away="closed"):
        if when_away not in ("closed", "open"):
            raise ValueError('when_away is "closed" or "open"')
        self.when_away = when_away

    @contextlib.contextmanager
    def permit(self, *limits, **how):
        """Waits for the limits, and gives slots back at the end."""
        permit = self.acquire(*limits, **how)
        try:
            yield
        finally:
            self.release(permit)

    def acquire(self, *limits, patience=30.0, urgency="normal", ttl=60.0):
        """Waits up to `patience` seconds. The permit, for `release`.

        `urgency` is the class: critical, high, normal or low. A slot of a
        concurrency limit comes back by itself after `ttl` seconds, so let that be
        longer than the work can take.
        """
        ends_at = time.monotonic() + patience
        backoff = BACKOFF_FIRST_S
        while True:
            left = max(0.0, ends_at - time.monotonic())
            try:
                return self._ask(limits, urgency, min(left, CALL_WAIT_S), ttl)
            except Refused as refused:
                # The server knows when: to ask earlier helps nobody.
                pause = refused.retry_after
                if time.monotonic() + pause >= ends_at:
                    raise
            except Away:
                pause = backoff * random.uniform(0.5, 1.0)
                backoff = min(2 * backoff, BACKOFF_MAX_S)
                if time.monotonic() + pause >= ends_at:
                    if self.when_away == "open":
                        return "0"
                    raise
            time.sleep(pause)

    def release(self, permit):
        """Gives slots back. If that fails they come back by themselves, when their
        time is over; what was done with them is done all the same."""
        if permit != "0":  # Nothing is held by it.
            with contextlib.suppress(Away):
                self._release(permit)


class HttpThrottle(Throttle):
    """Over HTTP, with one connection for each thread."""

    def __init__(self, url, token, **common):
        super().__init__(**common)
        self._url = urllib.parse.urlsplit(url)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        }
        self._own = threading.local()

    def pause(self, key, seconds):
        """Has a key grant nothing for a while: its provider asked for that."""
        body = {"key": key, "retry_after_ms": max(1, round(seconds * 1000))}
        self._post("pause", body, ANSWER_TIMEOUT_S)

    def _ask(self, limits, urgency, wait, ttl):
        asked = []
        for limit in limits:
            it = {"key": limit.key, "cost": limit.cost, "limits": limit.rates}
            if limit.concurrency:
                it["concurrency"] = limit.concurrency
            asked.append(it)
        body = {"limits": asked, "class": urgency, "wait_ms": round(wait * 1000)}
        body["ttl_ms"] = round(ttl * 1000)
        answer = self._post("acquire", body, wait + ANSWER_TIMEOUT_S)
        if answer["granted"]:
            return answer["permit"]
        raise Refused(answer["refused_by"], answer["retry_after_ms"] / 1000)

    def _release(self, permit):
        self._post("release", {"permit": permit}, ANSWER_TIMEOUT_S)

    def _connection(self, timeout):
        """The connection of this thread, and whether it was used before."""
        own = self._own
        if getattr(own, "process", None) != os.getpid():  # A fork has its own.
            kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
            kind = kinds[self._url.scheme]
            own.connection = kind(self._url.netloc, timeout=CONNECT_TIMEOUT_S)
            own.process = os.getpid()
        is_used = own.connection.sock is not None
        if not is_used:
            own.connection.connect()
        own.connection.sock.settimeout(timeout)
        return own.connection, is_used

    def _post(self, verb, body, timeout):
        path = f"{self._url.path.rstrip('/')}/api/v1/throttle/{verb}"
        is_used = False
        try:
            connection, is_used = self._connection(timeout)
            connection.request("POST", path, json.dumps(body), self._headers)
            response = connection.getresponse()
            status, text = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._own.connection.close()
            # Servers close what was idle for long: that is not being away.
            if is_used and isinstance(error, ConnectionError):
                return self._post(verb, body, timeout)
            raise Away(f"{self._url.netloc}: {error!r}") from error
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {"detail": text[:200]}
        if status == 200 or (status == 429 and "granted" in answer):
            return answer
        kind = Away if status == 429 or status >= 500 else Wrong
        errors = answer.get("errors", "")
        raise kind(f"{status} {answer.get('code')}: {answer.get('detail')} {errors}")


class RedisThrottle(Throttle):
    """Over the Redis protocol ([throttle] listen), by the package `redis`. Each
    question in line has a connection of its own, out of a pool."""

    def __init__(self, address, token, **common):
        super().__init__(**common)
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        host, _, port = address.rpartition(":")
        self._redis, self._address = redis, address
        self._client = redis.Redis(
            host=host,
            port=int(port),
            password=token,
            decode_responses=True,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_timeout=CALL_WAIT_S + ANSWER_TIMEOUT_S,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),  # `acquire` does that, as long as it may.
        )

    def pause(self, key, seconds):
        """Has a key grant nothing for a while: its provider asked for that."""
        self._call("PAUSE", key, max(1, round(seconds * 1000)))

    def _ask(self, limits, urgency, wait, ttl):
        words = []
        for limit in limits:
            words += ["AND"] if words else []
            words += [limit.key, limit.cost]
            for rate in limit.rates:
                words += ["RATE", rate]
            if limit.concurrency:
                words += ["CONCURRENCY", limit.concurrency]
        words += ["CLASS", urgency, "WAIT", round(wait * 1000), "TTL", round(ttl * 1000)]
        answer = self._call("ACQUIRE", *words)
        if answer[0] == 1:
            return answer[1]
        _, by, retry_after_ms = answer
        if retry_after_ms < 0:
            raise Wrong(f"{by} never has as much as that at once")
        raise Refused(by, retry_after_ms / 1000)

    def _release(self, permit):
        self._call("RELEASE", permit)

    def _call(self, *words):
        redis = self._redis
        try:
            return self._client.execute_command(*words)
        except redis.AuthenticationError as error:
            raise Wrong(str(error)) from error
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise Away(f"{self._address}: {error}") from error
        except redis.ResponseError as error:
            kind = Away if str(error).startswith("BUSY") else Wrong
            raise kind(str(error)) from error


def from_environment(**common):
    """By OUTFLOW_THROTTLE=host:port (the Redis protocol) if it is set, else by
    OUTFLOW_SERVER=url; with OUTFLOW_TOKEN."""
    token = os.environ["OUTFLOW_TOKEN"]
    if address := os.environ.get("OUTFLOW_THROTTLE"):
        return RedisThrottle(address, token, **common)
    url = os.environ.get("OUTFLOW_SERVER", "http://127.0.0.1:8025")
    return HttpThrottle(url, token, **common)


if __name__ == "__main__":
    # Ten calls at five a second, of which two run at once.
    throttle = from_environment()
    began = time.monotonic()
    for number in range(10):
        with throttle.permit(Limit("demo", "5/s burst 1"), Limit("demo-slots", concurrency=2)):
            print(f"{time.monotonic() - began:6.3f} s: call {number}", flush=True)
