//! `fleet`: one limit over several servers, each its own process, over one real
//! Redis, saturated by clients, while things go wrong.
//!
//! Every node writes down when it granted what, on the machine's monotonic
//! clock. Merged, these must not exceed the guarantee of the limit over any
//! interval: if they do, the benchmark fails. How much of what is allowed was
//! used is printed beside it.

pub mod away;
mod cases;
mod clients;
mod grants;
mod nodes;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outflow_core::limit::LimitSpec;
use serde_json::{Value, json};

use self::cases::{Case, Fault, cases};
use self::clients::Clients;
use self::grants::Grants;
use self::nodes::{Door, Node};
use crate::figures::exact;
use crate::redis::Redis;
use crate::server::{Scratch, block_on, progress};

/// Use is measured from here on: nodes have met, a fresh bucket has filled.
const WARM_UP: Duration = Duration::from_secs(2);

/// How a run goes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub nodes: usize,
    /// Clients at each node.
    pub clients: usize,
    pub seconds: u64,
}

/// What came of a run.
struct Outcome {
    name: &'static str,
    granted: u64,
    used: f64,
    kept: Result<(), String>,
}

/// Runs all cases whose name contains `only`.
pub fn run(plan: Plan, only: Option<&str>) -> io::Result<Value> {
    let chosen = cases().into_iter();
    let chosen = chosen.filter(|case| only.is_none_or(|only| case.name.contains(only)));
    let mut outcomes = Vec::new();
    println!("{:<24} {:>9} {:>7}  limit", "case", "granted", "used");
    for case in chosen {
        let outcome = block_on(once(plan, &case))?;
        let kept = match &outcome.kept {
            Ok(()) => "held",
            Err(broken) => broken,
        };
        println!(
            "{:<24} {:>9} {:>6.1}%  {kept}",
            outcome.name,
            outcome.granted,
            outcome.used * 100.0
        );
        if let Some(goal) = case.goal
            && outcome.used * 1_000.0 < goal as f64
        {
            progress(&format!("{}: {} % were wanted", case.name, goal / 10));
        }
        outcomes.push(outcome);
    }
    let held = outcomes.iter().all(|it| it.kept.is_ok());
    let cases: Vec<Value> = outcomes
        .iter()
        .map(|it| {
            json!({
                "name": it.name,
                "granted": it.granted,
                "used": exact(it.used),
                "held": it.kept.is_ok(),
            })
        })
        .collect();
    if !held {
        return Err(io::Error::other(format!(
            "a limit was exceeded: {}",
            json!(cases)
        )));
    }
    Ok(json!({ "bench": "fleet", "nodes": plan.nodes, "held": held, "cases": cases }))
}

async fn once(plan: Plan, case: &Case) -> io::Result<Outcome> {
    let scratch = Scratch::new("fleet")?;
    let mut redis = vec![Redis::start(&scratch.path().join("redis"), &[])?];
    let mut url = redis[0].url();
    if case.fault == Fault::FailOver {
        let port = redis[0].port.to_string();
        let options = ["--replicaof", "127.0.0.1", &port];
        let replica = Redis::start(&scratch.path().join("replica"), &options)?;
        url = format!("{url},127.0.0.1:{}", replica.port);
        redis.push(replica);
    }
    let mut nodes = Vec::new();
    for no in 0..plan.nodes {
        let dir = scratch.path().join(format!("node-{no}"));
        let off = case.fault == Fault::ClockOff && no == 0;
        nodes.push(Node::start(&dir, &url, off).await?);
    }
    let doors: Vec<Door> = nodes.iter().map(|node| node.door.clone()).collect();
    let clients = Clients::start(&doors, plan.clients, &case.wish);
    let began = (Instant::now(), monotonic());
    let length = Duration::from_secs(plan.seconds);
    work_against(case.fault, began.0 + length, &mut redis, &mut nodes).await?;
    let ended = monotonic();
    let counts = clients.stop();
    let logs: Vec<PathBuf> = nodes.iter().map(Node::log).collect();
    // What was granted last is on its way to the logs.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    drop(nodes);
    let grants = Grants::read(&logs)?;
    let spec = LimitSpec::parse(case.wish.limit).map_err(io::Error::other)?;
    let failed = counts.failed.load(Ordering::Relaxed);
    progress(&format!(
        "{}: {} granted, {} refused after waiting, {failed} connections lost",
        case.name,
        counts.granted.load(Ordering::Relaxed),
        counts.refused.load(Ordering::Relaxed),
    ));
    Ok(Outcome {
        name: case.name,
        granted: grants.between(0, u64::MAX),
        used: used(&spec, &grants, began.1, ended),
        kept: grants.check(&spec),
    })
}

/// The part of what a limit allows that was granted.
fn used(spec: &LimitSpec, grants: &Grants, began: u64, ended: u64) -> f64 {
    if let LimitSpec::SlidingWindow { count, .. } = spec {
        return grants.between(0, u64::MAX) as f64 / f64::from(*count);
    }
    let from = began + u64::try_from(WARM_UP.as_nanos()).unwrap_or(0);
    let granted = grants.between(from, ended);
    let rate = spec.shape().rate.map_or(1.0, |rate| {
        f64::from(rate.count) / (rate.per.0 as f64 / 1e9)
    });
    granted as f64 / (rate * (ended.saturating_sub(from) as f64 / 1e9))
}

/// Lets things go wrong until the end.
async fn work_against(
    fault: Fault,
    end: Instant,
    redis: &mut [Redis],
    nodes: &mut [Node],
) -> io::Result<()> {
    // A short run has its faults, too.
    let length = end.saturating_duration_since(Instant::now());
    let every = match fault {
        Fault::None | Fault::ClockOff => length,
        Fault::KillNodes => (length / 3).min(Duration::from_secs(3)),
        Fault::StopNode => (length / 4).min(Duration::from_secs(3)),
        Fault::RestartRedis | Fault::FlushAll => (length / 3).min(Duration::from_secs(6)),
        Fault::FailOver => length / 2,
    };
    let stopped = (length / 4).min(Duration::from_secs(2));
    let mut turn = 0;
    while Instant::now() + every < end {
        tokio::time::sleep(every).await;
        let place = turn % nodes.len();
        turn += 1;
        match fault {
            Fault::None | Fault::ClockOff => {}
            Fault::KillNodes => nodes[place].kill_and_restart().await?,
            Fault::StopNode => {
                nodes[place].signal("STOP")?;
                tokio::time::sleep(stopped).await;
                nodes[place].signal("CONT")?;
            }
            Fault::RestartRedis => {
                redis[0].kill()?;
                tokio::time::sleep(Duration::from_millis(300)).await;
                redis[0].start_again()?;
            }
            Fault::FlushAll => drop(redis[0].command(&["FLUSHALL"])?),
            Fault::FailOver => {
                if turn == 1 {
                    redis[0].kill()?;
                    redis[1].command(&["REPLICAOF", "NO", "ONE"])?;
                }
            }
        }
    }
    let rest = end.saturating_duration_since(Instant::now());
    tokio::time::sleep(rest).await;
    Ok(())
}

/// The machine's monotonic clock, which all processes on it share.
fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
