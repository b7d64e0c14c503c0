//! `jobs`: small messages to a sandbox that takes them at once, durable, with
//! default settings and receipts on, beside BullMQ's no-op jobs.
//!
//! Both queues are filled first and then drained, and the drain is timed: until
//! the last message is settled here, until the last job has run there. BullMQ's
//! Redis keeps nothing on the disk and forgets a job when it is done; here every
//! settlement is synced and every message has a receipt. What it took from the
//! first submission, and how far the receipts in SQLite were behind at the end,
//! are printed beside it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::{Connection as Database, OpenFlags};
use serde_json::{Value, json};

use crate::figures::{exact, median, short};
use crate::letters::Letter;
use crate::preload::preload;
use crate::server::{Scratch, Server, block_on, own_cpu, progress};

const DOMAINS: u64 = 10;
const TENANTS: u64 = 10;
const BATCH: u64 = 5_000;
/// How often is looked whether all are settled.
const LOOK: Duration = Duration::from_millis(20);
/// How long a drain may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// One drain.
struct Drain {
    per_s: f64,
    /// From the first submission to the last settlement.
    through_s: f64,
    /// From the last settlement to the last receipt.
    lag_s: f64,
    server_cpu: f64,
    client_cpu: f64,
}

/// Drains both in turn, round by round.
pub fn run(count: u64, rounds: usize, has_peer: bool) -> io::Result<Value> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let drain = block_on(outflow(count))?;
        let bullmq = match has_peer {
            true => bullmq(count)?,
            false => f64::NAN,
        };
        progress(&format!(
            "round {round} of {rounds}: outflow {:.0}/s ({:.2} cores; {:.2} s from submission, \
             receipts {:.2} s behind), bullmq {bullmq:.0}/s",
            drain.per_s, drain.server_cpu, drain.through_s, drain.lag_s
        ));
        ours.push(drain);
        theirs.push(bullmq);
    }
    let of = |figure: fn(&Drain) -> f64| median(&ours.iter().map(figure).collect::<Vec<_>>());
    let (outflow, bullmq) = (of(|it| it.per_s), median(&theirs));
    let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a.per_s / b).collect();
    println!("outflow {outflow:>8.0}/s, {count} messages, durable, receipts on");
    println!("bullmq  {bullmq:>8.0}/s, {count} no-op jobs, nothing on the disk");
    Ok(json!({
        "bench": "jobs",
        "messages": count,
        "outflow_per_s": short(outflow),
        "bullmq_per_s": short(bullmq),
        "ratio": exact(median(&ratios)),
        "submit_to_settled_s": exact(of(|it| it.through_s)),
        "submit_to_settled_per_s": short(count as f64 / of(|it| it.through_s)),
        "record_lag_s": exact(of(|it| it.lag_s)),
        "server_cpu": exact(of(|it| it.server_cpu)),
        "client_cpu": exact(of(|it| it.client_cpu)),
    }))
}

async fn outflow(count: u64) -> io::Result<Drain> {
    let scratch = Scratch::new("jobs")?;
    let server = Server::start(scratch.path(), "").await?;
    let paused = server.pause(json!({ "class": "normal" })).await?;
    let submitting = preload(&server, count, BATCH, letter).await?;
    let (cpu, own) = (server.cpu(), own_cpu());
    let began = Instant::now();
    server.resume(&paused).await?;
    let mut connection = server.connect().await?;
    let settled = "outflow_messages_settled_total";
    while server
        .metric_over(&mut connection, settled, "delivered")
        .await?
        < count as f64
    {
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other("not all messages are settled"));
        }
        tokio::time::sleep(LOOK).await;
    }
    while server.any_left(&mut connection).await? {
        tokio::time::sleep(LOOK / 4).await;
    }
    let took = began.elapsed();
    let (cpu, own) = (server.cpu() - cpu, own_cpu() - own);
    let ended = Instant::now();
    while receipts(&server)? < count {
        if ended.elapsed() > PATIENCE {
            return Err(io::Error::other("not all messages have receipts"));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(Drain {
        per_s: count as f64 / took.as_secs_f64(),
        through_s: (submitting + took).as_secs_f64(),
        lag_s: ended.elapsed().as_secs_f64(),
        server_cpu: cpu.as_secs_f64() / took.as_secs_f64(),
        client_cpu: own.as_secs_f64() / took.as_secs_f64(),
    })
}

fn letter(no: u64) -> Letter {
    Letter {
        tenant: no / DOMAINS % TENANTS,
        class: "normal",
        domain: no % DOMAINS,
        no,
        has_key: false,
    }
}

/// Receipts in the record, read as an operator would.
fn receipts(server: &Server) -> io::Result<u64> {
    let path = server.data().join("record.sqlite");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Database::open_with_flags(path, flags).map_err(io::Error::other)?;
    let count: i64 = database
        .query_row("SELECT count(*) FROM receipts", [], |row| row.get(0))
        .map_err(io::Error::other)?;
    Ok(count.cast_unsigned())
}

/// BullMQ's jobs a second.
fn bullmq(count: u64) -> io::Result<f64> {
    let output = Command::new("bash")
        .arg(peer("bullmq.sh"))
        .arg(count.to_string())
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last: Value = text
        .lines()
        .last()
        .and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_default();
    match last.get("per_s").and_then(Value::as_f64) {
        Some(rate) if output.status.success() => Ok(rate),
        _ => Err(io::Error::other(format!(
            "benches/peers/bullmq.sh failed: {text}"
        ))),
    }
}

/// A script beside the sources of this package.
fn peer(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("peers")
        .join(name)
}
