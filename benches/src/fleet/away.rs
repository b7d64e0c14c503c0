//! `fleet --away`: Redis is stopped for ten seconds, once killed and once only
//! silent, while clients ask for limits that are closed, open or local shares
//! meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::monotonic;
use super::nodes::{Door, Node};
use crate::figures::exact;
use crate::redis::{Redis, words_of};
use crate::server::{Scratch, block_on, progress};

const RATE: u64 = 400;
const NODES: usize = 2;
const CALM: Duration = Duration::from_secs(6);
const AWAY: Duration = Duration::from_secs(10);
/// Leases that were out when Redis went may be used for so long, and it is
/// found out meanwhile.
const GRACE: u64 = 600_000_000;
/// All is normal again by then.
const BACK: u64 = 1_000_000_000;
const SECOND: u64 = 1_000_000_000;
const WORDS: [&str; 3] = ["closed", "open", "local_share"];

/// One answer: when it came, how long it took, whether it was a grant.
#[derive(Clone, Copy)]
struct Heard {
    at: u64,
    took: u64,
    granted: bool,
}

type Log = Arc<Mutex<Vec<Heard>>>;

/// Both ways to be away.
pub fn run() -> io::Result<Value> {
    let killed = block_on(once(true))?;
    let silent = block_on(once(false))?;
    Ok(json!({ "bench": "fleet_away", "killed": killed, "silent": silent }))
}

async fn once(killed: bool) -> io::Result<Value> {
    let scratch = Scratch::new("away")?;
    let mut redis = Redis::start(&scratch.path().join("redis"), &[])?;
    let mut nodes = Vec::new();
    for no in 0..NODES {
        let dir = scratch.path().join(format!("node-{no}"));
        nodes.push(Node::start(&dir, &redis.url(), false).await?);
    }
    let logs: [Log; 3] = Default::default();
    let mut tasks = Vec::new();
    for node in &nodes {
        for (word, log) in WORDS.iter().zip(&logs) {
            for _ in 0..4 {
                tasks.push(tokio::spawn(ask(node.door.clone(), word, Arc::clone(log))));
            }
        }
    }
    tokio::time::sleep(CALM).await;
    let gone = monotonic();
    match killed {
        true => redis.kill()?,
        false => redis.signal("STOP")?,
    }
    tokio::time::sleep(AWAY).await;
    match killed {
        true => redis.start_again()?,
        false => redis.signal("CONT")?,
    }
    let back = monotonic();
    tokio::time::sleep(CALM).await;
    let end = monotonic();
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let mut answer = serde_json::Map::new();
    for (word, log) in WORDS.iter().zip(&logs) {
        let heard = log.lock().map(|it| it.clone()).unwrap_or_default();
        let per_s = |from: u64, until: u64| {
            let grants = heard
                .iter()
                .filter(|it| it.granted && (from..until).contains(&it.at));
            grants.count() as f64 * SECOND as f64 / (until - from) as f64
        };
        let before = per_s(gone - 3 * SECOND, gone);
        let during = per_s(gone + GRACE, back);
        let after = per_s(back + BACK, end);
        let p99 = (
            p99(&heard, gone - 3 * SECOND, gone),
            p99(&heard, gone, back),
        );
        progress(&format!(
            "{word:<12} {before:>7.1}/s before, {during:>9.1}/s while away, {after:>7.1}/s after; \
             p99 {:.0} us before, {:.0} us while away",
            p99.0, p99.1
        ));
        answer.insert(
            (*word).to_owned(),
            json!({
                "before_per_s": exact(before),
                "away_per_s": exact(during),
                "after_per_s": exact(after),
                "p99_ratio": exact(p99.1 / p99.0),
            }),
        );
    }
    Ok(Value::Object(answer))
}

fn p99(heard: &[Heard], from: u64, until: u64) -> f64 {
    let mut took: Vec<u64> = heard
        .iter()
        .filter(|it| (from..until).contains(&it.at))
        .map(|it| it.took)
        .collect();
    took.sort_unstable();
    let at = took.len() * 99 / 100;
    took.get(at).map_or(f64::NAN, |nanos| *nanos as f64 / 1e3)
}

/// Asks again and again without waiting at the server.
async fn ask(door: Door, word: &'static str, log: Log) -> io::Result<()> {
    let stream = TcpStream::connect(("127.0.0.1", door.port)).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    stream.write_all(&words_of(&["AUTH", &door.token])).await?;
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let limit = format!("{RATE}/s burst 100");
    let request = words_of(&["ACQUIRE", word, "1", "RATE", &limit, "AWAY", word]);
    loop {
        let began = Instant::now();
        stream.write_all(&request).await?;
        line.clear();
        stream.read_line(&mut line).await?;
        let parts = line.trim().strip_prefix('*').and_then(|it| it.parse().ok());
        let parts: usize = parts.ok_or_else(|| io::Error::other(line.clone()))?;
        let mut granted = false;
        for part in 0..parts {
            line.clear();
            stream.read_line(&mut line).await?;
            granted |= part == 0 && line.starts_with(":1");
            if line.starts_with('$') {
                stream.read_line(&mut line).await?;
            }
        }
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let at = monotonic();
        if let Ok(mut log) = log.lock() {
            log.push(Heard { at, took, granted });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
