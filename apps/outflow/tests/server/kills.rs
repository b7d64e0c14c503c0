//! `kill -9` at random moments under load: every acknowledged message arrives,
//! and only those that were under way arrive twice.
//!
//! Settlements are written in the order of the replies. So of what a process sent
//! before a message that was seen to be settled, only what was under way beside
//! it can be sent again: one on each other connection. All else that is sent
//! again was sent after it, between that look and the kill.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::process::{Place, Taken, listed, message, metric, wait_for};
use crate::stops::submit_until;

/// A number from the environment, or the usual one.
pub fn from_env(name: &str, usual: usize) -> usize {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

const CONNECTIONS: usize = 64;

#[test]
fn every_acknowledged_message_survives_kill_9() {
    let rounds = from_env("OUTFLOW_KILL_ROUNDS", 50);
    let queued = from_env("OUTFLOW_KILL_QUEUED", 100_000);
    let place = Place::new("kills");
    place.configure(&format!(
        "[[account]]\nid = \"main\"\ntransport = \"sandbox\"\nmax_connections = {CONNECTIONS}\n\
         sandbox = {{ latency = {{ p50 = \"5ms\", p99 = \"50ms\" }} }}\n",
    ));
    let mut server = place.start();
    queue(&mut server.client(), queued);
    let (mut acknowledged, mut settled) = (BTreeSet::new(), BTreeMap::new());
    let (mut readiness, mut repeated) = (Vec::new(), Vec::new());
    let mut taken = Taken::default();
    for _ in 0..rounds {
        let moment = Duration::from_micros(random() % 400_000);
        let (acks, known) = under_load(server, moment);
        acknowledged.extend(acks);
        // What was known to be settled before the kill must not be sent again.
        taken.read_on(&place);
        for id in known {
            let times = taken.messages.get(&id).map_or(0, Vec::len);
            settled.entry(id).or_insert(times);
        }
        server = place.start();
        readiness.push(server.ready_after);
    }
    wait_for("every acknowledged message", || {
        taken.read_on(&place);
        acknowledged
            .iter()
            .all(|id| taken.messages.contains_key(id))
            .then_some(())
    });
    let mut client = server.client();
    wait_for("only what has no account waits", || {
        let waiting = listed(&mut client, "queued,sending,deferred&pool=default");
        waiting.is_empty().then_some(())
    });
    let line = "outflow_queue_messages{channel=\"email\",class=\"normal\",state=\"queued\"}";
    let waiting = metric(&mut client, line);
    assert_eq!(waiting, Some(queued as f64), "of those without an account");
    taken.read_on(&place);
    let (taken, order) = (taken.messages, taken.order);
    for (id, processes) in taken.iter().filter(|(_, times)| times.len() > 1) {
        let distinct: BTreeSet<&u64> = processes.iter().collect();
        assert_eq!(
            distinct.len(),
            processes.len(),
            "{id}: twice in one process"
        );
        repeated.push(id);
    }
    for (id, times) in &settled {
        assert_eq!(taken[id].len(), *times, "{id} was settled and sent again");
    }
    for (process, sent) in &order {
        let again = again_beside_settled(*process, sent, &taken, &settled);
        assert!(again < CONNECTIONS, "{again} of process {process}");
    }
    readiness.sort_unstable();
    eprintln!(
        "{rounds} kills: {} acknowledged, {} taken, {} of them more than once ({:.2} a kill), \
         {} known to be settled and never sent again; ready after {:?} (median), {:?} (longest), with {queued} queued",
        acknowledged.len(),
        taken.len(),
        repeated.len(),
        repeated.len() as f64 / rounds as f64,
        settled.len(),
        readiness.get(rounds / 2).unwrap_or(&Duration::ZERO),
        readiness.last().unwrap_or(&Duration::ZERO),
    );
    assert!(acknowledged.len() > rounds, "there was hardly any load");
    server.stop();
}

/// How many that a process sent before one that it was seen to have settled were
/// sent again by a later one.
fn again_beside_settled(
    process: u64,
    sent: &[String],
    taken: &BTreeMap<String, Vec<u64>>,
    settled: &BTreeMap<String, usize>,
) -> usize {
    let is_last = |id: &String| taken[id].last() == Some(&process);
    let last_settled = sent
        .iter()
        .rposition(|id| settled.contains_key(id) && is_last(id));
    let before = sent.iter().take(last_settled.unwrap_or(0));
    before.filter(|id| !is_last(id)).count()
}

/// Messages that wait for good: their pool has no account.
fn queue(client: &mut crate::client::Client, count: usize) {
    let mut left = count;
    while left > 0 {
        let size = left.min(1_000);
        left -= size;
        let messages = vec![message(json!({ "pool": "nowhere", "tenant": "stuck" })); size];
        let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
        assert_eq!(answer.unwrap().status, 202);
    }
}

/// Submits from several connections until `moment` has passed, then kills the
/// server: what was acknowledged, and what was known to be delivered.
fn under_load(server: crate::process::Server, moment: Duration) -> (Vec<String>, Vec<String>) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let loads: Vec<_> = [1, 1, 1, 25]
            .into_iter()
            .map(|batch| {
                let (client, stop) = (server.client(), &stop);
                scope.spawn(move || submit_until(client, stop, batch))
            })
            .collect();
        let mut client = server.client();
        let began = Instant::now();
        // The moment is random, so nothing depends on its length.
        thread::park_timeout(moment.saturating_sub(began.elapsed()));
        let page = client.get("/api/v1/messages?state=delivered&limit=200");
        let known = page.map(|page| page.json()).unwrap_or_default();
        let known = known["messages"].as_array().into_iter().flatten();
        let known = known.map(|it| it["id"].as_str().unwrap().to_owned());
        let known: Vec<String> = known.collect();
        server.kill();
        let acks = loads.into_iter().flat_map(|load| load.join().unwrap().0);
        (acks.collect(), known)
    })
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
