//! `memory`: what a server holds in memory with 5 million messages queued, and
//! how soon it is ready again after it was killed.
//!
//! 100,000 flows, 50,000 destinations, 1,000 tenants, an idempotency key each,
//! submitted over HTTP while everything is paused.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::figures::{exact, median, short};
use crate::letters::Letter;
use crate::preload::preload;
use crate::server::{Scratch, Server, block_on, progress};

const FLOWS: u64 = 100_000;
const FLOWS_TO_A_DESTINATION: u64 = 2;
const TENANTS: u64 = 1_000;
/// Messages in one request.
const BATCH: u64 = 10_000;
const RESTARTS: usize = 3;
/// By then what was on its way when the last answer came has arrived, and what
/// requests needed for a moment has been given back.
const SETTLES: Duration = Duration::from_secs(12);
/// How long it may take until all are counted.
const PATIENCE: Duration = Duration::from_secs(60);

/// Queues `count` messages and looks.
pub fn run(count: u64) -> io::Result<Value> {
    block_on(async {
        let scratch = Scratch::new("memory")?;
        let mut server = Server::start(scratch.path(), "").await?;
        server.pause(json!({ "class": "normal" })).await?;
        let empty = server.memory_mb("VmRSS")?;
        let took = preload(&server, count, BATCH, letter).await?;
        let rate = count as f64 / took.as_secs_f64();
        tokio::time::sleep(SETTLES).await;
        check(&server, count).await?;
        let (rss, peak) = (server.memory_mb("VmRSS")?, server.memory_mb("VmHWM")?);
        progress(&format!(
            "{count} queued at {rate:.0}/s: {rss:.0} MB resident, {peak:.0} MB at most; killing it"
        ));
        let mut restarts = Vec::new();
        for _ in 0..RESTARTS {
            let ready = server.kill_and_restart().await?.as_secs_f64();
            check(&server, count).await?;
            let rss = server.memory_mb("VmRSS")?;
            progress(&format!("ready after {ready:.2} s with {rss:.0} MB"));
            restarts.push(ready);
        }
        let rss_after = server.memory_mb("VmRSS")?;
        let restart = median(&restarts);
        println!("{empty:.0} MB empty, {rss:.0} MB with {count} messages ({peak:.0} MB at most)");
        println!("ready {restart:.2} s after a kill, then {rss_after:.0} MB");
        Ok(json!({
            "bench": "memory",
            "messages": count,
            "rss_mb": short(rss),
            "restart_s": exact(restart),
            "rss_peak_mb": short(peak),
            "rss_after_restart_mb": short(rss_after),
            "queued_per_s": short(rate),
        }))
    })
}

/// Every message is there, by and by: what was accepted is counted by the node's
/// thread, which may have much to do.
async fn check(server: &Server, count: u64) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let queued = server.metric("outflow_queue_messages", "queued").await?;
        if queued as u64 == count {
            return Ok(());
        }
        if Instant::now() > until {
            let all = server.metric("outflow_queue_messages", "").await?;
            let settled = server.metric("outflow_messages_settled_total", "").await?;
            return Err(io::Error::other(format!(
                "{queued} messages are queued, not {count}; {all} in all states, {settled} settled"
            )));
        }
        progress(&format!("  {queued} of {count} are counted as queued"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn letter(no: u64) -> Letter {
    let flow = no % FLOWS;
    Letter {
        tenant: flow % TENANTS,
        class: "normal",
        domain: flow / FLOWS_TO_A_DESTINATION,
        no,
        has_key: true,
    }
}
