//! Mail that nests too deep is refused by every way in, and the server goes on.

use std::io::{Read, Write};
use std::net::TcpStream;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::process::{Place, Server, submit, wait_state};
use crate::submitter::{Submitter, address_of};

const LEVELS: usize = 60_000;

/// Messages in messages, and multiparts in multiparts.
fn bombs() -> [String; 2] {
    let messages = "Content-Type: message/rfc822\r\n\r\n".repeat(LEVELS);
    let multiparts = (0..LEVELS / 3)
        .map(|no| format!("Content-Type: multipart/mixed; boundary=b{no}\r\n\r\n--b{no}\r\n"));
    [messages, multiparts.collect()]
}

/// Hands a report in as it came by mail: the status line of the answer.
fn report(server: &Server, mail: &str) -> String {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST /api/v1/feedback/dsn HTTP/1.1\r\nHost: outflow\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Type: message/rfc822\r\nContent-Length: {}\r\n\r\n",
        server.token,
        mail.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(mail.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn mail_that_nests_too_deep_is_refused_and_stops_nobody() {
    let place = Place::new("bombs");
    place.configure("[smtp]\nlisten = \"127.0.0.1:0\"\n");
    let server = place.start();
    let mut client = server.client();
    for bomb in bombs() {
        let raw = STANDARD.encode(format!("From: a@shop.example\r\n{bomb}"));
        let message = json!({ "from": "a@shop.example", "to": "b@example.org", "raw": raw });
        let answer = client.post("/api/v1/messages", &message).unwrap();
        assert_eq!(answer.status, 422, "{}", answer.text);
        assert!(answer.text.contains("nested"), "{}", answer.text);
        let mut smtp = Submitter::login(address_of(&server), &server.token).unwrap();
        let field = bomb.trim_end().trim_end_matches(":").to_owned();
        let reply = smtp.submit_to(&["b@example.org"], &field, "554").unwrap();
        assert!(reply.contains("nested"), "{reply}");
        let status = report(&server, &bomb);
        assert!(!status.is_empty() && !status.contains(" 5"), "{status}");
    }
    let id = submit(&mut client, json!({}));
    wait_state(&mut client, &id, "delivered");
    server.kill();
    let server = place.start();
    let id = submit(&mut server.client(), json!({}));
    wait_state(&mut server.client(), &id, "delivered");
    server.stop();
}
