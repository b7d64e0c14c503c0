"""Submits as any Python program would, and says what it heard, as JSON."""

import hashlib
import json
import smtplib
import ssl
import sys
from email.message import EmailMessage

port, ca_file, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]
heard = {}


def connect(tls=True):
    server = smtplib.SMTP("localhost", port, timeout=60)
    server.ehlo("client.example")
    if tls:
        server.starttls(context=ssl.create_default_context(cafile=ca_file))
        server.ehlo("client.example")
        der = server.sock.getpeercert(binary_form=True)
        heard["certificate"] = hashlib.sha256(der).hexdigest()
    return server


def say(pair):
    code, text = pair
    return f"{code} {text.decode()}"


if mode == "certificate":
    connect().quit()
elif mode == "stranger":
    server = connect()
    heard["mail"] = say(server.mail("a@example.com"))
    heard["rcpt"] = say(server.rcpt("b@example.net"))
    heard["data"] = say(server.docmd("DATA"))
    for password in ["wrong", "falsch"]:
        try:
            server.login("anybody", password)
        except smtplib.SMTPAuthenticationError as error:
            heard[password] = say((error.smtp_code, error.smtp_error))
        except smtplib.SMTPServerDisconnected:
            heard[password] = "gone"
    server.close()
else:
    server = connect()
    heard["features"] = sorted(server.esmtp_features)
    if mode == "login":
        server.user, server.password = "anybody", "token"
        server.auth("LOGIN", server.auth_login)
    else:
        server.login("anybody", "token")
    message = EmailMessage()
    message["From"] = "Jürgen <juergen@example.com>"
    message["To"] = "Ann <ann@example.net>, Bob <bob@example.org>"
    message["Subject"] = "Grüße von weit her"
    message["X-Outflow-Class"] = "high"
    message["X-Outflow-Campaign"] = "Frühling"
    message["X-Outflow-Tenant"] = "acme"
    message.set_content("Schöne Grüße\n.\nvon hier\n", cte="8bit")
    failed = server.send_message(message, mail_options=["BODY=8BITMIME"])
    heard["failed"] = failed
    server.mail("bounces@example.com", ["SMTPUTF8"])
    heard["idn"] = say(server.rcpt("jürgen@bücher.example", []))
    heard["bdat"] = []
    body = b"From: ann@example.com\r\n\r\nin chunks\r\n"
    for chunk, last in [(body[:9], ""), (body[9:], " LAST")]:
        server.send(f"BDAT {len(chunk)}{last}\r\n".encode() + chunk)
        heard["bdat"].append(say(server.getreply()))
    heard["quit"] = say(server.quit())

print(json.dumps(heard))
