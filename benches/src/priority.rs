//! `priority`: how long a critical message takes from the begin of its HTTP
//! request until it reaches the transport, on an idle server and on one that
//! has a million messages of class low queued and sends them at its limit.
//!
//! Both servers have the same settings. They are measured in turn, round by
//! round, and the loaded one is paused while the idle one is measured. The time
//! of arrival is the sandbox's own: the line that it writes for each message
//! that it takes says when it was written.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::figures::{exact, median, percentile, short};
use crate::http::Connection;
use crate::letters::Letter;
use crate::preload::preload;
use crate::server::{Scratch, Server, block_on, progress};

const DOMAINS: u64 = 20;
const TENANTS: u64 = 5;
const BATCH: u64 = 10_000;
const ROUNDS: usize = 7;
/// Critical messages in a round of each side.
const SAMPLES: u64 = 500;
/// From the answer to one to the next.
const PAUSE: Duration = Duration::from_millis(4);
/// How long a resumed server sends before it is measured.
const WARM: Duration = Duration::from_secs(2);
/// How long the last message of a round may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// One side: a server and what its sandbox took.
struct Side {
    server: Server,
    log: PathBuf,
    next: u64,
}

impl Side {
    async fn start(dir: &Path, rate: u32) -> io::Result<Self> {
        let log = dir.join("taken.jsonl");
        let config = format!(
            "[log]\nsandbox = {:?}\n[[account]]\nid = \"bench\"\ntransport = \"sandbox\"\n\
             limits = [\"{rate}/s\"]\n",
            log.display().to_string()
        );
        Ok(Self {
            server: Server::start(dir, &config).await?,
            log,
            next: 0,
        })
    }

    /// Submits critical messages one after the other; the milliseconds that
    /// each took to the transport.
    async fn measure(&mut self) -> io::Result<Vec<f64>> {
        let from = std::fs::metadata(&self.log).map_or(0, |it| it.len());
        let mut connection = self.server.connect().await?;
        let mut begun = HashMap::new();
        for _ in 0..SAMPLES {
            let (id, at) = self.submit(&mut connection).await?;
            begun.insert(id, at);
            tokio::time::sleep(PAUSE).await;
        }
        let mut took = Vec::with_capacity(begun.len());
        let mut log = File::open(&self.log)?;
        log.seek(SeekFrom::Start(from))?;
        let mut log = BufReader::new(log);
        let until = Instant::now() + PATIENCE;
        let mut line = String::new();
        while !begun.is_empty() {
            // A line is written in one call, so there is no half of one.
            if log.read_line(&mut line)? == 0 {
                if Instant::now() > until {
                    let left = begun.len();
                    return Err(io::Error::other(format!("{left} messages did not arrive")));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            let taken: Value = serde_json::from_str(&line)?;
            line.clear();
            let id = taken.get("id").and_then(Value::as_str).unwrap_or_default();
            let at = taken.get("written_ns").and_then(Value::as_u64);
            if let Some(began) = begun.remove(id) {
                let at = at.ok_or_else(|| io::Error::other("the log has no times"))?;
                took.push(at.saturating_sub(began) as f64 / 1e6);
            }
        }
        Ok(took)
    }

    /// The id of a new critical message, and when its request began.
    async fn submit(&mut self, connection: &mut Connection) -> io::Result<(String, u64)> {
        let mut body = Vec::new();
        letter("critical", self.next).write(&mut body);
        self.next += 1;
        let request = self.server.submission(&body);
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = at.map_err(io::Error::other)?.as_nanos() as u64;
        let answer = connection.call(&request).await?.expect(202)?.json();
        let id = answer.get("id").and_then(Value::as_str);
        let id = id.ok_or_else(|| io::Error::other("the answer has no id"))?;
        Ok((id.to_owned(), at))
    }
}

/// Measures both sides in turn. `rate` is the limit, in messages a second.
pub fn run(queued: u64, rate: u32) -> io::Result<Value> {
    block_on(async {
        let scratch = Scratch::new("priority")?;
        let mut idle = Side::start(&scratch.path().join("idle"), rate).await?;
        let mut loaded = Side::start(&scratch.path().join("loaded"), rate).await?;
        let low = || json!({ "class": "low" });
        let mut paused = loaded.server.pause(low()).await?;
        preload(&loaded.server, queued, BATCH, |no| letter("low", no)).await?;
        let settled = "outflow_messages_settled_total";
        let (mut calm, mut busy, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            calm.push(idle.measure().await?);
            loaded.server.resume(&paused).await?;
            tokio::time::sleep(WARM).await;
            let before = loaded.server.metric(settled, "low").await?;
            let began = Instant::now();
            busy.push(loaded.measure().await?);
            let sent = loaded.server.metric(settled, "low").await? - before;
            rates.push(sent / began.elapsed().as_secs_f64());
            paused = loaded.server.pause(low()).await?;
            tokio::time::sleep(WARM / 4).await;
            let last = |rounds: &[Vec<f64>], percent| {
                rounds.last().map_or(f64::NAN, |it| percentile(it, percent))
            };
            progress(&format!(
                "round {round} of {ROUNDS}: idle p50 {:.2} p99 {:.2} ms, loaded p50 {:.2} p99 \
                 {:.2} ms while sending {:.0}/s",
                last(&calm, 50.0),
                last(&calm, 99.0),
                last(&busy, 50.0),
                last(&busy, 99.0),
                rates.last().copied().unwrap_or(f64::NAN),
            ));
        }
        let left = loaded
            .server
            .metric("outflow_queue_messages", "low")
            .await?;
        if left < queued as f64 / 4.0 {
            return Err(io::Error::other("the queue ran low: queue more"));
        }
        let of = |rounds: &[Vec<f64>], percent| {
            let rounds: Vec<f64> = rounds.iter().map(|it| percentile(it, percent)).collect();
            median(&rounds)
        };
        let (idle_p99, loaded_p99) = (of(&calm, 99.0), of(&busy, 99.0));
        let (idle_p50, loaded_p50) = (of(&calm, 50.0), of(&busy, 50.0));
        println!("idle    p50 {idle_p50:.2} ms, p99 {idle_p99:.2} ms");
        println!("loaded  p50 {loaded_p50:.2} ms, p99 {loaded_p99:.2} ms");
        Ok(json!({
            "bench": "priority",
            "queued": queued,
            "limit_per_s": rate,
            "sent_per_s": short(median(&rates)),
            "idle_p50_ms": exact(idle_p50),
            "idle_p99_ms": exact(idle_p99),
            "loaded_p50_ms": exact(loaded_p50),
            "loaded_p99_ms": exact(loaded_p99),
            "ratio": exact(loaded_p99 / idle_p99),
        }))
    })
}

fn letter(class: &'static str, no: u64) -> Letter {
    Letter {
        tenant: no / DOMAINS % TENANTS,
        class,
        domain: no % DOMAINS,
        no,
        has_key: false,
    }
}
