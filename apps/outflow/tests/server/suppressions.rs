//! Bounces and complaints come back, and nothing more is sent to whom they are
//! about.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::client::Client;
use crate::mailboxes::Mailboxes;
use crate::process::{
    PATIENCE, Place, Server, is_private, message, metric, show, submit, wait_for, wait_state,
};
use crate::submitter::{Submitter, address_of};

const DOMAIN: &str = "bounces.shop.example";

/// A server whose mail goes to these mailboxes, and whose bounces come back.
fn place(name: &str, mailboxes: &Mailboxes) -> Place {
    let place = Place::new(name);
    place.configure(&format!(
        "[smtp]\nlisten = \"127.0.0.1:0\"\n[feedback]\nbounce_domain = \"{DOMAIN}\"\n\
         [destinations]\npolicies = false\n[dns]\nlookups = \"never\"\n\
         [[account]]\nid = \"relay\"\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n\
         insecure = true\nhelo = \"client.example\"\n",
        mailboxes.address.port(),
    ));
    place
}

fn suppressed(client: &mut Client, query: &str) -> Vec<Value> {
    let answer = client.get(&format!("/api/v1/suppressions?limit=1000&{query}"));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["suppressions"].as_array().unwrap().clone()
}

fn wait_suppressed(client: &mut Client, recipient: &str) -> Value {
    let query = format!("recipient={}", recipient.replace('@', "%40"));
    wait_for(&format!("{recipient} is on the list"), || {
        suppressed(client, &query).pop()
    })
}

/// Submits a message that must end as suppressed; why.
fn is_stopped(client: &mut Client, to: &str, class: &str) -> String {
    let id = submit(client, json!({ "to": to, "class": class }));
    let ended = wait_state(client, &id, "suppressed");
    assert_eq!(ended["attempts"], 0, "{ended}");
    let said = &ended["last_error"]["provider_message"];
    said.as_str()
        .unwrap_or_else(|| panic!("{ended}"))
        .to_owned()
}

#[test]
fn a_hard_bounce_stops_what_comes_after_it_by_every_way_in() {
    let mailboxes = Mailboxes::start();
    let place = place("bounce", &mailboxes);
    let server = place.start();
    let mut client = server.client();
    let to = "gone1@example.net";
    let first = submit(&mut client, json!({ "to": to }));
    let bounced = wait_state(&mut client, &first, "bounced");
    assert_eq!(bounced["last_error"]["enhanced"], "5.1.1", "{bounced}");
    let entry = wait_suppressed(&mut client, to);
    assert_eq!(entry["reason"], "hard_bounce", "{entry}");
    assert_eq!(
        (&entry["source"], &entry["message_id"]),
        (&json!("reply"), &json!(first))
    );
    for class in ["low", "critical"] {
        let said = is_stopped(&mut client, "GONE1@Example.net", class);
        assert!(said.contains("hard_bounce"), "{said}");
    }
    // Over SMTP, and in a batch with others.
    let mut smtp = Submitter::login(address_of(&server), &server.token).unwrap();
    let id = smtp.submit(to, "again").unwrap();
    wait_state(&mut client, &id, "suppressed");
    let batch = json!({ "messages": [
        message(json!({ "to": "here1@example.net" })), message(json!({ "to": to })),
    ] });
    let answer = client.post("/api/v1/messages", &batch).unwrap().json();
    let id_of = |at: usize| answer["accepted"][at]["id"].as_str().unwrap().to_owned();
    wait_state(&mut client, &id_of(0), "delivered");
    wait_state(&mut client, &id_of(1), "suppressed");
    // Another tenant has a list of its own.
    let other = submit(&mut client, json!({ "to": to, "tenant": "other" }));
    wait_state(&mut client, &other, "bounced");
    assert_eq!(mailboxes.named(to), 2);
    // The list survives a stop, and a kill.
    server.stop();
    let server = place.start();
    is_stopped(&mut server.client(), to, "normal");
    server.kill();
    let server = place.start();
    let mut client = server.client();
    is_stopped(&mut client, to, "normal");
    assert_eq!(
        metric(&mut client, "outflow_suppressed_recipients"),
        Some(2.0)
    );
    // Who is taken off it is written to again.
    let path = "/api/v1/suppressions?recipient=gone1%40example.net&tenant=default";
    let answer = client.call("DELETE", path, None).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    let id = submit(&mut client, json!({ "to": to }));
    wait_state(&mut client, &id, "bounced");
    server.stop();
}

/// A message that waits when its recipient is suppressed is not sent either.
#[test]
fn a_message_that_waits_is_stopped_too() {
    let mailboxes = Mailboxes::start();
    let place = place("waits", &mailboxes);
    let server = place.start();
    let mut client = server.client();
    let pause = json!({ "match": { "tenant": "default" } });
    let pause = client.post("/api/v1/pauses", &pause).unwrap().json();
    let id = submit(&mut client, json!({ "to": "here2@example.net" }));
    let entry = json!({ "recipient": "here2@example.net", "reason": "opt_out" });
    let answer = client.post("/api/v1/suppressions", &entry).unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text);
    let path = format!("/api/v1/pauses/{}", pause["id"].as_str().unwrap());
    client.call("DELETE", &path, None).unwrap();
    wait_state(&mut client, &id, "suppressed");
    assert_eq!(mailboxes.named("here2@example.net"), 0);
    server.stop();
}

/// What a mail server without a token hears, command by command.
fn report(to: SocketAddr, recipient: &str, mail: &str) -> Vec<String> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(stream);
    let mut heard = Vec::new();
    let said = [
        "EHLO mx.example.net".to_owned(),
        "MAIL FROM:<>".to_owned(),
        format!("RCPT TO:<{recipient}>"),
        "DATA".to_owned(),
        format!("{mail}\r\n."),
    ];
    for said in std::iter::once(None).chain(said.iter().map(Some)) {
        if let Some(said) = said {
            lines
                .get_mut()
                .write_all(format!("{said}\r\n").as_bytes())
                .unwrap();
        }
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            if line.as_bytes().get(3) != Some(&b'-') {
                heard.push(line.trim_end().to_owned());
                break;
            }
        }
        if heard.last().is_some_and(|line| line.starts_with('5')) {
            break;
        }
    }
    heard
}

fn dsn(recipient: &str) -> String {
    format!(
        "From: MAILER-DAEMON@mx.example.net\r\nSubject: Undelivered Mail Returned to Sender\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nSorry.\r\n\
         --b\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; mx.example.net\r\n\r\n\
         Final-Recipient: rfc822; {recipient}\r\nAction: failed\r\nStatus: 5.1.1\r\n\
         Diagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\n--b--\r\n"
    )
}

fn arf() -> String {
    "From: fbl@mx.example.net\r\nSubject: complaint\r\n\
     Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n\
     --b\r\nContent-Type: text/plain\r\n\r\nA complaint.\r\n\
     --b\r\nContent-Type: message/feedback-report\r\n\r\n\
     Feedback-Type: abuse\r\nUser-Agent: FBL/1.0\r\nVersion: 1\r\n\r\n--b--\r\n"
        .to_owned()
}

fn delivered(client: &mut Client, fields: Value) -> String {
    let id = submit(client, fields);
    wait_state(client, &id, "delivered");
    id
}

#[test]
fn reports_come_back_to_signed_addresses_only() {
    let mailboxes = Mailboxes::start();
    let place = place("reports", &mailboxes);
    let server = place.start();
    let mut client = server.client();
    assert!(is_private(&place.data().join("return-address-keys")));
    let id = delivered(&mut client, json!({ "to": "here3@example.net" }));
    let sender = mailboxes.sender_to("here3@example.net");
    assert!(
        sender.starts_with("bounce+") && sender.ends_with(&format!("@{DOMAIN}")),
        "{sender}"
    );
    let listener = address_of(&server);

    // Guessed, at another domain, and with one letter changed.
    let last = sender.find('@').unwrap() - 1;
    let mut forged = sender.clone();
    let other = if &sender[last..=last] == "a" {
        "b"
    } else {
        "a"
    };
    forged.replace_range(last..=last, other);
    for (address, code) in [
        (forged.as_str(), "550 5.1.1"),
        ("bounce+x@bounces.shop.example", "550 5.1.1"),
        ("here3@example.net", "530 5.7.0"),
    ] {
        let heard = report(listener, address, "");
        assert!(
            heard.last().unwrap().starts_with(code),
            "{address}: {heard:?}"
        );
    }
    assert!(suppressed(&mut client, "").is_empty());

    let heard = report(listener, &sender, &dsn("here3@example.net"));
    assert!(heard.last().unwrap().starts_with("250 2.0.0"), "{heard:?}");
    let entry = wait_suppressed(&mut client, "here3@example.net");
    assert_eq!(
        (&entry["source"], &entry["message_id"]),
        (&json!("dsn"), &json!(id))
    );
    is_stopped(&mut client, "here3@example.net", "critical");
    let happened = wait_for("the receipt says so", || {
        let message = show(&mut client, &id);
        let events = message["events"].as_array().unwrap().clone();
        events.into_iter().find(|event| event["what"] == "feedback")
    });
    assert_eq!(happened["error"]["enhanced"], "5.1.1", "{happened}");

    // A complaint stops what is not urgent.
    delivered(&mut client, json!({ "to": "here4@example.net" }));
    let sender = mailboxes.sender_to("here4@example.net");
    report(listener, &sender, &arf());
    wait_suppressed(&mut client, "here4@example.net");
    let said = is_stopped(&mut client, "here4@example.net", "normal");
    assert!(said.contains("complaint"), "{said}");
    delivered(
        &mut client,
        json!({ "to": "here4@example.net", "class": "critical" }),
    );

    // What nobody understands is taken, counted, and changes nothing.
    let heard = report(listener, &sender, "Subject: hello\r\n\r\nI am away.");
    assert!(heard.last().unwrap().starts_with("250 2.0.0"), "{heard:?}");
    assert_eq!(
        metric(&mut client, "outflow_reports_total{result=\"unread\"}"),
        Some(1.0)
    );
    assert_eq!(
        metric(&mut client, "outflow_reports_total{result=\"matched\"}"),
        Some(2.0)
    );
    // Whoever names a return address hears of bounces himself.
    let named = json!({ "to": "here5@example.net", "return_path": "me@shop.example" });
    delivered(&mut client, named);
    assert_eq!(mailboxes.sender_to("here5@example.net"), "me@shop.example");

    // The key outlives the process: a bounce that comes later is still ours.
    delivered(&mut client, json!({ "to": "here6@example.net" }));
    let sender = mailboxes.sender_to("here6@example.net");
    server.stop();
    let server = place.start();
    report(address_of(&server), &sender, &dsn("here6@example.net"));
    wait_suppressed(&mut server.client(), "here6@example.net");
    server.stop();
}

fn upload(server: &Server, lines: &str) -> String {
    let mut stream = TcpStream::connect_timeout(&server.address, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /api/v1/suppressions/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: text/csv\r\nContent-Length: {}\r\n\r\n",
        server.token.trim(),
        lines.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(lines.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn an_import_that_was_acknowledged_survives_a_kill() {
    let mailboxes = Mailboxes::start();
    let place = place("import", &mailboxes);
    let server = place.start();
    let lines: String = (0..20_000)
        .map(|no| format!("u{no}@example.net\n"))
        .collect();
    let status = upload(&server, &lines);
    server.kill();
    assert!(status.starts_with("HTTP/1.1 202"), "{status}");
    let server = place.start();
    let mut client = server.client();
    assert_eq!(
        metric(&mut client, "outflow_suppressed_recipients"),
        Some(20_000.0)
    );
    for no in [0, 9_999, 19_999] {
        is_stopped(&mut client, &format!("u{no}@example.net"), "normal");
    }
    server.stop();
}

/// A provider that is wrong about everybody must not empty a list.
#[test]
fn a_surge_of_bounces_is_held_until_somebody_looked() {
    let mailboxes = Mailboxes::start();
    let place = place("surge", &mailboxes);
    let server = place.start();
    let mut client = server.client();
    let messages: Vec<Value> = (0..80)
        .map(|no| message(json!({ "to": format!("gone{no}@example.net") })))
        .collect();
    let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
    assert_eq!(answer.unwrap().status, 202);
    wait_for("all are held", || {
        (suppressed(&mut client, "state=held").len() == 80).then_some(())
    });
    assert!(suppressed(&mut client, "state=active").is_empty());
    assert_eq!(metric(&mut client, "outflow_suppressions_held"), Some(80.0));
    // The audit says which rule it was, and on what evidence.
    let line = wait_for("the audit says so", || {
        let audit = client.get("/api/v1/audit?limit=100").unwrap().json();
        let lines = audit["entries"].as_array().unwrap().clone();
        lines.into_iter().find(|it| it["actor"] == "rule:surge")
    });
    assert_eq!(line["action"], "suppressions.hold", "{line}");
    assert!(
        line["detail"]["hard_bounces"].as_u64() >= Some(50),
        "{line}"
    );
    // They are not in force: the far end is asked again.
    let id = submit(&mut client, json!({ "to": "gone7@example.net" }));
    wait_state(&mut client, &id, "bounced");
    let told = outflow(&place, &["suppressions", "review"], None);
    assert!(
        told.contains("gone7@example.net") && told.contains("--discard"),
        "{told}"
    );
    let told = outflow(
        &place,
        &["suppressions", "review", "--approve", "--yes"],
        None,
    );
    assert!(told.starts_with("80 entries are in force"), "{told}");
    is_stopped(&mut client, "gone7@example.net", "normal");
    // It was wrong after all.
    let undo = ["suppressions", "undo", "--since", "1h", "--destination"];
    let destination = suppressed(&mut client, "").pop().unwrap()["destination"].clone();
    let undo: Vec<&str> = undo.into_iter().chain(destination.as_str()).collect();
    let told = outflow(&place, &undo, None);
    assert!(told.starts_with("80 entries are off the list"), "{told}");
    let id = submit(&mut client, json!({ "to": "gone7@example.net" }));
    wait_state(&mut client, &id, "bounced");
    server.stop();
}

/// What a command prints.
fn outflow(place: &Place, words: &[&str], stdin: Option<&str>) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_outflow"))
        .current_dir(&place.dir)
        .args(["--data-dir", "data"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(stdin.unwrap_or_default().as_bytes())
        .unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command_line_keeps_the_list() {
    let mailboxes = Mailboxes::start();
    let place = place("list", &mailboxes);
    let server = place.start();
    let run = |words: &[&str]| outflow(&place, &[&["suppressions"][..], words].concat(), None);
    let told = run(&[
        "add",
        "A@example.net",
        "--reason",
        "opt-out",
        "--detail",
        "by phone",
    ]);
    assert_eq!(
        told,
        "Nothing of default is sent to a@example.net any more.\n"
    );
    let told = run(&["list"]);
    assert!(
        told.contains("opt_out") && told.contains("by phone"),
        "{told}"
    );
    let file = "recipient,reason\nb@example.net,complaint\nnobody,manual\n";
    let words = ["suppressions", "import", "-"];
    let told = outflow(&place, &words, Some(file));
    assert!(
        told.contains("1 recipients are new") && told.contains("line 3: "),
        "{told}"
    );
    let exported = run(&["export", "--csv"]);
    assert_eq!(exported.lines().count(), 3, "{exported}");
    let told = run(&["remove", "b@example.net"]);
    assert_eq!(told, "b@example.net is off the list.\n");
    fs::write(place.dir.join("list.ndjson"), run(&["export"])).unwrap();
    let told = run(&["import", "list.ndjson", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["added"], &told["known"]), (&json!(0), &json!(1)));
    let audit = outflow(&place, &["audit", "--json"], None);
    for action in [
        "suppressions.add",
        "suppressions.remove",
        "suppressions.import",
    ] {
        assert!(audit.contains(action), "{audit}");
    }
    server.stop();
}
