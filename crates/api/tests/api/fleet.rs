//! Policies that several nodes share.

use std::sync::{Arc, Mutex};

use outflow_api::{StartValues, fleet};
use outflow_core::limit::spec::Rate;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::RateOrShare;
use outflow_ports::fleet::{Fleet, FleetAway, Shared, SharedDocument};
use outflow_ports::intake::Then;
use serde_json::json;

use crate::world::World;

/// What all share, in memory.
#[derive(Default)]
struct Board {
    shared: Mutex<Shared>,
    is_away: Mutex<bool>,
}

impl Board {
    fn away(&self) -> Result<(), FleetAway> {
        match *self.is_away.lock().unwrap() {
            true => Err(FleetAway("it is away".to_owned())),
            false => Ok(()),
        }
    }
}

impl Fleet for Board {
    fn publish(&self, id: String, value: Option<String>, then: Then<Result<u64, FleetAway>>) {
        if let Err(away) = self.away() {
            return then(Err(away));
        }
        let mut shared = self.shared.lock().unwrap();
        shared.version += 1;
        let version = shared.version;
        shared.documents.retain(|other| other.id != id);
        shared.documents.push(SharedDocument { id, value, version });
        drop(shared);
        then(Ok(version));
    }

    fn read(&self, then: Then<Result<Shared, FleetAway>>) {
        let shared = self.shared.lock().unwrap().clone();
        then(self.away().map(|()| shared));
    }

    fn latest(&self) -> u64 {
        self.shared.lock().unwrap().version
    }
}

fn nodes(count: usize) -> (Arc<Board>, Vec<World>) {
    let board = Arc::new(Board::default());
    let node = |_| World::of_fleet(Arc::clone(&board) as _, StartValues::default());
    let nodes = (0..count).map(node).collect();
    (board, nodes)
}

async fn follow(nodes: &[World]) {
    for node in nodes {
        fleet::follow(&node.state).await.unwrap();
    }
}

/// The rate in force at a node, per second, and of which version.
fn rate(world: &World, matches: &str) -> (Option<u32>, u64) {
    let state = world.node.state.lock().unwrap();
    let matches: Match = matches.parse().unwrap();
    let rate = state.policies.get(&matches).and_then(|policy| policy.rate);
    let rate = match rate {
        Some(RateOrShare::Rate(Rate { count, .. })) => Some(count),
        _ => None,
    };
    (rate, state.policies.version())
}

async fn set(world: &World, path: &str, rate: &str) -> u16 {
    let path = format!("/api/v1/policies/{path}");
    let body = json!({ "rate": rate });
    let answer = world.call(&world.admin, "PUT", &path, body).await;
    answer.status.as_u16()
}

#[tokio::test]
async fn a_change_on_one_node_is_in_force_on_all() {
    let (_, nodes) = nodes(3);
    follow(&nodes).await;
    assert_eq!(set(&nodes[0], "isp/google", "20/s").await, 200);
    assert_eq!(rate(&nodes[0], "isp:google"), (Some(20), 1));
    assert_eq!(rate(&nodes[1], "isp:google"), (None, 0));
    follow(&nodes).await;
    for node in &nodes {
        assert_eq!(rate(node, "isp:google"), (Some(20), 1));
    }
    // Two nodes change two things before either looks.
    assert_eq!(set(&nodes[1], "isp/google", "10/s").await, 200);
    assert_eq!(set(&nodes[2], "isp/yahoo", "5/s").await, 200);
    follow(&nodes).await;
    for node in &nodes {
        assert_eq!(rate(node, "isp:google"), (Some(10), 3));
        assert_eq!(rate(node, "isp:yahoo"), (Some(5), 3));
    }
    let path = "/api/v1/policies/isp/google";
    let gone = nodes[2]
        .call(&nodes[2].admin, "DELETE", path, json!({}))
        .await;
    assert_eq!(gone.status.as_u16(), 204);
    follow(&nodes).await;
    for node in &nodes {
        assert_eq!(rate(node, "isp:google"), (None, 4));
    }
    let audit = nodes[0]
        .call(&nodes[0].admin, "GET", "/api/v1/audit", json!(null))
        .await;
    assert!(audit.text.contains("policy.shared"), "{}", audit.text);
}

#[tokio::test]
async fn nothing_changes_while_the_ledger_is_away() {
    let (board, nodes) = nodes(2);
    follow(&nodes).await;
    set(&nodes[0], "isp/google", "20/s").await;
    *board.is_away.lock().unwrap() = true;
    let path = "/api/v1/policies/isp/google";
    let body = json!({ "rate": "1/s" });
    let answer = nodes[0].call(&nodes[0].admin, "PUT", path, body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (503, "ledger_away")
    );
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(rate(&nodes[0], "isp:google").0, Some(20));
    fleet::follow(&nodes[1].state).await.unwrap_err();
    *board.is_away.lock().unwrap() = false;
    follow(&nodes).await;
    assert_eq!(rate(&nodes[1], "isp:google").0, Some(20));
}

#[tokio::test]
async fn a_node_brings_what_it_had_and_takes_what_there_is() {
    let (board, first) = nodes(1);
    follow(&first).await;
    set(&first[0], "isp/google", "20/s").await;
    // A second node had its own before it joined.
    let alone = World::new();
    set(&alone, "isp/google", "7/s").await;
    set(&alone, "isp/yahoo", "5/s").await;
    let joined = alone.join(Arc::clone(&board) as _);
    follow(std::slice::from_ref(&joined)).await;
    follow(&first).await;
    for node in [&first[0], &joined] {
        assert_eq!(
            rate(node, "isp:google").0,
            Some(20),
            "the fleet's word counts"
        );
        assert_eq!(
            rate(node, "isp:yahoo").0,
            Some(5),
            "what only one had is shared"
        );
    }
}
