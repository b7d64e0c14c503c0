//! The traffic of the demonstration, sent over the HTTP API: a burst of
//! receipts, a storm of digests, and one-time passwords all the while.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use outflow_core::message::Seq;
use outflow_core::message_id::MessageId;
use serde_json::{Value, json};

use super::client::Client;
use super::scenery::{PROVIDERS, Provider};
use super::witness::Witness;

/// From one password to the next.
const PASSWORD_EVERY: Duration = Duration::from_millis(200);
/// From one burst of receipts to the next.
const RECEIPTS_EVERY: Duration = Duration::from_secs(10);
const RECEIPTS: usize = 300;
const DIGESTS: usize = 3_000;
/// The storm comes after the first burst.
const STORM_AFTER: Duration = Duration::from_secs(2);
/// A new storm comes when this few of the last one are left.
const STORM_BELOW: u64 = 500;
const BATCH: usize = 500;
/// Passwords whose times are remembered.
const PASSWORDS_MAX: usize = 100_000;

/// What was accepted.
#[derive(Debug, Default)]
pub struct Accepted {
    /// All messages.
    pub all: BTreeSet<Seq>,
    /// The passwords, and when the request for each began.
    pub passwords: Vec<(Seq, Instant)>,
    /// Why requests failed, if any did.
    pub failures: Vec<String>,
}

/// The traffic, on a thread of its own.
#[derive(Debug)]
pub struct Traffic {
    accepted: Arc<Mutex<Accepted>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    /// Begins.
    pub fn start(address: SocketAddr, token: &str, witness: Witness) -> std::io::Result<Self> {
        let accepted: Arc<Mutex<Accepted>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let mut sender = Sender {
            client: Client::new(address, token),
            accepted: Arc::clone(&accepted),
            witness,
            count: 0,
        };
        let stopped = Arc::clone(&stop);
        let builder = thread::Builder::new().name("traffic".to_owned());
        let thread = builder.spawn(move || sender.run(&stopped))?;
        Ok(Self {
            accepted,
            stop,
            thread: Some(thread),
        })
    }

    /// What was accepted so far.
    pub fn accepted(&self) -> MutexGuard<'_, Accepted> {
        lock(&self.accepted)
    }

    /// Ends.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                self.accepted()
                    .failures
                    .push("the traffic's thread panicked".to_owned());
            }
        }
    }
}

fn lock(accepted: &Mutex<Accepted>) -> MutexGuard<'_, Accepted> {
    accepted.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Sender {
    client: Client,
    accepted: Arc<Mutex<Accepted>>,
    witness: Witness,
    count: usize,
}

impl Sender {
    fn run(&mut self, stop: &AtomicBool) {
        let started = Instant::now();
        let mut receipts_at = started;
        let mut storm_at = started + STORM_AFTER;
        let mut password_at = started;
        while !stop.load(Ordering::Acquire) {
            let now = Instant::now();
            if now >= password_at {
                password_at = now + PASSWORD_EVERY;
                self.password();
            }
            if now >= receipts_at {
                receipts_at = now + RECEIPTS_EVERY;
                self.submit(RECEIPTS, receipt);
            }
            if now >= storm_at && self.left() < STORM_BELOW {
                storm_at = now + STORM_AFTER;
                self.submit(DIGESTS, digest);
            }
            let next = password_at.min(receipts_at);
            thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
    }

    /// Accepted messages that have not arrived.
    fn left(&self) -> u64 {
        let accepted = lock(&self.accepted).all.len() as u64;
        accepted.saturating_sub(self.witness.counts().0)
    }

    fn password(&mut self) {
        self.count += 1;
        let provider = PROVIDERS.get(self.count % PROVIDERS.len());
        let Some(provider) = provider else { return };
        let message = password(self.count, provider);
        let started = Instant::now();
        for seq in self.post(&message) {
            let mut accepted = lock(&self.accepted);
            if accepted.passwords.len() < PASSWORDS_MAX {
                accepted.passwords.push((seq, started));
            }
        }
    }

    /// Submits many messages in batches, to the larger providers more.
    fn submit(&mut self, count: usize, message: fn(usize, &Provider) -> Value) {
        let shares = [0, 0, 0, 0, 1, 1, 2];
        let mut batch = Vec::new();
        for no in 0..count {
            self.count += 1;
            let share = shares.get(no % shares.len()).copied().unwrap_or_default();
            if let Some(provider) = PROVIDERS.get(share) {
                batch.push(message(self.count, provider));
            }
            if batch.len() == BATCH || no + 1 == count {
                let messages = std::mem::take(&mut batch);
                self.post(&json!({ "messages": messages }));
            }
        }
    }

    /// Sends a request; the messages that were accepted.
    fn post(&mut self, body: &Value) -> Vec<Seq> {
        let failure = match self.client.post("/api/v1/messages", body) {
            Ok(answer) if answer.status == 202 => {
                let json = answer.json();
                let ids = match json.get("accepted").and_then(Value::as_array) {
                    Some(accepted) => accepted.iter().filter_map(seq_of).collect(),
                    None => Vec::from_iter(seq_of(&json)),
                };
                lock(&self.accepted).all.extend(&ids);
                return ids;
            }
            Ok(answer) => format!("{}: {}", answer.status, answer.text),
            Err(error) => error.to_string(),
        };
        let mut accepted = lock(&self.accepted);
        if accepted.failures.len() < 10 {
            accepted.failures.push(failure);
        }
        Vec::new()
    }
}

/// The number of a message that has an id.
pub fn seq_of(message: &Value) -> Option<Seq> {
    let id: MessageId = message.get("id")?.as_str()?.parse().ok()?;
    Some(id.seq())
}

fn password(no: usize, provider: &Provider) -> Value {
    json!({
        "tenant": "login", "class": "critical",
        "from": "Login <login@shop.example>", "to": format!("user{no}@{}", provider.domain),
        "subject": "Your code", "text": format!("Your code is {:06}.", no * 7_919 % 1_000_000),
    })
}

fn receipt(no: usize, provider: &Provider) -> Value {
    json!({
        "tenant": "shop", "class": "normal",
        "from": "Shop <orders@shop.example>", "to": format!("user{no}@{}", provider.domain),
        "subject": format!("Receipt {no}"), "text": "Thank you for your order.",
    })
}

fn digest(no: usize, provider: &Provider) -> Value {
    json!({
        "tenant": "news", "class": "low", "campaign": "digest",
        "from": "News <digest@news.example>", "to": format!("user{no}@{}", provider.domain),
        "subject": "This week", "text": "All that happened this week.",
    })
}
