"""What scripts/check-api tells Schemathesis beyond the document."""

import os
import urllib.parse

import schemathesis

# Names with a slash in them are not generated, since a parameter of a path
# cannot have one as it is. Valid requests about lanes, limits and policies get
# often one of these, which are written with %2F.
NAMES = {
    "{lane}": ["default/isp:google", "bulk/host:api.example.com"],
    "{path}": ["isp/google", "tenant/acme", "account/ses-1/isp/google", "class/low", "global",
               "isp/*", "lane/default/isp:google"],
    "{key}": ["isp:google", "account:ses-1#day", "account:ses-1/isp:google"],
}
# What a schema cannot say: which fields go together, and that times are ahead.
# Every other valid request has these fields changed, or taken away (None).
BODIES = {
    "POST /api/v1/messages": {
        "from": "Shop <orders@shop.example>", "to": ["user@gmail.com", "user@example.com"],
        "subject": "Hello", "cc": None, "bcc": None, "reply_to": None, "return_path": None,
        "raw": None, "not_before": None, "expires_at": None},
    "POST /api/v1/messages/bulk": {
        "action": "cancel", "match": {"tenant": "acme", "class": "low"}, "to_pool": None},
    "POST /api/v1/pauses": {"match": {"tenant": "acme", "isp": "google"}, "until": None},
}
turn = 0


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives such names, and spares the token of this run: without it nothing
    else would be tried. Other administrators' tokens, which the run makes, are
    taken away.
    """
    global turn
    path = case.operation.path
    own = os.environ["OUTFLOW_OWN_TOKEN_ID"]
    if path.endswith("/tokens/{id}") and case.path_parameters.get("id") == own:
        case.path_parameters["id"] = "nobody"
    if not is_valid(case):
        return
    turn += 1
    if turn % 2:
        return
    for place, names in NAMES.items():
        if place in path:
            name = names[turn // 2 % len(names)]
            case.path_parameters[place.strip("{}")] = urllib.parse.quote(name, safe="")
    fields = BODIES.get(f"{case.method} {path}")
    if fields and isinstance(case.body, dict) and "messages" not in case.body:
        case.body = {**case.body, **fields}
        case.body = {name: value for name, value in case.body.items()
                     if name not in fields or value is not None}


def is_valid(case):
    """Whether the request is meant to be accepted."""
    return case.meta is None or case.meta.generation.mode.name == "POSITIVE"
