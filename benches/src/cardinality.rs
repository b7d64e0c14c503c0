//! `cardinality`: what is left of values that were used once.
//!
//! A million messages with a campaign each, then a million with a recipient
//! domain each, through the real server and out of its sandbox. Memory after all
//! of it has gone and the server was idle for a minute, against memory at the
//! start; and the rate of the last 100,000 of each phase against the first.
//!
//! The client keeps a bounded number of messages in the queue, so that both rates
//! are those of accepting and delivering together, and sends again what is
//! refused because too many flows live, as clients are told to.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::figures::{exact, short};
use crate::http::{self, Connection};
use crate::server::{Scratch, Server, block_on, progress};

/// Connections that submit at the same time, and messages in one request.
const CONNECTIONS: usize = 4;
const BATCH: usize = 500;
/// Accepted and not settled at once, about.
const BACKLOG_MAX: u64 = 50_000;
/// Ordinary messages before the first phase: its first ones then meet a server
/// that is at work, as the last ones do.
const WARM_UP: u64 = 100_000;
/// Messages whose rates are held against one another.
const WINDOW: u64 = 100_000;
/// How often it is asked how many are settled. The page of metrics is not free:
/// between two looks passes so many times what the last one took, within bounds.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);
const LOOK_SHARE: u32 = 20;
/// A message that is refused waits so long, as `Retry-After` says.
const REFUSED_WAITS: Duration = Duration::from_secs(5);
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// Nothing is settled for so long: something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Messages of each phase.
    pub messages: u64,
    /// How long the server is left alone at the end.
    pub idle: Duration,
}

/// What differs from message to message.
#[derive(Clone, Copy)]
pub enum Differs {
    Nothing,
    /// The idempotency key.
    Key,
    Campaign,
    RecipientDomain,
}

impl Differs {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "warm-up",
            Self::Key => "keys",
            Self::Campaign => "campaigns",
            Self::RecipientDomain => "recipient domains",
        }
    }

    /// Appends a message as a line of JSON.
    fn write(self, out: &mut String, no: u64) {
        let (tenant, campaign, domain) = match self {
            Self::Nothing | Self::Key => ("plain", "same".to_owned(), "same.example".to_owned()),
            Self::Campaign => ("campaigns", format!("c{no}"), "same.example".to_owned()),
            Self::RecipientDomain => ("domains", "same".to_owned(), format!("d{no}.example")),
        };
        out.push('{');
        if matches!(self, Self::Key) {
            let _ = write!(out, r#""idempotency_key":"key-{no}","#);
        }
        let _ = writeln!(
            out,
            r#""tenant":"{tenant}","campaign":"{campaign}","from":"shop@example.com","to":"u{no}@{domain}","subject":"Order {no}","text":"Thank you for your order {no}."}}"#,
        );
    }
}

/// One phase, as its connections see it.
struct Phase {
    differs: Differs,
    count: u64,
    began: Instant,
    /// The next message that nobody has sent.
    next: Cell<u64>,
    /// Messages that are to be sent again.
    again: RefCell<VecDeque<u64>>,
    accepted: Cell<u64>,
    refused: Cell<u64>,
    /// Accepted by the phases before.
    before: u64,
    settled: Cell<u64>,
    reported: Cell<Instant>,
    /// When the first ones, all but the last ones, and all were accepted.
    first_done: Cell<Option<Instant>>,
    last_begun: Cell<Option<Instant>>,
    all_done: Cell<Option<Instant>>,
    /// When each further window of messages was accepted.
    windows: RefCell<Vec<Instant>>,
}

/// What one phase came to.
pub struct Rates {
    /// The rate of each window, in order.
    windows: Vec<f64>,
    first: f64,
    last: f64,
    refused: u64,
    took: Duration,
}

impl Phase {
    fn window(&self) -> u64 {
        WINDOW.min(self.count / 4).max(1)
    }

    /// The next messages to send.
    fn take(&self) -> Vec<u64> {
        let mut again = self.again.borrow_mut();
        let old = again.len().min(BATCH);
        let mut numbers: Vec<u64> = again.drain(..old).collect();
        let first = self.next.get();
        let end = self.count.min(first + (BATCH - old) as u64);
        self.next.set(end);
        numbers.extend(first..end);
        numbers
    }

    fn note_accepted(&self, count: u64) {
        let now = Instant::now();
        let accepted = self.accepted.get() + count;
        self.accepted.set(accepted);
        if self.first_done.get().is_none() && accepted >= self.window() {
            self.first_done.set(Some(now));
        }
        if self.last_begun.get().is_none() && accepted >= self.count - self.window() {
            self.last_begun.set(Some(now));
        }
        let mut windows = self.windows.borrow_mut();
        while accepted >= self.window() * (windows.len() as u64 + 1) {
            windows.push(now);
        }
        // Whoever watches finds out later.
        if accepted >= self.count {
            self.all_done.set(Some(now));
        }
        if self.reported.get().elapsed() >= REPORT_EVERY {
            self.reported.set(now);
            let rate = accepted as f64 / self.began.elapsed().as_secs_f64();
            let (name, count) = (self.differs.as_str(), self.count);
            let refused = self.refused.get();
            progress(&format!(
                "  {name}: {accepted} of {count} accepted, {rate:.0}/s, {refused} refused"
            ));
        }
    }

    /// Messages that are accepted and not known to be settled.
    fn backlog(&self) -> u64 {
        let all = self.before + self.accepted.get();
        all.saturating_sub(self.settled.get())
    }

    async fn submit(&self, connection: &mut Connection, token: &str) -> io::Result<()> {
        let mut body = String::new();
        while self.accepted.get() < self.count {
            if self.backlog() > BACKLOG_MAX {
                tokio::time::sleep(LOOK_EVERY / 10).await;
                continue;
            }
            let numbers = self.take();
            if numbers.is_empty() {
                // The last ones are in other hands, or will be sent again.
                tokio::time::sleep(LOOK_EVERY / 10).await;
                continue;
            }
            body.clear();
            for &no in &numbers {
                self.differs.write(&mut body, no);
            }
            let request = http::submission(token, "application/x-ndjson", body.as_bytes());
            let answer = connection.call(&request).await?;
            let refused = match answer.status {
                429 => numbers.clone(),
                _ => rejected(answer.expect(202)?.body, &numbers)?,
            };
            self.note_accepted((numbers.len() - refused.len()) as u64);
            if !refused.is_empty() {
                self.refused.set(self.refused.get() + refused.len() as u64);
                tokio::time::sleep(REFUSED_WAITS).await;
                self.again.borrow_mut().extend(refused);
            }
        }
        Ok(())
    }

    /// Looks how many are settled until all of the phase are accepted.
    async fn watch(&self, server: &Server) -> io::Result<()> {
        let mut connection = server.connect().await?;
        let mut moved = Instant::now();
        while self.accepted.get() < self.count {
            let asked = Instant::now();
            let settled = settled(server, &mut connection).await?;
            let took = asked.elapsed();
            if settled != self.settled.replace(settled) {
                moved = Instant::now();
            }
            if moved.elapsed() > PATIENCE {
                return Err(io::Error::other("nothing is settled any more"));
            }
            let pause = (took * LOOK_SHARE).clamp(LOOK_EVERY, LOOK_AT_LEAST_EVERY);
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    fn rates(&self) -> Rates {
        let now = self.all_done.get().unwrap_or_else(Instant::now);
        let window = self.window() as f64;
        let first = self.first_done.get().unwrap_or(now) - self.began;
        let last = now - self.last_begun.get().unwrap_or(now);
        let ends = self.windows.borrow();
        let begins = std::iter::once(&self.began).chain(ends.iter());
        let windows = begins
            .zip(ends.iter())
            .map(|(&begin, &end)| window / (end - begin).as_secs_f64())
            .collect();
        Rates {
            windows,
            first: window / first.as_secs_f64(),
            last: window / last.as_secs_f64(),
            refused: self.refused.get(),
            took: now - self.began,
        }
    }
}

/// Which messages of a request were refused because too many flows live.
fn rejected(body: &[u8], numbers: &[u64]) -> io::Result<Vec<u64>> {
    // The usual answer is not read as JSON: the client shares the machine.
    if body.ends_with(br#""rejected":[]}"#) {
        return Ok(Vec::new());
    }
    let answer: Value = serde_json::from_slice(body)?;
    let all = answer.get("rejected").and_then(Value::as_array);
    let mut refused = Vec::new();
    for one in all.map(Vec::as_slice).unwrap_or_default() {
        let code = one.pointer("/error/code").and_then(Value::as_str);
        let index = one.get("index").and_then(Value::as_u64);
        let number = index.and_then(|index| numbers.get(index as usize));
        match (code, number) {
            (Some("too_many_flows"), Some(number)) => refused.push(*number),
            _ => return Err(io::Error::other(format!("a message was refused: {one}"))),
        }
    }
    Ok(refused)
}

async fn settled(server: &Server, connection: &mut Connection) -> io::Result<u64> {
    let name = "outflow_messages_settled_total";
    let settled = server.metric_over(connection, name, "").await?;
    Ok(settled as u64)
}

/// Submits all messages of a phase.
pub async fn run_phase(
    server: &Server,
    differs: Differs,
    count: u64,
    before: u64,
) -> io::Result<Rates> {
    let mut connection = server.connect().await?;
    let now = Instant::now();
    let phase = Rc::new(Phase {
        differs,
        count,
        began: now,
        next: Cell::new(0),
        again: RefCell::default(),
        accepted: Cell::new(0),
        refused: Cell::new(0),
        before,
        settled: Cell::new(settled(server, &mut connection).await?),
        reported: Cell::new(now),
        first_done: Cell::new(None),
        last_begun: Cell::new(None),
        all_done: Cell::new(None),
        windows: RefCell::default(),
    });
    let local = LocalSet::new();
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = server.connect().await?;
        let (phase, token) = (Rc::clone(&phase), server.token.clone());
        tasks.push(local.spawn_local(async move { phase.submit(&mut connection, &token).await }));
    }
    local
        .run_until(async {
            phase.watch(server).await?;
            for task in tasks {
                task.await.map_err(io::Error::other)??;
            }
            Ok::<_, io::Error>(())
        })
        .await?;
    Ok(phase.rates())
}

/// Waits until all messages are settled.
pub async fn drain(server: &Server, count: u64) -> io::Result<()> {
    let mut connection = server.connect().await?;
    let (mut last, mut moved) = (0, Instant::now());
    loop {
        let settled = settled(server, &mut connection).await?;
        if settled == count && !server.any_left(&mut connection).await? {
            return Ok(());
        }
        if settled != last {
            (last, moved) = (settled, Instant::now());
        }
        if moved.elapsed() > PATIENCE {
            let text = format!("{settled} of {count} are settled, and no more");
            return Err(io::Error::other(text));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Runs both phases and looks at what is left.
pub fn run(plan: Plan) -> io::Result<Value> {
    block_on(async {
        let scratch = Scratch::new("cardinality")?;
        let server = Server::start(scratch.path(), "").await?;
        let rss_before = server.memory_mb("VmRSS")?;
        let warm_up = WARM_UP.min(plan.messages);
        run_phase(&server, Differs::Nothing, warm_up, 0).await?;
        let mut sent = warm_up;
        let mut phases = Vec::new();
        let mut worst = f64::INFINITY;
        for differs in [Differs::Campaign, Differs::RecipientDomain] {
            let rates = run_phase(&server, differs, plan.messages, sent).await?;
            sent += plan.messages;
            let rss = server.memory_mb("VmRSS")?;
            let (name, ratio) = (differs.as_str(), rates.last / rates.first);
            worst = worst.min(ratio);
            let Rates { first, last, .. } = rates;
            println!(
                "{name:<18} {first:>8.0}/s first, {last:>8.0}/s last, ratio {ratio:.2}, \
                 {} refused, {rss:.0} MB at its end",
                rates.refused
            );
            phases.push(json!({
                "differs": name,
                "first_per_s": short(first),
                "last_per_s": short(last),
                "rate_ratio": exact(ratio),
                "refused": rates.refused,
                "took_s": short(rates.took.as_secs_f64()),
                "windows_per_s": rates.windows.iter().map(|&rate| rate.round()).collect::<Vec<_>>(),
                "rss_mb": short(rss),
            }));
        }
        drain(&server, sent).await?;
        let rss_drained = server.memory_mb("VmRSS")?;
        progress(&format!(
            "all of {sent} are settled, {rss_drained:.0} MB; idle for {} s",
            plan.idle.as_secs()
        ));
        tokio::time::sleep(plan.idle).await;
        let (rss_after, rss_peak) = (server.memory_mb("VmRSS")?, server.memory_mb("VmHWM")?);
        println!(
            "{rss_before:.0} MB before, {rss_peak:.0} MB at most, {rss_after:.0} MB after {} s \
             without work",
            plan.idle.as_secs()
        );
        Ok(json!({
            "bench": "cardinality",
            "messages": plan.messages,
            "rss_before_mb": short(rss_before),
            "rss_peak_mb": short(rss_peak),
            "rss_after_mb": short(rss_after),
            "rate_ratio": exact(worst),
            "rss_drained_mb": short(rss_drained),
            "idle_s": plan.idle.as_secs(),
            "phases": phases,
        }))
    })
}
