//! `trickle`: a server that has little to do does little.
//!
//! Many messages with an idempotency key each are delivered by the real server.
//! Their keys are remembered for a day. Then two messages a second come for two
//! minutes: what is written to the disk meanwhile, how much of a core it takes,
//! and how long a submission takes, against a server that had nothing before.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cardinality::{Differs, drain, run_phase};
use crate::figures::{exact, median, percentile};
use crate::http::Connection;
use crate::server::{Scratch, Server, block_on, own_cpu, progress};

/// Between two messages.
const EVERY: Duration = Duration::from_millis(500);
/// How long a server is left alone before it is looked at: receipts are written
/// and space is given back.
const REST: Duration = Duration::from_secs(20);

/// How much.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Messages that were delivered before.
    pub messages: u64,
    /// Seconds of two messages each.
    pub seconds: u64,
}

/// What a server did while little came.
struct Trickled {
    write_mb_per_s: f64,
    by_calls_mb_per_s: f64,
    cpu_share: f64,
    submit_ms: Vec<f64>,
}

impl Trickled {
    fn print(&self, name: &str) {
        println!(
            "{name:<8} {:>7.3} MB/s written, {:.3} by calls, {:>5.1} % of a core, submit p50 {:.2} ms, p99 {:.2} ms",
            self.write_mb_per_s,
            self.by_calls_mb_per_s,
            self.cpu_share * 100.0,
            median(&self.submit_ms),
            self.p99()
        );
    }

    fn p99(&self) -> f64 {
        percentile(&self.submit_ms, 99.0)
    }
}

/// Submits one message; how long that took.
async fn submit(server: &Server, connection: &mut Connection, no: &str) -> io::Result<Duration> {
    let message = json!({
        "idempotency_key": format!("trickle-{no}"),
        "tenant": "plain",
        "from": "shop@example.com",
        "to": format!("t{no}@same.example"),
        "subject": format!("Order {no}"),
        "text": "Thank you for your order.",
    });
    let request = server.submission(message.to_string().as_bytes());
    let asked = Instant::now();
    connection.call(&request).await?.expect(202)?;
    Ok(asked.elapsed())
}

async fn trickle(server: &Server, seconds: u64) -> io::Result<Trickled> {
    let mut connection = server.connect().await?;
    // The first one makes files of full length, once in the life of a store.
    submit(server, &mut connection, "first").await?;
    tokio::time::sleep(REST).await;
    // The server hangs up on connections that rest for so long.
    let mut connection = server.connect().await?;
    let (written, cpu, began) = (server.written()?, server.cpu(), Instant::now());
    let mut submit_ms = Vec::new();
    let mut ticks = tokio::time::interval(EVERY);
    let count = Duration::from_secs(seconds).as_millis() / EVERY.as_millis();
    for no in 0..count {
        ticks.tick().await;
        let took = submit(server, &mut connection, &no.to_string()).await?;
        submit_ms.push(took.as_secs_f64() * 1_000.0);
    }
    let took = began.elapsed().as_secs_f64();
    let (before, written) = (written, server.written()?);
    let mb_per_s = |before: u64, after: u64| after.saturating_sub(before) as f64 / 1e6 / took;
    let cpu = server.cpu().saturating_sub(cpu);
    Ok(Trickled {
        write_mb_per_s: mb_per_s(before.to_disk, written.to_disk),
        by_calls_mb_per_s: mb_per_s(before.by_calls, written.by_calls),
        cpu_share: cpu.as_secs_f64() / took,
        submit_ms,
    })
}

/// Both servers, one after the other.
pub fn run(plan: Plan) -> io::Result<Value> {
    block_on(async {
        let scratch = Scratch::new("trickle")?;
        let empty = Server::start(&scratch.path().join("empty"), "").await?;
        let before = trickle(&empty, plan.seconds).await?;
        before.print("empty");
        drop(empty);
        let server = Server::start(&scratch.path().join("full"), "").await?;
        let client = (own_cpu(), Instant::now());
        run_phase(&server, Differs::Key, plan.messages, 0).await?;
        drain(&server, plan.messages).await?;
        progress(&format!(
            "{} messages are delivered, in {:.0} s",
            plan.messages,
            client.1.elapsed().as_secs_f64()
        ));
        let after = trickle(&server, plan.seconds).await?;
        after.print("after");
        let ratio = after.p99() / before.p99();
        Ok(json!({
            "bench": "trickle",
            "messages": plan.messages,
            "seconds": plan.seconds,
            "write_mb_per_s": exact(after.write_mb_per_s),
            "by_calls_mb_per_s": exact(after.by_calls_mb_per_s),
            "cpu_share": exact(after.cpu_share),
            "submit_p50_ms": exact(median(&after.submit_ms)),
            "submit_p99_ms": exact(after.p99()),
            "submit_p99_ratio": exact(ratio),
            "empty_write_mb_per_s": exact(before.write_mb_per_s),
            "empty_cpu_share": exact(before.cpu_share),
            "empty_submit_p50_ms": exact(median(&before.submit_ms)),
            "empty_submit_p99_ms": exact(before.p99()),
            "client_cpu": exact((own_cpu() - client.0).as_secs_f64() / client.1.elapsed().as_secs_f64()),
        }))
    })
}
