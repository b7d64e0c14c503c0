//! Mail that is made to hurt whoever reads it, over every way in: the server
//! answers others throughout, stays small, and starts again.
//!
//! `OUTFLOW_BOMBS=100` sends each bomb so often over each way; without it twice.

mod kinds;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::client::Client;
use crate::process::{Place, Server, message, submit, wait_state};
use crate::sink::Sink;
use crate::submitter::{Submitter, address_of};
use kinds::{mails, submissions};

/// How much larger than idle the server may become.
const GROWTH_MB: u64 = 300;

/// Sends a body: the status of the answer.
fn post(server: &Server, path: &str, media: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST /api/v1/{path} HTTP/1.1\r\nHost: outflow\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n",
        server.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Who is refused early may be hung up on before all is sent.
    let _ = stream.write_all(body.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    status.unwrap_or_default()
}

/// Stops who asks, also if the test fails.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn repeats() -> usize {
    std::env::var("OUTFLOW_BOMBS").map_or(2, |it| it.parse().unwrap())
}

/// Somebody who asks while bombs fall, until `stop`: how long each answer took,
/// in milliseconds. Any that is not the usual one fails.
fn ask_on(mut client: Client, stop: &AtomicBool) -> Vec<f64> {
    let mut took = Vec::new();
    let body = message(json!({ "to": "honest@gmail.com", "pool": "honest" }));
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        assert_eq!(client.get("/healthz").unwrap().status, 200);
        let answer = client.post("/api/v1/messages", &body).unwrap();
        assert_eq!(answer.status, 202, "{}", answer.text);
        took.push(begun.elapsed().as_secs_f64() * 1_000.0);
        thread::park_timeout(Duration::from_millis(20));
    }
    took.sort_by(f64::total_cmp);
    took
}

/// Sends every bomb over every way: what was answered, and how often.
fn throw(server: &Server, times: usize) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut answers: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    let mut note = |way: &str, name: &str, answer: String| {
        assert!(
            !answer.starts_with(['0', '5']) || way == "smtp",
            "{way} {name}: {answer}"
        );
        let counts = answers.entry(format!("{name} {way}")).or_default();
        *counts.entry(answer).or_default() += 1;
    };
    for bomb in mails() {
        let raw = STANDARD.encode(&bomb.mail);
        let body = json!({ "from": "a@shop.example", "to": "b@example.org", "raw": raw });
        let body = body.to_string();
        for _ in 0..times {
            let status = post(server, "messages", "application/json", &body);
            note("rest", bomb.name, status.to_string());
            let mut smtp = Submitter::login(address_of(server), &server.token).unwrap();
            let reply = smtp.submit_whole("b@example.org", &bomb.mail).unwrap();
            assert!(
                reply.starts_with("250") || reply.starts_with('5'),
                "{}: {reply}",
                bomb.name
            );
            note("smtp", bomb.name, reply.chars().take(3).collect());
            for way in ["feedback/dsn", "feedback/arf"] {
                let status = post(server, way, "message/rfc822", &bomb.mail);
                note(way, bomb.name, status.to_string());
            }
        }
    }
    for bomb in submissions() {
        for _ in 0..times {
            for way in ["messages", "feedback/events", "throttle/acquire"] {
                let status = post(server, way, "application/json", &bomb.mail);
                note(way, bomb.name, status.to_string());
            }
            let status = post(server, "messages", "application/x-ndjson", &bomb.mail);
            note("lines", bomb.name, status.to_string());
        }
    }
    answers
}

#[test]
fn bombs_stop_nobody_and_fill_nothing() {
    let place = Place::new("bombs");
    let sink = Sink::start();
    place.configure(&format!(
        "[smtp]\nlisten = \"127.0.0.1:0\"\n[[account]]\nid = \"a\"\nhost = \"127.0.0.1\"\n\
         port = {}\ntls = \"none\"\n[[account]]\nid = \"b\"\npool = \"honest\"\n\
         transport = \"sandbox\"\n",
        sink.address.port()
    ));
    let server = place.start();
    let id = submit(&mut server.client(), json!({}));
    wait_state(&mut server.client(), &id, "delivered");
    let idle = server.memory_mb("VmRSS");
    let stop = AtomicBool::new(false);
    let (answers, took) = thread::scope(|scope| {
        let client = server.client();
        let asking = scope.spawn(|| ask_on(client, &stop));
        let stopping = Stopping(&stop);
        let answers = throw(&server, repeats());
        drop(stopping);
        (answers, asking.join().unwrap())
    });
    let (peak, now) = (server.memory_mb("VmHWM"), server.memory_mb("VmRSS"));
    for (bomb, counts) in &answers {
        eprintln!("{bomb}: {counts:?}");
    }
    let p99 = took[took.len() * 99 / 100];
    eprintln!(
        "bombs: idle {idle} MB, peak {peak} MB, at the end {now} MB; {} pairs of honest requests, \
         p99 {p99:.1} ms",
        took.len()
    );
    assert!(peak <= idle + GROWTH_MB, "{peak} MB, idle {idle} MB");
    // What is refused everywhere, and what has to be.
    for kind in ["nested_messages", "nested_multiparts"] {
        let of = |way: &str| answers[&format!("{kind} {way}")].keys().cloned();
        assert_eq!(of("rest").collect::<Vec<_>>(), ["422"], "{kind}");
        assert_eq!(of("smtp").collect::<Vec<_>>(), ["554"], "{kind}");
    }
    let id = submit(&mut server.client(), json!({}));
    wait_state(&mut server.client(), &id, "delivered");
    server.kill();
    let server = place.start();
    let id = submit(&mut server.client(), json!({}));
    wait_state(&mut server.client(), &id, "delivered");
    server.stop();
}
