"""Reads mails, from a folder or from a dump of smtp-sink, and compares them with
what was to be sent. Each has two signatures, and both must hold.

usage: read_mail.py EXPECTED.json RECORDS.json PLACE
"""

import base64
import email
import email.policy
import email.utils
import json
import os
import re
import sys

import dkim


def lines(text):
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def payload(part):
    """What is in a part, with line ends made equal."""
    data = part.get_payload(decode=True) or b""
    if part.get_content_maintype() != "text":
        return data
    return lines(data.decode(part.get_content_charset("utf-8"))).encode()


def check_raw(message, raw):
    """A message that came whole has the same parts, and no hidden recipients."""
    wanted = email.message_from_bytes(raw, policy=email.policy.default)
    assert not message["bcc"], message["bcc"]
    assert message["subject"] == wanted["subject"], message["subject"]
    assert message["from"] == wanted["from"], message["from"]
    parts, wanted_parts = list(message.walk()), list(wanted.walk())
    assert len(parts) == len(wanted_parts), parts
    for part, other in zip(parts, wanted_parts):
        assert part.get_content_type() == other.get_content_type(), part
        if not part.is_multipart():
            assert payload(part) == payload(other), part


def people(field):
    return [(one.display_name, one.addr_spec) for one in field.addresses] if field else []


def check(message, letter):
    for part in message.walk():
        assert not part.defects, part.defects
    if letter.get("raw"):
        return check_raw(message, base64.b64decode(letter["raw"]))
    assert (message["subject"] or "") == (letter["subject"] or ""), message["subject"]
    assert people(message["to"]) == email.utils.getaddresses(letter["to"]), message["to"]
    assert people(message["from"]) == email.utils.getaddresses([letter["from"]])
    if letter.get("reply_to"):
        assert people(message["reply-to"]) == email.utils.getaddresses([letter["reply_to"]])
    text = message.get_body(("plain",)).get_content()
    assert lines(text) == lines(letter["text"]), text[:200]
    if letter.get("html"):
        html = message.get_body(("html",)).get_content()
        assert lines(html) == lines(letter["html"]), html[:200]
    for name, value in letter["headers"].items():
        assert message[name].split() == value.split(), (name, message[name])
    found = [part for part in message.walk() if part.get_filename()]
    assert len(found) == len(letter["attachments"]), len(found)
    for part, file in zip(found, letter["attachments"]):
        assert part.get_filename() == file["filename"], part.get_filename()
        assert part.get_payload(decode=True) == base64.b64decode(file["content"])
    unsubscribe = letter.get("unsubscribe")
    if unsubscribe:
        assert "<%s>" % unsubscribe["url"] in message["list-unsubscribe"]
        assert message["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"


def check_signatures(data, message, records):
    def ask(name, timeout=5):
        return records[name.decode()].encode()

    def holds(data, index):
        try:
            return dkim.DKIM(data).verify(idx=index, dnsfunc=ask)
        except dkim.ValidationError:
            return False

    signatures = [str(value) for value in message.get_all("dkim-signature")]
    algorithms = sorted(re.search(r"a=([a-z0-9-]+)", value)[1] for value in signatures)
    assert algorithms == ["ed25519-sha256", "rsa-sha256"], algorithms
    # Another author above the one that was signed, where readers look.
    forged = b"From: other@example.com\n" + data
    for index in range(len(signatures)):
        assert holds(data, index), "%s does not hold" % signatures[index]
        assert not holds(forged, index), "%s holds for anything" % signatures[index]


def mails(place):
    """The bytes of each mail."""
    if os.path.isdir(place):
        for name in sorted(os.listdir(place)):
            with open(os.path.join(place, name), "rb") as file:
                yield file.read()
    else:
        with open(place, "rb") as file:
            pieces = re.split(rb"(?m)^(?=X-Client-Addr: )", file.read())
        yield from filter(None, pieces)


def main(expected, records, place):
    with open(expected, encoding="utf-8") as file:
        letters = {letter["message_id"]: letter for letter in json.load(file)}
    with open(records, encoding="utf-8") as file:
        records = json.load(file)
    for data in mails(place):
        message = email.message_from_bytes(data, policy=email.policy.default)
        letter = letters.pop(message["message-id"].strip())
        try:
            check(message, letter)
            check_signatures(data, message, records)
        except AssertionError:
            print("in %s, %r" % (letter["message_id"], letter["subject"]), file=sys.stderr)
            raise
    assert not letters, "never came: %s" % sorted(letters)


main(*sys.argv[1:])
