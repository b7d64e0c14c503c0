//! What the demonstration showed, with its checks stated: limits held, nothing
//! lost.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use outflow_core::message::Seq;
use serde_json::{Value, json};

use super::client::Client;
use super::table::Latency;
use super::traffic::{Accepted, seq_of};
use super::witness::Witness;

/// Pages that are read for a list, at most.
const PAGES_MAX: usize = 100_000;

/// What was found at the end.
#[derive(Debug)]
pub struct Summary {
    /// As JSON.
    pub json: Value,
    /// Whether every check held.
    pub holds: bool,
}

/// Looks for every accepted message: it has arrived, waits, or is a dead
/// letter. What waits is asked for first, so that a message that is sent
/// meanwhile is seen on one side or the other.
pub fn sum_up(
    ran: Duration,
    client: &mut Client,
    accepted: &Accepted,
    witness: &Witness,
    critical: Latency,
) -> io::Result<Summary> {
    let waiting = listed(client, "queued,sending,deferred,spilled")?;
    let dead = listed(client, "dead")?;
    let arrived = |seq: &Seq| witness.arrived(*seq).is_some();
    let is_there = |seq: &Seq| arrived(seq) || waiting.contains(seq) || dead.contains(seq);
    let lost = accepted.all.iter().filter(|seq| !is_there(seq)).count();
    let delivered = accepted.all.iter().filter(|seq| arrived(seq)).count();
    let (_, duplicates) = witness.counts();
    let arrivals = witness.arrivals();
    let limits: Vec<Value> = arrivals
        .iter()
        .map(|(key, it)| {
            json!({
                "key": key,
                "limit": it.limit,
                "delivered": it.count,
                "per_s": it.count as f64 / ran.as_secs_f64().max(0.001),
                "held": it.excesses.is_empty(),
                "excess": it.excesses,
            })
        })
        .collect();
    let limits_held = arrivals.values().all(|it| it.excesses.is_empty());
    let nothing_lost = lost == 0 && accepted.failures.is_empty() && !accepted.all.is_empty();
    let holds = limits_held && nothing_lost && duplicates == 0;
    let json = json!({
        "seconds": ran.as_secs_f64(),
        "accepted": accepted.all.len(),
        "delivered": delivered,
        "waiting": waiting.iter().filter(|seq| !arrived(seq)).count(),
        "dead": dead.len(),
        "lost": lost,
        "duplicates": duplicates,
        "refused_requests": accepted.failures,
        "limits": limits,
        "critical": {
            "count": critical.count,
            "p50_ms": critical.p50.as_secs_f64() * 1e3,
            "p99_ms": critical.p99.as_secs_f64() * 1e3,
            "max_ms": critical.max.as_secs_f64() * 1e3,
        },
        "checks": {
            "limits_held": limits_held,
            "nothing_lost": nothing_lost,
            "no_duplicates": duplicates == 0,
        },
        "ok": holds,
    });
    Ok(Summary { json, holds })
}

/// The numbers of all messages in these states.
fn listed(client: &mut Client, states: &str) -> io::Result<BTreeSet<Seq>> {
    let mut found = BTreeSet::new();
    let mut cursor = String::new();
    for _ in 0..PAGES_MAX {
        let path = format!("/api/v1/messages?state={states}&limit=200{cursor}");
        let answer = client.get(&path)?;
        if answer.status != 200 {
            let text = format!("{path}: {} {}", answer.status, answer.text);
            return Err(io::Error::other(text));
        }
        let page = answer.json();
        let messages = page
            .get("messages")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        found.extend(messages.filter_map(seq_of));
        match page.get("next_cursor").and_then(Value::as_str) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(found),
        }
    }
    Err(io::Error::other("the list does not end"))
}
