"""Submits as any Python program would.

usage: submit.py send|stranger|misspelt|certificate LETTER.json
"""

import hashlib
import json
import smtplib
import ssl
import sys
from email.message import EmailMessage

mode = sys.argv[1]
with open(sys.argv[2], encoding="utf-8") as file:
    letter = json.load(file)


def say(what, pair):
    print(what, pair[0], pair[1].decode())


def composed():
    message = EmailMessage()
    message["From"] = "Shop <%s>" % letter["from"]
    message["To"] = ", ".join(letter["to"])
    message["Subject"] = letter["subject"]
    message["Message-ID"] = letter["message_id"]
    message["X-Outflow-Class"] = "high"
    message["X-Outflow-Tenant"] = "acme"
    message["X-Outflow-Campaign"] = letter["campaign"]
    message.set_content(letter["text"], cte="8bit")
    with open(letter["file"], "rb") as file:
        message.add_attachment(file.read(), maintype="application", subtype="octet-stream",
                               filename="file.bin")
    return message


server = smtplib.SMTP("localhost", int(letter["port"]), timeout=60)
server.starttls(context=ssl.create_default_context(cafile=letter["ca_file"]))
if mode == "certificate":
    print(hashlib.sha256(server.sock.getpeercert(binary_form=True)).hexdigest())
elif mode == "stranger":
    server.ehlo()
    say("mail", server.mail(letter["from"]))
    say("data", server.docmd("DATA"))
    try:
        server.login("any", "wrong")
    except smtplib.SMTPAuthenticationError as error:
        say("login", (error.smtp_code, error.smtp_error))
    server.close()
    sys.exit()
else:
    server.login("any", letter["token"])
    message = composed()
    if mode == "misspelt":
        message["X-Outflow-Clas"] = "high"
    server.set_debuglevel(1)
    server.send_message(message, mail_options=["BODY=8BITMIME"])
    server.set_debuglevel(0)
server.quit()
