//! Flows end when nothing of them is left, and everything that came with them
//! goes too, whatever happened before: a node over a store that crashes, with
//! random submissions, deferrals, cancels, moves, pauses and restarts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::event::Event;
use outflow_core::engine::{Gauges, Settings};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::Rate;
use outflow_core::message::{Recipient, Seq};
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_pipeline::{Node, Ports};
use outflow_ports::control::Bulk;
use outflow_ports::intake::Submission;
use outflow_ports::ledger::NoLedger;
use outflow_ports::resolver::Resolver;
use outflow_ports::store::Store;
use outflow_ports::transport::{Transport, TransportWork};
use outflow_simulator::memory::MemoryStore;
use outflow_simulator::memory::store::{Faults, Settings as StoreSettings};

const NEW_YEAR: Wall = Wall(1_767_225_600_000_000_000);

/// Answers everything at once, with what it draws.
#[derive(Debug)]
struct Wire {
    answers: VecDeque<Event>,
    entropy: Entropy,
    /// Where each body was sent to.
    sent: Vec<(Vec<u8>, Destination)>,
}

impl Transport for Wire {
    fn submit(&mut self, _: &Now, work: TransportWork<'_>) {
        match work {
            TransportWork::Open { session, .. } => {
                self.answers.push_back(Event::SessionReady { session });
            }
            TransportWork::Close { .. } => {}
            TransportWork::Deliver {
                delivery,
                parcel,
                destination,
                ..
            } => {
                let body = parcel.unwrap().read().unwrap().body;
                self.sent.push((body.to_vec(), destination.clone()));
                let reply = match self.entropy.draw() % 8 {
                    0 => Reply::said(Stage::Data, 451, "4.3.0 later"),
                    1 => Reply::said(Stage::Data, 550, "5.1.1 nobody"),
                    _ => Reply::said(Stage::Data, 250, "2.0.0 taken"),
                };
                self.answers.push_back(Event::Replied {
                    permit: delivery.permit,
                    reply,
                    session_lives: true,
                });
            }
        }
    }

    fn complete(&mut self, _: &Now, done: &mut Vec<Event>) {
        done.extend(self.answers.drain(..));
    }

    fn next_completion(&self) -> Mono {
        match self.answers.is_empty() {
            true => Mono::NEVER,
            false => Mono(0),
        }
    }
}

/// All domains resolve to one of three providers, after a while.
#[derive(Debug, Default)]
struct Domains {
    asked: VecDeque<(Mono, Name)>,
}

fn provider(domain: &str) -> Destination {
    let number: u64 = domain.bytes().map(u64::from).sum();
    Destination::isp(format!("provider-{}", number % 3))
}

impl Resolver for Domains {
    fn submit(&mut self, now: &Now, domain: Name) {
        let at = now.mono + Nanos::from_millis(300);
        self.asked.push_back((at, domain));
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        while let Some((_, domain)) = self.asked.pop_front_if(|(at, _)| *at <= now.mono) {
            let destination = provider(domain.as_str());
            done.push(Event::Resolved {
                domain,
                destination,
            });
        }
    }

    fn next_completion(&self) -> Mono {
        self.asked.front().map_or(Mono::NEVER, |&(at, _)| at)
    }
}

type TestNode = Node<MemoryStore, NoLedger, Wire, Domains>;

struct Town {
    node: Option<TestNode>,
    mono: Mono,
    entropy: Entropy,
    keys: BTreeMap<u64, FlowKey>,
    sent: Vec<(Vec<u8>, Destination)>,
    most: Gauges,
}

fn policies() -> Policies {
    let mut policies = Policies::default();
    for (scope, rate) in [("campaign", 50), ("tenant", 200), ("isp", 300)] {
        let mut policy = Policy::new(Match::from_pairs([(scope, "*")]).unwrap());
        policy.rate = Some(RateOrShare::Rate(Rate::per_second(rate)));
        policies.insert(policy).unwrap();
    }
    policies
}

impl Town {
    fn new(seed: u64) -> Self {
        let mut town = Self {
            node: None,
            mono: Mono(1),
            entropy: Entropy(seed),
            keys: BTreeMap::new(),
            sent: Vec::new(),
            most: Gauges::default(),
        };
        let store = MemoryStore::new(StoreSettings::default(), Faults::default());
        town.boot(store);
        town
    }

    fn now(&mut self) -> Now {
        Now {
            mono: self.mono,
            wall: NEW_YEAR + Nanos(self.mono.0),
            entropy: Entropy(self.entropy.draw()),
        }
    }

    fn boot(&mut self, store: MemoryStore) {
        let now = self.now();
        let ports = Ports {
            store,
            ledger: NoLedger,
            transport: Wire {
                answers: VecDeque::new(),
                entropy: Entropy(self.entropy.draw()),
                sent: Vec::new(),
            },
            resolver: Domains::default(),
        };
        let settings = Settings {
            learns: false,
            ..Settings::default()
        };
        let mut node = Node::start(&now, settings, policies(), ports);
        for pool in ["default", "other"] {
            let mut account = AccountSpec::new(format!("account-{pool}"));
            account.pool = Name::from(pool);
            account.sessions = Sessions::slots(8);
            let account = Box::new(account);
            node.post(Event::AccountChanged { account });
        }
        self.node = Some(node);
    }

    fn node(&mut self) -> &mut TestNode {
        self.node.as_mut().unwrap()
    }

    fn crash(&mut self) {
        let ports = self.node.take().unwrap().into_ports();
        self.sent.extend(ports.transport.sent);
        self.boot(ports.store.crash());
    }

    fn submit(&mut self) {
        let now = self.now();
        let count = 1 + self.entropy.draw() % 4;
        let mut batch = Vec::new();
        for _ in 0..count {
            let number = self.keys.len() as u64;
            let draw = self.entropy.draw();
            let domain = format!("domain-{}.example", draw % 12);
            let destination = match draw >> 8 & 1 {
                0 => Destination::unresolved(domain),
                _ => provider(&domain),
            };
            let key = FlowKey {
                tenant: Name::from(format!("tenant-{}", draw >> 12 & 3)),
                campaign: (draw >> 16 & 1 == 1)
                    .then(|| Name::from(format!("campaign-{}", draw >> 20 & 63))),
                ..FlowKey::to(destination)
            };
            let wait = Nanos::from_secs(draw >> 32 & 31);
            batch.push(Submission {
                key: key.clone(),
                idempotency_key: None,
                not_before: (draw >> 40 & 7 == 0).then(|| now.wall + wait),
                expires_at: match draw >> 44 & 7 {
                    0 => now.wall + wait,
                    _ => Wall::NEVER,
                },
                recipient: Recipient(draw),
                cost: 1,
                engaged: None,
                envelope: Arc::from(*b"to"),
                body: Arc::from(number.to_le_bytes()),
            });
            self.keys.insert(number, key);
        }
        self.node().submit(&now, batch).unwrap();
    }

    fn turn(&mut self) {
        let now = self.now();
        let node = self.node();
        node.turn(&now);
        node.engine().check(&now).unwrap();
        let gauges = node.engine().gauges();
        self.most.flows = self.most.flows.max(gauges.flows);
        self.most.lanes = self.most.lanes.max(gauges.lanes);
        self.most.budgets = self.most.budgets.max(gauges.budgets);
        self.check_names();
    }

    /// Every message is known by the facts it was submitted with.
    fn check_names(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        let node = self.node();
        let filter = outflow_ports::query::Filter::default();
        for message in node.messages(&filter, Seq(0), 1_000).items {
            let body = message.parcel.unwrap().read().unwrap().body;
            let number = u64::from_le_bytes(body[..8].try_into().unwrap());
            let (wanted, has) = (&keys[&number], &message.key);
            assert_eq!(
                (&wanted.tenant, &wanted.campaign),
                (&has.tenant, &has.campaign)
            );
            assert!(is_right(&wanted.destination, &has.destination));
        }
        self.keys = keys;
    }

    /// Turns until so much time has passed.
    fn pass(&mut self, span: Nanos) {
        let end = self.mono + span;
        loop {
            self.turn();
            let next = self.node().next_turn().max(self.mono);
            if next > end {
                self.mono = end;
                return;
            }
            self.mono = next;
        }
    }

    fn something_happens(&mut self) {
        let draw = self.entropy.draw();
        let tenant = format!("tenant-{}", draw >> 8 & 3);
        let of_tenant = Match::from_pairs([("tenant", tenant.as_str())]).unwrap();
        match draw % 40 {
            0 => self.crash(),
            1 => {
                self.node().bulk(Bulk::Cancel, of_tenant, false);
            }
            2 | 3 => {
                let pool = Name::from(["default", "other"][(draw >> 16 & 1) as usize]);
                self.node().bulk(Bulk::Move { pool }, of_tenant, false);
            }
            4 => {
                self.node().bulk(Bulk::Retry, of_tenant, false);
            }
            5 | 6 => {
                let until = Some(self.now().wall + Nanos::from_secs(draw >> 24 & 31));
                let id = PauseId(draw >> 32 & 3);
                let matches = of_tenant;
                self.node()
                    .post(Event::Command(Command::Pause { id, matches, until }));
            }
            7 => {
                let last = self.node().ports().store.last_seq().0;
                let now = self.now();
                self.node().cancel(&now, Seq(draw >> 8).min(Seq(last)));
            }
            8..=20 => self.pass(Nanos::from_millis(draw >> 16 & 0x3fff)),
            _ => self.submit(),
        }
    }
}

fn is_right(wanted: &Destination, has: &Destination) -> bool {
    wanted == has || !wanted.is_resolved() && provider(wanted.name.as_str()) == *has
}

fn live_through(seed: u64) -> Town {
    let mut town = Town::new(seed);
    for _ in 0..400 {
        town.something_happens();
        town.turn();
    }
    // Retries go on for days; nobody waits for those here.
    town.pass(Nanos::from_secs(60));
    let all = Match::from_pairs([("tenant", "*")]).unwrap();
    town.node().bulk(Bulk::Cancel, all, false);
    town.pass(Nanos::from_secs(60));
    let all = Match::from_pairs([("tenant", "*")]).unwrap();
    town.node().bulk(Bulk::Cancel, all, false);
    town.pass(Nanos::from_secs(3_600));
    town
}

#[test]
fn nothing_is_left_of_flows_whose_messages_are_settled() {
    for seed in 1..=12 {
        let mut town = live_through(seed);
        assert_eq!(town.node().ports().store.live(), 0, "seed {seed}");
        let most = town.most;
        assert!(
            most.flows > 20 && most.lanes >= 3 && most.budgets > 10,
            "{most:?}"
        );
        let engine = town.node().engine();
        let left = engine.gauges();
        let counts = [
            left.flows,
            left.tenants,
            left.nodes,
            left.budgets,
            left.lanes,
            left.limits,
        ];
        assert_eq!(counts, [0; 6], "seed {seed}: {left:?}");
        assert_eq!(engine.live_flows(), 0);
        assert_eq!(engine.live_flows_of(&Name::from("tenant-1")), 0);
        let sent = std::mem::take(&mut town.node().ports_mut().transport.sent);
        for (body, destination) in town.sent.iter().chain(&sent) {
            let number = u64::from_le_bytes(body[..8].try_into().unwrap());
            assert!(
                is_right(&town.keys[&number].destination, destination),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn domains_of_one_provider_share_one_flow() {
    let mut town = Town::new(7);
    let mut opened = 0;
    for round in 0..20_u64 {
        let now = town.now();
        let mut batch = Vec::new();
        for number in 0..30_u64 {
            // All of them at the same provider.
            let domain = format!("{}.example", "c".repeat(3 * number as usize + 3));
            let key = FlowKey::to(Destination::unresolved(domain));
            let place = round * 30 + number;
            town.keys.insert(place, key.clone());
            batch.push(Submission {
                key,
                idempotency_key: None,
                not_before: Some(now.wall + Nanos::from_secs(3_600)),
                expires_at: Wall::NEVER,
                recipient: Recipient(number),
                cost: 1,
                engaged: None,
                envelope: Arc::from(*b"to"),
                body: Arc::from(place.to_le_bytes()),
            });
        }
        town.node().submit(&now, batch).unwrap();
        opened = opened.max(town.node().engine().live_flows());
        town.pass(Nanos::from_secs(20));
    }
    assert!(
        opened <= 31,
        "{opened} flows for 30 domains of one provider"
    );
    assert_eq!(
        town.node().engine().live_flows(),
        1,
        "what waits for its time is one flow"
    );
    assert_eq!(town.node().ports().store.live(), 600);
    town.crash();
    town.pass(Nanos::from_secs(20));
    assert_eq!(town.node().engine().live_flows(), 1);
}

#[test]
fn a_trickle_keeps_its_flow() {
    let mut town = Town::new(3);
    let key = FlowKey::to(Destination::isp("provider-0"));
    let mut numbers = Vec::new();
    for number in 0..20_u64 {
        let now = town.now();
        town.keys.insert(number, key.clone());
        let submission = Submission {
            key: key.clone(),
            idempotency_key: None,
            not_before: None,
            expires_at: Wall::NEVER,
            recipient: Recipient(number),
            cost: 1,
            engaged: None,
            envelope: Arc::from(*b"to"),
            body: Arc::from(number.to_le_bytes()),
        };
        town.node().submit(&now, vec![submission]).unwrap();
        town.pass(Nanos::from_secs(5));
        numbers.push(town.node().engine().live_flows());
    }
    assert_eq!(
        numbers, [1; 20],
        "a message every five seconds finds its flow"
    );
}
