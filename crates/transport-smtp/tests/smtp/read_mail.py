"""Reads a folder of mails and compares them with what was to be sent.

usage: read_mail.py EXPECTED.json FOLDER
"""

import base64
import email
import email.policy
import json
import os
import sys


def lines(text):
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def check(message, letter):
    for part in message.walk():
        assert not part.defects, part.defects
    if letter.get("raw"):
        return
    assert (message["subject"] or "") == (letter["subject"] or ""), message["subject"]
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


def main(expected, folder):
    with open(expected, encoding="utf-8") as file:
        letters = {letter["message_id"]: letter for letter in json.load(file)}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            message = email.message_from_binary_file(file, policy=email.policy.default)
        letter = letters.pop(message["message-id"].strip())
        try:
            check(message, letter)
        except AssertionError:
            print("in %s, %r" % (letter["message_id"], letter["subject"]), file=sys.stderr)
            raise
    assert not letters, "never came: %s" % sorted(letters)


main(sys.argv[1], sys.argv[2])
