//! Mail servers that take less than they are sent, and say so in the words of
//! ten providers. What counts is counted there.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, message, wait_for};
use crate::sink::wall;

const SECOND: u64 = 1_000_000_000;
/// What each takes, a second and at once.
const RATE: u64 = 4;
const BURST: u64 = 4;
/// What each account may send a second, far more than is taken.
const POLICY: u64 = 30;
const MESSAGES: usize = 900;
/// A rate is found once so many in a row were taken.
const IN_A_ROW: usize = 40;

/// Whose words, and which.
const WORDS: [(&str, &str); 10] = [
    (
        "gmail.com",
        "421 4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address.",
    ),
    (
        "outlook.com",
        "421 RP-001 The mail server IP connecting to Outlook.com server has exceeded the rate limit allowed.",
    ),
    (
        "hotmail.com",
        "451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (AS77712)",
    ),
    (
        "yahoo.com",
        "421 4.7.0 [TS02] Messages from 192.0.2.1 temporarily deferred",
    ),
    (
        "comcast.net",
        "421 4.1.0 192.0.2.1 Throttled - try again later",
    ),
    (
        "cox.net",
        "452 4.1.0 192.0.2.1 has exceeded the message rate. CXMXRT",
    ),
    ("163.com", "451 DT:SPM 163 smtp14, please try again later"),
    ("aol.com", "421 DYN:T1 Service unavailable"),
    (
        "example.com",
        "454 Throttling failure: Maximum sending rate exceeded.",
    ),
    (
        "example.org",
        "421 4.7.0 Our system has detected an unusual rate of unsolicited mail originating from your IP address.",
    ),
];

/// A server that hides a limit.
struct Hidden {
    address: SocketAddr,
    book: Arc<Mutex<Book>>,
}

/// What it counted: tokens in billionths, and when what came.
#[derive(Default)]
struct Book {
    tokens: u64,
    at: u64,
    tries: Vec<(u64, bool)>,
}

impl Book {
    fn takes(&mut self) -> bool {
        let now = wall();
        let passed = now.saturating_sub(self.at);
        self.at = now;
        self.tokens = (self.tokens + passed.min(100 * SECOND) * RATE).min(BURST * SECOND);
        let takes = self.tokens >= SECOND;
        if takes {
            self.tokens -= SECOND;
        }
        self.tries.push((now, takes));
        takes
    }
}

impl Hidden {
    fn start(words: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let book = Arc::new(Mutex::new(Book {
            tokens: BURST * SECOND,
            at: wall(),
            tries: Vec::new(),
        }));
        let kept = Arc::clone(&book);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                // A client may hang up whenever it likes, also by being killed.
                thread::spawn(move || drop(talk(stream, &kept, words)));
            }
        });
        Self { address, book }
    }

    fn tries(&self) -> Vec<(u64, bool)> {
        self.book.lock().unwrap().tries.clone()
    }
}

fn talk(stream: TcpStream, book: &Mutex<Book>, words: &str) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream).lines();
    out.write_all(b"220 hidden ESMTP\r\n")?;
    while let Some(line) = lines.next().transpose()? {
        let command = line.to_ascii_uppercase();
        match command.get(..4) {
            Some("MAIL") if !book.lock().unwrap().takes() => {
                out.write_all(words.as_bytes())?;
                out.write_all(b"\r\n")?;
                // Who says 421 hangs up.
                if words.starts_with("421") {
                    return Ok(());
                }
            }
            Some("DATA") => {
                out.write_all(b"354 go\r\n")?;
                for line in lines.by_ref() {
                    if line? == "." {
                        break;
                    }
                }
                out.write_all(b"250 2.0.0 Ok\r\n")?;
            }
            Some("QUIT") => return out.write_all(b"221 2.0.0 bye\r\n"),
            _ => out.write_all(b"250 2.0.0 Ok\r\n")?,
        }
    }
    Ok(())
}

/// What was learnt of each account, by its number: the rate now.
fn learnt(client: &mut Client) -> Vec<Option<f64>> {
    let limits = client.get("/api/v1/limits").unwrap().json();
    let of = |index: usize| {
        let mut found = limits["limits"].as_array().unwrap().iter();
        let domain = WORDS[index].0;
        let begins = format!("account:a{index}/");
        let found = found.find(|limit| {
            let key = limit["key"].as_str().unwrap();
            let is_ours = key.starts_with(&begins)
                || key == format!("account:a{index}#learnt")
                || key == format!("host:{domain}#learnt");
            is_ours && key.ends_with("#learnt")
        });
        found.map(|limit| limit["rate"].as_f64().unwrap())
    };
    (0..WORDS.len()).map(of).collect()
}

fn settings(servers: &[Hidden]) -> String {
    let accounts = servers.iter().enumerate().map(|(index, server)| {
        format!(
            "[[account]]\nid = \"a{index}\"\npool = \"p{index}\"\n\
             host = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nlimits = [\"{POLICY}/s\"]\n",
            server.address.port()
        )
    });
    accounts.collect()
}

/// Whether enough of the last tries in a row were taken.
fn is_settled(tries: &[(u64, bool)]) -> bool {
    tries.len() >= IN_A_ROW
        && tries[tries.len() - IN_A_ROW..]
            .iter()
            .all(|(_, taken)| *taken)
}

/// The most tries within any `length`, from `from` on.
fn most_within(tries: &[(u64, bool)], from: u64, length: u64) -> usize {
    let mut window: VecDeque<u64> = VecDeque::new();
    let mut most = 0;
    for (at, _) in tries.iter().filter(|(at, _)| *at >= from) {
        window.push_back(*at);
        while window.front().is_some_and(|first| at - first > length) {
            window.pop_front();
        }
        most = most.max(window.len());
    }
    most
}

#[test]
fn ten_hidden_limits_are_found_and_kept_to_also_over_a_kill() {
    let servers: Vec<Hidden> = WORDS
        .iter()
        .map(|(_, words)| Hidden::start(words))
        .collect();
    let place = Place::new("hidden-limits");
    place.configure(&settings(&servers));
    let server = place.start();
    let mut client = server.client();
    for (index, (domain, _)) in WORDS.iter().enumerate() {
        let messages: Vec<Value> = (0..MESSAGES)
            .map(|no| {
                message(json!({ "to": format!("u{no}@{domain}"), "pool": format!("p{index}") }))
            })
            .collect();
        let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
        assert_eq!(answer.unwrap().status, 202);
    }
    // Each is refused, and slowed down for it.
    wait_for("all learn", || {
        let rates = learnt(&mut client);
        let is_slower = |rate: &Option<f64>| rate.is_some_and(|rate| rate < POLICY as f64 * 0.7);
        rates.iter().all(is_slower).then_some(())
    });
    let before = learnt(&mut client);
    server.kill();
    let killed_at = wall();
    let server = place.start();
    let mut client = server.client();
    wait_for("all are known again", || {
        learnt(&mut client)
            .iter()
            .all(Option::is_some)
            .then_some(())
    });
    for (index, hidden) in servers.iter().enumerate() {
        let name = WORDS[index].0;
        // Not one of them sends faster than it did before, but for the burst,
        // a probe, and what a busy machine holds up and lets go at once.
        let most = most_within(&hidden.tries(), killed_at, SECOND) as f64;
        let rate = before[index].unwrap();
        assert!(
            most <= rate.max(1.0) * 2.0 + 4.0,
            "{name}: {most} in a second after {rate}/s"
        );
    }
    // Then each flows, under what its far end takes.
    for (index, hidden) in servers.iter().enumerate() {
        let name = WORDS[index].0;
        let settled = || is_settled(&hidden.tries()).then_some(());
        wait_patiently(&format!("{name} is found"), settled, || {
            format!(
                "{:?} {:?}",
                learnt(&mut client)[index],
                hidden.tries().len()
            )
        });
    }
    for (index, hidden) in servers.iter().enumerate() {
        let tries = hidden.tries();
        let refused = tries.iter().filter(|(_, taken)| !taken).count();
        let name = WORDS[index].0;
        assert!(refused > 0, "{name} never refused");
        assert!(
            refused * 2 < tries.len(),
            "{name}: {refused} of {} refused",
            tries.len()
        );
    }
    // The server lets a client go that is silent for so long.
    let mut client = server.client();
    let audit = client.get("/api/v1/audit?limit=1000").unwrap().json();
    let entries = audit["entries"].as_array().unwrap();
    let by_rule = |action: &str| {
        entries
            .iter()
            .any(|entry| entry["actor"] == "rule:control" && entry["action"] == action)
    };
    assert!(by_rule("limit.learnt"), "{audit}");
    assert!(by_rule("limit.cut") || by_rule("limit.stopped"), "{audit}");
    let lost = client
        .get("/api/v1/messages?state=bounced,dead,expired&limit=10")
        .unwrap()
        .json();
    assert_eq!(lost["messages"].as_array().unwrap().len(), 0, "{lost}");
    server.stop();
}

/// Stops of ten seconds and more are what is waited for here.
fn wait_patiently(
    what: &str,
    mut look: impl FnMut() -> Option<()>,
    mut told: impl FnMut() -> String,
) {
    for _ in 0..4_000 {
        if look().is_some() {
            return;
        }
        thread::park_timeout(std::time::Duration::from_millis(100));
    }
    panic!("{what}: not in time: {}", told());
}
