//! Nodes that are restarted, and a ledger that loses its counts: what was used
//! of a long window stays used.

use outflow_core::class::Class;
use outflow_core::engine;
use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_pipeline::{Node, Ports};

use super::nodes::{Nobody, Taker, TestNode, account, messages, policies};
use crate::memory::ledger::{LinkFaults, MemoryLedger, Settings, WorldClock};
use crate::memory::store::{self, Faults, MemoryStore};

/// Half past midnight, on the ledger's clock.
const BEGIN: Wall = Wall(1_767_225_600_000_000_000 + 1_800_000_000_000);

/// Nodes over one ledger. Each may be off by some seconds on its wall clock.
struct Fleet {
    limit: &'static str,
    world: WorldClock,
    ledger: MemoryLedger,
    nodes: Vec<(TestNode, Mono)>,
    ahead_secs: i64,
    sent: usize,
}

fn faults(seed: usize) -> LinkFaults {
    LinkFaults {
        latency_min: Nanos(300_000),
        latency_max: Nanos(1_500_000),
        entropy: Entropy(seed as u64),
        ..LinkFaults::default()
    }
}

impl Fleet {
    fn new(limit: &'static str, nodes: usize, ahead_secs: i64) -> Self {
        let world = WorldClock::default();
        let settings = Settings {
            wall: BEGIN,
            ..Settings::default()
        };
        let ledger = MemoryLedger::new(settings, world.clone());
        let mut fleet = Self {
            limit,
            world,
            ledger,
            nodes: Vec::new(),
            ahead_secs,
            sent: 0,
        };
        for seed in 0..nodes {
            let ports = Ports {
                store: MemoryStore::new(store::Settings::default(), Faults::default()),
                ledger: fleet.ledger.link(faults(seed)),
                transport: Taker::default(),
                resolver: Nobody,
            };
            let node = fleet.boot(ports);
            fleet.nodes.push((node, Mono(0)));
        }
        fleet
    }

    fn now(&self) -> Now {
        let mono = self.world.now();
        let wall = BEGIN.0 + self.ahead_secs * 1_000_000_000;
        Now {
            mono,
            wall: Wall(wall) + Nanos(mono.0),
            entropy: Entropy(mono.0),
        }
    }

    fn boot(
        &self,
        ports: Ports<MemoryStore, crate::memory::ledger::LedgerLink, Taker, Nobody>,
    ) -> TestNode {
        let settings = engine::Settings {
            leased: true,
            ..engine::Settings::default()
        };
        let mut node = Node::start(&self.now(), settings, policies(self.limit), ports);
        node.post(account());
        node
    }

    fn submit(&mut self, count: usize) {
        let now = self.now();
        for (node, next) in &mut self.nodes {
            // For the most urgent class nothing is kept back.
            let mut batch = messages(0, count);
            for message in &mut batch {
                message.key.class = Class::Critical;
            }
            node.submit(&now, batch).unwrap();
            *next = Mono(0);
        }
    }

    fn run(&mut self, secs: u64) {
        let end = self.world.now() + Nanos::from_secs(secs);
        loop {
            let next = self.nodes.iter().map(|(_, next)| *next).min();
            let at = next.unwrap_or(end).max(self.world.now());
            if at >= end {
                break;
            }
            self.world.set(at);
            let now = self.now();
            for (node, next) in &mut self.nodes {
                if *next <= at {
                    *next = node.turn(&now).max(at);
                }
            }
        }
        self.world.set(end);
        for (node, next) in &mut self.nodes {
            self.sent += std::mem::take(&mut node.ports_mut().transport.sent).len();
            *next = Mono(0);
        }
    }

    /// The process of a node dies and another one takes its place.
    fn restart(&mut self, place: usize) {
        let (node, _) = self.nodes.remove(place);
        let ports = node.into_ports();
        self.sent += ports.transport.sent.len();
        let ledger = self.ledger.link_again(&ports.ledger, faults(place + 7));
        let ports = Ports {
            store: ports.store.crash(),
            ledger,
            transport: Taker::default(),
            resolver: Nobody,
        };
        let node = self.boot(ports);
        self.nodes.insert(place, (node, Mono(0)));
    }
}

const LIMITS: [&str; 3] = ["300/day@UTC", "300/h", "300/h@Europe/Berlin"];
/// The nodes' wall clocks: right, in the day before, a day ahead.
const AHEAD: [i64; 3] = [0, -3_600, 86_400];

/// A rolling deploy, then the ledger is restarted without its counts.
#[test]
fn a_quota_is_not_granted_again_after_rolling_restarts_and_a_loss() {
    for (limit, ahead) in LIMITS.into_iter().flat_map(|it| AHEAD.map(|by| (it, by))) {
        let mut fleet = Fleet::new(limit, 3, ahead);
        fleet.submit(60);
        fleet.run(20);
        assert_eq!(fleet.sent, 180, "{limit}: there is enough for all");
        for place in 0..3 {
            fleet.restart(place);
            fleet.run(5);
        }
        fleet.ledger.lose_state();
        fleet.submit(400);
        fleet.run(60);
        let sent = fleet.sent;
        assert!(
            sent <= 300,
            "{limit}: {sent} of 300, clocks off by {ahead} s"
        );
        // What was promised on disk counts as used: two blocks of a hundredth.
        assert!(
            sent >= 300 - 3 * 8,
            "{limit}: {sent} of 300 are left unused"
        );
    }
}

/// What is used up stays used up, whoever is restarted first, and if both are at
/// once.
#[test]
fn a_quota_that_is_used_up_stays_so_in_any_order() {
    for limit in LIMITS {
        for order in 0..4 {
            let mut fleet = Fleet::new(limit, 2, 0);
            fleet.submit(400);
            fleet.run(20);
            let sent = fleet.sent;
            assert!((290..=300).contains(&sent), "{limit}: {sent}");
            for round in 0..3 {
                match order {
                    // Nodes first, the ledger first, both at once, node by node.
                    0 => {
                        (0..2).for_each(|place| fleet.restart(place));
                        fleet.run(3);
                        fleet.ledger.lose_state();
                    }
                    1 => {
                        fleet.ledger.lose_state();
                        fleet.run(3);
                        (0..2).for_each(|place| fleet.restart(place));
                    }
                    2 => {
                        fleet.ledger.lose_state();
                        (0..2).for_each(|place| fleet.restart(place));
                    }
                    _ => {
                        fleet.restart(round % 2);
                        fleet.ledger.lose_state();
                    }
                }
                fleet.run(10);
                let sent = fleet.sent;
                assert!(sent <= 300, "{limit}, order {order}, round {round}: {sent}");
            }
        }
    }
}

/// Yesterday's use does not count today, whatever was restarted.
#[test]
fn a_new_day_has_its_own_quota_after_a_loss() {
    let mut fleet = Fleet::new("300/h@UTC", 2, 0);
    fleet.submit(400);
    fleet.run(20);
    fleet.restart(0);
    fleet.ledger.lose_state();
    fleet.run(10);
    assert!(fleet.sent <= 300, "{}", fleet.sent);
    // The next hour begins after half an hour.
    fleet.run(1_800);
    let second = fleet.sent;
    assert!((560..=600).contains(&second), "{second} in two hours");
}

/// Reports are made once for each loss, also by a node that is restarted after
/// it has made them.
#[test]
fn a_node_that_is_restarted_after_a_loss_reports_once() {
    for limit in LIMITS {
        let mut fleet = Fleet::new(limit, 2, 0);
        fleet.submit(70);
        fleet.run(20);
        fleet.ledger.lose_state();
        fleet.run(5);
        for _ in 0..3 {
            (0..2).for_each(|place| fleet.restart(place));
            fleet.run(5);
        }
        fleet.submit(400);
        fleet.run(60);
        let sent = fleet.sent;
        assert!((270..=300).contains(&sent), "{limit}: {sent} of 300");
    }
}
