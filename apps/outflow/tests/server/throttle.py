"""A client that knows nothing of us: redis-py, as users of redis-cell call it."""

import sys

import redis

port, token = int(sys.argv[1]), sys.argv[2]


def check(got, wanted):
    if got != wanted:
        raise SystemExit(f"{got!r} is not {wanted!r}")


# Version 5 is the first that speaks the third version of the protocol.
speaks_both = int(redis.__version__.split(".")[0]) >= 5
for protocol in (2, 3) if speaks_both else (2,):
    version = {"protocol": protocol} if speaks_both else {}
    client = redis.Redis(port=port, password=token, decode_responses=True, **version)
    check(client.ping(), True)
    key = f"user-{protocol}"
    first = client.execute_command("CL.THROTTLE", key, 4, 1, 10)
    check(first, [0, 5, 4, -1, 10])
    peek = client.execute_command("CL.THROTTLE", key, 4, 1, 10, 0)
    check(peek, [0, 5, 4, -1, 10])
    pipe = client.pipeline(transaction=False)
    for _ in range(100):
        pipe.execute_command("CL.THROTTLE", f"pipe-{protocol}", 9, 1, 5)
    answers = pipe.execute()
    check([answer[0] for answer in answers], [0] * 10 + [1] * 90)
    check(answers[10][2], 0)
    check(client.execute_command("ACQUIRE", key, "RATE", "1/s burst 2"), [1, "0"])
    try:
        client.execute_command("CL.THROTTLE", key)
        raise SystemExit("too few words were taken")
    except redis.ResponseError as error:
        check("Usage: cl.throttle" in str(error), True)
    client.close()

try:
    redis.Redis(port=port, password="wrong").ping()
    raise SystemExit("a wrong token was taken")
except (redis.AuthenticationError, redis.ResponseError):
    pass
print("done")
