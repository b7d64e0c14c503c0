//! `reading`: 10,000 requests for single messages and for why they wait, while
//! 5,000 messages a second come in and are delivered.
//!
//! Some of the messages asked for have just been delivered, some are on their
//! way, and some wait at a limit, so that there is something to explain. Spans
//! without and with reading take turns; the ratio is what was delivered a second
//! in the one and in the other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::figures::{exact, median, percentile, short};
use crate::http::{self, Connection};
use crate::letters::{self, Letter};
use crate::server::{Scratch, Server, block_on, own_cpu, progress};

const RATE: u64 = 5_000;
/// The flow is submitted in batches, so many a second.
const BATCHES_PER_S: u64 = 100;
const REQUESTS: u64 = 10_000;
/// Connections that read, each after the answer to its last question.
const READERS: u64 = 4;
const ROUNDS: usize = 3;
/// How long the flow is watched without reading.
const ALONE: Duration = Duration::from_secs(5);
const DOMAINS: u64 = 20;
/// Messages that wait at a limit, and the domain that they wait for.
const WAITING: u64 = 5_000;
const WAITING_DOMAIN: u64 = 1_000;
/// Ids of the flow that are remembered to be asked for.
const IDS_MAX: usize = 20_000;

const CONFIG: &str = r#"
[[policy]]
match = { host = "d1000.example" }
rate = "1/s"
"#;

/// What the flow and the readers share.
#[derive(Default)]
struct Shared {
    ids: RefCell<VecDeque<String>>,
    waiting: RefCell<Vec<String>>,
    stop: Cell<bool>,
}

/// Runs spans without and with reading in turn.
pub fn run() -> io::Result<Value> {
    block_on(async {
        let scratch = Scratch::new("reading")?;
        let server = Rc::new(Server::start(scratch.path(), CONFIG).await?);
        LocalSet::new().run_until(measure(server)).await
    })
}

async fn measure(server: Rc<Server>) -> io::Result<Value> {
    let shared = Rc::new(Shared::default());
    let mut connection = server.connect().await?;
    let ids = submit(&server, &mut connection, 0, WAITING, WAITING_DOMAIN).await?;
    *shared.waiting.borrow_mut() = ids;
    let flow = tokio::task::spawn_local(flow(Rc::clone(&server), Rc::clone(&shared)));
    tokio::time::sleep(ALONE / 2).await;
    let (mut gets, mut explains) = (Vec::new(), Vec::new());
    let (mut alone, mut beside, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut reads, mut client_cpu) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let without = delivered(&server, async {
            tokio::time::sleep(ALONE).await;
            Ok(())
        });
        let (without, ()) = without.await?;
        let (began, cpu) = (Instant::now(), own_cpu());
        let (with, (get, explain)) = delivered(&server, read(&server, &shared)).await?;
        let span = began.elapsed().as_secs_f64();
        client_cpu.push((own_cpu() - cpu).as_secs_f64() / span);
        reads.push(REQUESTS as f64 / span);
        progress(&format!(
            "round {round} of {ROUNDS}: {without:.0}/s alone, {with:.0}/s beside {:.0} reads/s; \
             p99 get {:.2} ms, explain {:.2} ms",
            REQUESTS as f64 / span,
            percentile(&get, 99.0),
            percentile(&explain, 99.0),
        ));
        gets.push(get);
        explains.push(explain);
        alone.push(without);
        beside.push(with);
        ratios.push(with / without);
    }
    shared.stop.set(true);
    flow.await.map_err(io::Error::other)??;
    let of = |rounds: &[Vec<f64>], percent| {
        let rounds: Vec<f64> = rounds.iter().map(|it| percentile(it, percent)).collect();
        median(&rounds)
    };
    println!(
        "get      p50 {:.2} ms, p99 {:.2} ms",
        of(&gets, 50.0),
        of(&gets, 99.0)
    );
    println!(
        "explain  p50 {:.2} ms, p99 {:.2} ms",
        of(&explains, 50.0),
        of(&explains, 99.0)
    );
    println!(
        "flow     {:.0}/s alone, {:.0}/s beside {:.0} reads/s",
        median(&alone),
        median(&beside),
        median(&reads)
    );
    Ok(json!({
        "bench": "reading",
        "requests": REQUESTS,
        "get_p99_ms": exact(of(&gets, 99.0)),
        "explain_p99_ms": exact(of(&explains, 99.0)),
        "flow_ratio": exact(median(&ratios)),
        "get_p50_ms": exact(of(&gets, 50.0)),
        "explain_p50_ms": exact(of(&explains, 50.0)),
        "flow_per_s": short(median(&alone)),
        "reads_per_s": short(median(&reads)),
        "client_cpu": exact(median(&client_cpu)),
    }))
}

/// What was delivered a second while something was done.
async fn delivered<T>(
    server: &Server,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<(f64, T)> {
    let name = "outflow_messages_settled_total";
    let before = server.metric(name, "delivered").await?;
    let began = Instant::now();
    let done = work.await?;
    let span = began.elapsed().as_secs_f64();
    let after = server.metric(name, "delivered").await?;
    Ok(((after - before) / span, done))
}

/// Submits at the rate, whatever becomes of it, until told to stop.
async fn flow(server: Rc<Server>, shared: Rc<Shared>) -> io::Result<()> {
    let size = RATE / BATCHES_PER_S;
    let mut connection = server.connect().await?;
    let began = Instant::now();
    let mut no = WAITING;
    while !shared.stop.get() {
        let due = (began.elapsed().as_secs_f64() * RATE as f64) as u64 + WAITING;
        if no + size > due {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let new = submit(&server, &mut connection, no, size, DOMAINS).await?;
        no += size;
        let mut ids = shared.ids.borrow_mut();
        ids.extend(new);
        while ids.len() > IDS_MAX {
            ids.pop_front();
        }
    }
    Ok(())
}

/// Submits a batch to many domains, or to one beyond them; the ids.
async fn submit(
    server: &Server,
    connection: &mut Connection,
    first: u64,
    size: u64,
    domain: u64,
) -> io::Result<Vec<String>> {
    let mut body = Vec::new();
    let letters = (first..first + size).map(|no| Letter {
        tenant: 1,
        class: "normal",
        domain: match domain {
            WAITING_DOMAIN => WAITING_DOMAIN,
            domains => no % domains,
        },
        no,
        has_key: false,
    });
    letters::batch(&mut body, letters);
    let request = server.submission(&body);
    let answer = connection.call(&request).await?.expect(202)?.json();
    let accepted = answer.get("accepted").and_then(Value::as_array);
    let ids = accepted.into_iter().flatten();
    let ids = ids.filter_map(|it| it.get("id")?.as_str().map(ToOwned::to_owned));
    Ok(ids.collect())
}

/// Reads, half of them single messages and half explanations; the milliseconds
/// that each took.
async fn read(server: &Rc<Server>, shared: &Rc<Shared>) -> io::Result<(Vec<f64>, Vec<f64>)> {
    let readers: Vec<_> = (0..READERS)
        .map(|reader| {
            let (server, shared) = (Rc::clone(server), Rc::clone(shared));
            tokio::task::spawn_local(async move { reader_of(&server, &shared, reader).await })
        })
        .collect();
    let (mut gets, mut explains) = (Vec::new(), Vec::new());
    for reader in readers {
        let (get, explain) = reader.await.map_err(io::Error::other)??;
        gets.extend(get);
        explains.extend(explain);
    }
    Ok((gets, explains))
}

async fn reader_of(
    server: &Server,
    shared: &Shared,
    reader: u64,
) -> io::Result<(Vec<f64>, Vec<f64>)> {
    let mut connection = server.connect().await?;
    let (mut gets, mut explains) = (Vec::new(), Vec::new());
    // Any sequence that jumps about will do.
    let mut draw = reader * 7_919 + 1;
    for no in 0..REQUESTS / READERS {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (draw >> 33) as usize;
        let id = match no % 4 {
            // Just submitted: on its way, or just delivered.
            0 | 1 => shared.ids.borrow().back().cloned(),
            2 => {
                let ids = shared.ids.borrow();
                ids.get(at % ids.len().max(1)).cloned()
            }
            _ => {
                let ids = shared.waiting.borrow();
                ids.get(at % ids.len().max(1)).cloned()
            }
        };
        let id = id.ok_or_else(|| io::Error::other("there is nothing to ask for"))?;
        let explain = (no + no / 4) % 2 == 1;
        let path = match explain {
            false => format!("/api/v1/messages/{id}"),
            true => format!("/api/v1/messages/{id}/explain"),
        };
        let request = http::get(&path, &server.token);
        let began = Instant::now();
        connection.call(&request).await?.expect(200)?;
        let took = began.elapsed().as_secs_f64() * 1e3;
        match explain {
            false => gets.push(took),
            true => explains.push(took),
        }
    }
    Ok((gets, explains))
}
