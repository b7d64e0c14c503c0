"""Reads what smtp-sink took, and compares it with what was submitted.

usage: read.py FOLDER LETTER.json...
"""

import email
import email.policy
import json
import os
import sys

# What a sink puts before a mail, and what was put before it on the way.
TRACE = {"x-client-addr", "x-client-proto", "x-helo-args", "x-mail-args", "x-rcpt-args",
         "received"}


def lines(text):
    return text.replace("\r\n", "\n").rstrip("\n")


def check(message, letter):
    for part in message.walk():
        assert not part.defects, part.defects
    names = [name.lower() for name in message.keys()]
    assert not [name for name in names if name.startswith("x-outflow")], names
    assert message["subject"] == letter["subject"], message["subject"]
    assert message["from"].addresses[0].addr_spec == letter["from"], message["from"]
    assert message["x-mail-args"].startswith("<%s>" % letter["from"]), message["x-mail-args"]
    to = [one.addr_spec for one in message["to"].addresses]
    assert to == letter["to"], to
    text = message.get_body(("plain",)).get_content()
    assert lines(text) == lines(letter["text"]), text
    with open(letter["file"], "rb") as file:
        [part] = message.iter_attachments()
        assert part.get_filename() == "file.bin", part.get_filename()
        assert part.get_payload(decode=True) == file.read()


def main(folder, *files):
    letters = {}
    for name in files:
        with open(name, encoding="utf-8") as file:
            letter = json.load(file)
        letters[letter["message_id"]] = (letter, {})
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            message = email.message_from_binary_file(file, policy=email.policy.default)
        letter, copies = letters[message["message-id"].strip()]
        check(message, letter)
        recipient = message["x-rcpt-args"].split(">")[0].strip("<")
        assert recipient not in copies, "%s got it twice" % recipient
        for field in TRACE:
            del message[field]
        copies[recipient] = message.as_bytes()
    for letter, copies in letters.values():
        assert sorted(copies) == sorted(letter["to"]), sorted(copies)
        assert len(set(copies.values())) == 1, "the copies differ"


main(*sys.argv[1:])
