//! Whole nodes over one ledger: together they use a limit up and never exceed
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::limit::LimitSpec;
use outflow_core::message::Recipient;
use outflow_core::name::Name;
use outflow_core::policy::policy::Policy;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_pipeline::{Node, Ports};
use outflow_ports::intake::Submission;
use outflow_ports::resolver::Resolver;
use outflow_ports::transport::{Transport, TransportWork};

use crate::memory::ledger::{LedgerLink, LinkFaults, MemoryLedger, Settings, WorldClock};
use crate::memory::store::{self, Faults, MemoryStore};

const LATENCY: Nanos = Nanos::from_millis(2);

/// Takes every message, and notes when it was sent.
#[derive(Default)]
pub(super) struct Taker {
    coming: BTreeMap<(Mono, usize), Event>,
    count: usize,
    pub sent: Vec<Mono>,
}

impl Transport for Taker {
    fn submit(&mut self, now: &Now, work: TransportWork<'_>) {
        let event = match work {
            TransportWork::Open { session, .. } => Event::SessionReady { session },
            TransportWork::Close { .. } => return,
            TransportWork::Deliver { delivery, .. } => {
                self.sent.push(now.mono);
                Event::Replied {
                    permit: delivery.permit,
                    reply: Reply::accepted(),
                    session_lives: true,
                }
            }
        };
        self.count += 1;
        self.coming.insert((now.mono + LATENCY, self.count), event);
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        while let Some(first) = self.coming.first_entry() {
            if first.key().0 > now.mono {
                break;
            }
            done.push(first.remove());
        }
    }

    fn next_completion(&self) -> Mono {
        let first = self.coming.first_key_value();
        first.map_or(Mono::NEVER, |(key, _)| key.0)
    }
}

/// Knows nobody.
pub(super) struct Nobody;

impl Resolver for Nobody {
    fn submit(&mut self, _: &Now, _: Name) {}

    fn complete(&mut self, _: &Now, _: &mut Vec<Event>) {}

    fn next_completion(&self) -> Mono {
        Mono::NEVER
    }
}

pub(super) type TestNode = Node<MemoryStore, LedgerLink, Taker, Nobody>;

fn at(mono: Mono) -> Now {
    Now {
        mono,
        wall: Wall(0) + Nanos(mono.0),
        entropy: Entropy(mono.0),
    }
}

/// One limit of all that goes to one destination.
pub(super) fn policies(limit: &str) -> Policies {
    let mut policies = Policies::default();
    let policy = Policy {
        limits: vec![LimitSpec::parse(limit).unwrap()],
        ..Policy::new("isp:example".parse().unwrap())
    };
    policies.insert(policy).unwrap();
    policies
}

/// An account with more sessions than are needed.
pub(super) fn account() -> Event {
    Event::AccountChanged {
        account: Box::new(AccountSpec {
            sessions: Sessions::slots(100),
            ..AccountSpec::new("a")
        }),
    }
}

fn node(limit: &str, link: LedgerLink) -> TestNode {
    let now = at(Mono(0));
    let settings = engine::Settings {
        leased: true,
        ..engine::Settings::default()
    };
    let ports = Ports {
        store: MemoryStore::new(store::Settings::default(), Faults::default()),
        ledger: link,
        transport: Taker::default(),
        resolver: Nobody,
    };
    let mut node = Node::start(&now, settings, policies(limit), ports);
    node.post(account());
    node
}

pub(super) fn messages(tenant: usize, count: usize) -> Vec<Submission> {
    let body: Arc<[u8]> = Arc::from(*b"hello");
    let key = FlowKey {
        tenant: Name::from(format!("tenant-{tenant}")),
        ..FlowKey::to(Destination::isp("example"))
    };
    let message = Submission {
        key,
        idempotency_key: None,
        not_before: None,
        expires_at: Wall::NEVER,
        recipient: Recipient(0),
        cost: 1,
        engaged: None,
        envelope: Arc::clone(&body),
        body,
    };
    vec![message; count]
}

/// All nodes with more than enough to send. When each message was sent.
fn run(limit: &str, nodes: usize, tenants: usize, secs: u64) -> Vec<Vec<Mono>> {
    let world = WorldClock::default();
    let ledger = MemoryLedger::new(Settings::default(), world.clone());
    let mut nodes: Vec<TestNode> = (0..nodes)
        .map(|seed| {
            let faults = LinkFaults {
                latency_min: Nanos(300_000),
                latency_max: Nanos(1_500_000),
                entropy: Entropy(seed as u64),
                ..LinkFaults::default()
            };
            node(limit, ledger.link(faults))
        })
        .collect();
    let end = Mono(Nanos::from_secs(secs).0);
    for node in &mut nodes {
        for tenant in 0..tenants {
            let count = 1_200 * secs as usize / tenants;
            node.submit(&at(Mono(0)), messages(tenant, count)).unwrap();
        }
    }
    let mut next = vec![Mono(0); nodes.len()];
    loop {
        let now = next.iter().copied().min().unwrap().max(world.now());
        if now >= end {
            break;
        }
        world.set(now);
        for (node, next) in nodes.iter_mut().zip(&mut next) {
            if *next <= now {
                *next = node.turn(&at(now)).max(now);
            }
        }
    }
    let sent = |node: &mut TestNode| std::mem::take(&mut node.ports_mut().transport.sent);
    nodes.iter_mut().map(sent).collect()
}

fn check_bucket(rate: u64, burst: u64, sent: &[Vec<Mono>]) {
    let mut all: Vec<Mono> = sent.iter().flatten().copied().collect();
    all.sort_unstable();
    // In billionths of a token.
    let full = burst * 1_000_000_000;
    let (mut level, mut last) = (full, Mono(0));
    for now in all {
        level = (level + now.since(last).0 * rate).min(full);
        last = now;
        level = level.checked_sub(1_000_000_000).expect("the limit holds");
    }
}

#[test]
fn four_nodes_use_a_fast_limit_up() {
    for tenants in [1, 5] {
        let sent = run("1000/s burst 100", 4, tenants, 12);
        check_bucket(1_000, 100, &sent);
        let from = Mono(Nanos::from_secs(2).0);
        let used: Vec<usize> = sent
            .iter()
            .map(|node| node.iter().filter(|at| **at >= from).count())
            .collect();
        let all: usize = used.iter().sum();
        assert!(all >= 9_800, "{tenants} tenants: {used:?} in 10 s");
        assert!(
            used.iter().all(|node| *node > 1_000),
            "{tenants} tenants: {used:?} in 10 s"
        );
    }
}

#[test]
fn spaced_limits_are_spaced_over_nodes() {
    let sent = run("50/s spaced", 3, 2, 12);
    let mut all: Vec<Mono> = sent.iter().flatten().copied().collect();
    all.sort_unstable();
    let gaps = all.iter().zip(all.iter().skip(1));
    let least = gaps.map(|(earlier, later)| later.since(*earlier)).min();
    assert!(least >= Some(Nanos::from_millis(20)), "{least:?}");
    assert!(all.len() >= 500, "{} in 12 s", all.len());
}
