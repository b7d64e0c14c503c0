//! Numbers of flows are given anew, over deaths at any step and over segments
//! that are given up: every message keeps the name it belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_core::destination::Destination;
use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::time::Nanos;
use outflow_ports::conformance::store::Harness;
use outflow_ports::store::{BatchId, Store, StoreDone, StoreWork};

use super::driver::{Driver, Said, key_of, message, settlement};
use super::harness::Rig;
use super::space::until;
use crate::disk::Disk;
use crate::journal::place::Place;
use crate::journal::segment::Kind;

/// What a store should know.
struct Ledger {
    driver: Driver,
    entropy: Entropy,
    open: BTreeMap<FlowId, Arc<FlowKey>>,
    live: BTreeMap<Seq, FlowId>,
    /// What settled messages were called when they were settled.
    settled: BTreeMap<Seq, Arc<FlowKey>>,
    /// How often a number was given that another flow had before.
    given_anew: u32,
    used: BTreeSet<FlowId>,
    names: u32,
    requests: u32,
}

impl Ledger {
    fn new(seed: u64) -> Self {
        let mut rig = Rig::on_memory(seed);
        rig.settings.record.batch_time = Nanos::from_millis(1);
        rig.settings.envelope_segment_bytes = 8 << 10;
        rig.settings.slack_bytes = 8 << 10;
        rig.crash();
        Self {
            driver: Driver::new(rig),
            entropy: Entropy(seed),
            open: BTreeMap::new(),
            live: BTreeMap::new(),
            settled: BTreeMap::new(),
            given_anew: 0,
            used: BTreeSet::new(),
            names: 0,
            requests: 0,
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        (self.entropy.draw() % below.max(1) as u64) as usize
    }

    fn some_flow(&mut self) -> Option<FlowId> {
        let at = self.draw(self.open.len());
        self.open.keys().nth(at).copied()
    }

    fn open(&mut self) -> FlowId {
        let free = (0..).map(FlowId).find(|id| !self.open.contains_key(id));
        let flow = free.unwrap();
        self.names += 1;
        let campaign = Some(Name::from(format!("campaign-{}", self.names)));
        let key = Arc::new(FlowKey {
            campaign,
            ..FlowKey::to(Destination::isp("google"))
        });
        self.driver.submit(StoreWork::OpenFlow {
            flow,
            key: Arc::clone(&key),
        });
        self.open.insert(flow, key);
        self.given_anew += u32::from(!self.used.insert(flow));
        flow
    }

    fn accept(&mut self, flow: FlowId) {
        let count = 1 + self.draw(3);
        let body: Arc<[u8]> = Arc::from(vec![7; 300]);
        let messages = (0..count).map(|mark| message(flow, mark as u64, &body));
        let Said::Given(given) = self.driver.accept(messages.collect()) else {
            panic!("a store that is sound accepts messages");
        };
        for given in given {
            self.live.insert(given.seq, flow);
        }
    }

    fn commit(&mut self, record: Record) {
        assert_eq!(self.driver.commit(record), Said::Committed);
    }

    fn settle(&mut self) {
        let at = self.draw(self.live.len());
        if let Some((&seq, &flow)) = self.live.iter().nth(at) {
            self.commit(settlement(flow, seq, State::Delivered));
            self.ended(seq);
        }
    }

    fn ended(&mut self, seq: Seq) {
        let flow = self.live.remove(&seq).unwrap();
        self.settled.insert(seq, Arc::clone(&self.open[&flow]));
    }

    fn of(&self, flow: FlowId) -> Vec<Seq> {
        let of_flow = self.live.iter().filter(|(_, of)| **of == flow);
        of_flow.map(|(seq, _)| *seq).collect()
    }

    fn cancel(&mut self, flow: FlowId) {
        let through = Seq(u64::MAX);
        self.commit(Record::Cancelled { flow, through });
        for seq in self.of(flow) {
            self.ended(seq);
        }
    }

    fn relocate(&mut self, flow: FlowId, to: FlowId) {
        let (through, held) = (Seq(u64::MAX), Vec::new());
        self.commit(Record::Moved {
            flow,
            to,
            through,
            held,
        });
        for seq in self.of(flow) {
            self.live.insert(seq, to);
        }
    }

    /// Closes a flow, if it is empty; whether the answer is waited for.
    fn close(&mut self, flow: FlowId, waits: bool) {
        self.requests += 1;
        let asked = self.requests;
        let request = asked;
        self.driver.submit(StoreWork::CloseFlow { flow, request });
        if !self.of(flow).is_empty() {
            // It stays, and goes on.
            let key = Arc::clone(&self.open[&flow]);
            return self.driver.submit(StoreWork::OpenFlow { flow, key });
        }
        if waits {
            self.driver.wait(|done| match done {
                StoreDone::Event(Event::FlowClosed {
                    flow: of,
                    request,
                    is_free: true,
                }) if (*of, *request) == (flow, asked) => Some(()),
                _ => None,
            });
            self.open.remove(&flow);
        } else {
            self.restart();
        }
    }

    fn restart(&mut self) {
        let recovered = self.driver.restart();
        let found: BTreeMap<FlowId, Arc<FlowKey>> = recovered
            .flows
            .into_iter()
            .map(|(flow, key, _)| (flow, key))
            .collect();
        let used: BTreeSet<FlowId> = self.live.values().copied().collect();
        self.open.retain(|flow, _| used.contains(flow));
        assert_eq!(found, self.open);
        assert!(recovered.reserved.is_empty());
        self.check();
    }

    fn check(&mut self) {
        for (seq, flow) in &self.live {
            let found = self.driver.rig.store().find(*seq).unwrap();
            assert_eq!(found.flow, *flow);
            let key = self.driver.rig.store().flow_key(found.flow).cloned();
            assert_eq!(key.as_ref(), self.open.get(flow));
        }
    }

    fn something_happens(&mut self) {
        match (self.draw(20), self.some_flow()) {
            (0..=3, _) | (_, None) if self.open.len() < 8 => {
                let flow = self.open();
                match self.draw(8) {
                    0 => self.restart(),
                    _ => self.accept(flow),
                }
            }
            (4..=6, Some(flow)) => self.accept(flow),
            (7..=11, _) => self.settle(),
            (12, Some(flow)) => self.cancel(flow),
            (13, Some(flow)) => {
                if let Some(to) = self.some_flow().filter(|to| *to != flow) {
                    self.relocate(flow, to);
                }
            }
            (14 | 15, Some(flow)) => self.close(flow, true),
            (16, Some(flow)) => self.close(flow, false),
            (17, _) => self.restart(),
            _ => {
                self.driver.pass(Nanos::from_millis(700));
                self.driver.turn();
            }
        }
    }

    /// Receipts have the names that messages had.
    fn check_receipts(&mut self) {
        let receipts = self.driver.rig.store().receipts();
        let deadline = Instant::now() + Duration::from_secs(60);
        for (seq, key) in std::mem::take(&mut self.settled) {
            loop {
                if let Some(receipt) = receipts.get(seq).unwrap() {
                    assert_eq!(receipt.key, *key, "message {seq:?}");
                    break;
                }
                assert!(Instant::now() < deadline, "no receipt is written");
                self.driver.turn();
            }
        }
    }
}

#[test]
fn a_number_that_is_given_anew_takes_nothing_along() {
    for seed in 1..=6 {
        let mut ledger = Ledger::new(seed);
        for _ in 0..500 {
            ledger.something_happens();
        }
        assert!(ledger.given_anew > 20, "numbers are given anew");
        ledger.check_receipts();
        while !ledger.live.is_empty() {
            ledger.settle();
        }
        ledger.restart();
        assert!(ledger.open.is_empty());
        assert!(
            ledger.driver.rig.store().index.flows.is_empty(),
            "no name is left"
        );
    }
}

#[test]
fn names_of_flows_that_are_over_take_no_room() {
    let mut ledger = Ledger::new(9);
    for _ in 0..300 {
        let flow = ledger.open();
        ledger.accept(flow);
        ledger.cancel(flow);
        ledger.close(flow, true);
        assert!(ledger.driver.rig.store().index.flows.len() <= 1);
    }
}

const FROM: FlowId = FlowId(0);
const TO: FlowId = FlowId(1);

fn all_moved() -> Record {
    Record::Moved {
        flow: FROM,
        to: TO,
        through: Seq(u64::MAX),
        held: Vec::new(),
    }
}

fn two_flows() -> Driver {
    let mut rig = Rig::on_memory(4);
    rig.settings.envelope_segment_bytes = 4_096;
    rig.settings.slack_bytes = 4_096;
    rig.settings.reading_grace = Nanos::ZERO;
    rig.settings.record.batch_time = Nanos::from_millis(1);
    rig.crash();
    let mut driver = Driver::new(rig);
    driver.open(FROM);
    driver.open(TO);
    driver
}

fn accept_one(driver: &mut Driver) -> Seq {
    let body: Arc<[u8]> = Arc::from([7; 30]);
    match driver.accept(vec![message(FROM, 1, &body)]) {
        Said::Given(given) => given[0].seq,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_that_are_moved_to_an_idle_flow_keep_its_name() {
    let mut driver = two_flows();
    until(&mut driver, "the name goes with its segment", |driver| {
        let seq = accept_one(driver);
        driver.commit(settlement(FROM, seq, State::Delivered));
        let named = driver.rig.store().index.flow(TO).unwrap().named;
        named == Place::NONE
    });
    let first = Kind::Envelope.name(1);
    until(&mut driver, "the segment goes", |driver| {
        !driver.rig.disk.list().unwrap().contains(&first)
    });
    let seq = accept_one(&mut driver);
    assert_eq!(driver.commit(all_moved()), Said::Committed);
    driver.restart();
    let store = driver.rig.store();
    assert_eq!(store.find(seq).unwrap().flow, TO);
    assert_eq!(**store.flow_key(TO).unwrap(), key_of(TO));
}

#[test]
fn a_flow_that_messages_are_being_moved_to_keeps_its_name() {
    let mut driver = two_flows();
    accept_one(&mut driver);
    let no = AppendNo(1);
    let record = all_moved();
    driver.submit(StoreWork::Append { no, record });
    driver.rig.store().restate_names(u32::MAX);
    let store = driver.rig.store();
    assert_ne!(store.index.flow(TO).unwrap().named, Place::NONE);
    assert!(store.opening.contains_key(&TO), "its name is written again");
}

#[test]
fn a_flow_does_not_end_before_its_first_messages_are_there() {
    let mut driver = Driver::new(Rig::on_memory(0));
    let (flow, batch) = (FlowId(7), BatchId(1_000));
    driver.open(flow);
    // Its name is durable, and the store has not heard of that.
    driver.rig.settle();
    let mood = Arc::clone(&driver.rig.disk.mood);
    let gate = mood.gate.lock().unwrap();
    let messages = vec![message(flow, 1, &Arc::from([7]))];
    driver.submit(StoreWork::Accept { batch, messages });
    driver.submit(StoreWork::CloseFlow { flow, request: 1 });
    let is_end = |done: &StoreDone| matches!(done, StoreDone::Event(Event::FlowClosed { .. }));
    assert!(!driver.turn().iter().any(is_end), "a message is on its way");
    drop(gate);
    let given = driver.wait(|done| match done {
        StoreDone::Accepted { given, .. } => Some(given.clone()),
        _ => None,
    });
    let heads: Vec<Seq> = driver.page(flow, 9).iter().map(|head| head.seq).collect();
    assert_eq!(heads, given.iter().map(|it| it.seq).collect::<Vec<_>>());
    // It ends with its last message.
    let no = AppendNo(1);
    let record = settlement(flow, heads[0], State::Delivered);
    driver.submit(StoreWork::Append { no, record });
    driver.wait(|done| match done {
        StoreDone::Event(Event::FlowClosed { is_free, .. }) => Some(*is_free),
        _ => None,
    });
}
