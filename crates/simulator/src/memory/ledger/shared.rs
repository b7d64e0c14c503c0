//! What all nodes share: the counts, and the requests on their way to them.
//!
//! Requests are answered in the order in which they arrive, each at the time of
//! its arrival, however late anybody looks: so a run does not depend on who
//! asks first for what was done.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use outflow_core::engine::action::{LeaseRequest, Receipt};
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::ledger::LedgerWork;

use super::clock::LedgerClock;
use super::counter::Counter;
use super::link::Inbox;
use super::reporter::{LOOK, Reporter};
use super::settings::Settings;

/// How long it takes until a node hears what another one did.
const TOLD_AFTER: Nanos = Nanos::from_millis(2);

/// The inbox of a node, unless it is gone.
type WeakInbox = Weak<<Inbox as std::ops::Deref>::Target>;

/// A request on its way.
#[derive(Debug)]
pub(super) struct Arrival {
    pub work: LedgerWork,
    pub node: u64,
    pub inbox: WeakInbox,
    /// When the answer will be there; none if it gets lost.
    pub answered_at: Option<Mono>,
}

/// What the ledger did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerStats {
    /// Requests that arrived.
    pub requests: u64,
    /// Leases granted.
    pub leases: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Tokens that came back.
    pub given_back: u64,
}

/// One node, unless it is gone.
#[derive(Debug)]
struct LinkedNode {
    inbox: WeakInbox,
    reporter: Weak<RefCell<Reporter>>,
}

/// The shared state.
#[derive(Debug)]
pub(super) struct Shared {
    settings: Settings,
    clock: LedgerClock,
    arrivals: BTreeMap<(Mono, u64), Arrival>,
    numbers: u64,
    counters: BTreeMap<LimitKey, Counter>,
    lost_at: Option<Now>,
    /// How often the state was lost.
    epoch: u64,
    nodes: BTreeMap<u64, LinkedNode>,
    /// When which node looks whether the counts were lost.
    looks: BTreeSet<(Mono, u64)>,
    /// Who reported what he debited of which limit since the last loss.
    reported: BTreeSet<(LimitKey, u64)>,
    pub stats: LedgerStats,
}

impl Shared {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            clock: LedgerClock::new(settings.wall),
            arrivals: BTreeMap::new(),
            numbers: 0,
            counters: BTreeMap::new(),
            lost_at: None,
            epoch: 1,
            nodes: BTreeMap::new(),
            looks: BTreeSet::new(),
            reported: BTreeSet::new(),
            stats: LedgerStats::default(),
        }
    }

    /// A number that nothing else has.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn send(&mut self, at: Mono, arrival: Arrival) -> u64 {
        let no = self.number();
        self.arrivals.insert((at, no), arrival);
        no
    }

    /// Answers all that arrived by now.
    pub fn advance(&mut self, world: Mono) {
        loop {
            let looks_at = self.looks.first().map(|&(at, _)| at);
            let arrives_at = self.arrivals.first_key_value().map(|(&(at, _), _)| at);
            let is_look = looks_at.is_some_and(|at| arrives_at.is_none_or(|other| at <= other));
            if looks_at.into_iter().chain(arrives_at).min() > Some(world) {
                break;
            }
            if is_look && let Some((at, node)) = self.looks.pop_first() {
                self.look(at, node);
            } else if let Some(((at, no), arrival)) = self.arrivals.pop_first() {
                self.take_in(at, no, arrival);
            } else {
                break;
            }
        }
    }

    /// A node looks a moment later whether the counts were lost.
    pub fn look_later(&mut self, world: Mono, node: u64) {
        self.looks.insert((world + LOOK, node));
    }

    fn reporter(&self, node: u64) -> Option<Rc<RefCell<Reporter>>> {
        self.nodes.get(&node)?.reporter.upgrade()
    }

    /// A node tells what it debited before the counts were lost.
    fn look(&mut self, at: Mono, node: u64) {
        let Some(reporter) = self.reporter(node) else {
            return;
        };
        let mut reporter = reporter.borrow_mut();
        if let Some(until) = reporter.cut_until(at) {
            self.look_later(until, node);
            return;
        }
        let (now, epoch, name) = (self.clock.at(at), self.epoch, reporter.name);
        for (key, _) in reporter.debits.unreported(|_| epoch) {
            let report = reporter.debits.report(at, now.wall, &key, epoch);
            reporter.debits.reported(&key, epoch);
            let is_first = self.reported.insert(((*key).clone(), name));
            if let Some(report) = report.filter(|_| is_first) {
                let settings = self.settings.leasing;
                self.counter(&key).rebuild(&settings, &now, &report);
            }
        }
    }

    fn take_in(&mut self, at: Mono, no: u64, arrival: Arrival) {
        match arrival.work {
            LedgerWork::Lease(request) => {
                let answer = self.answer(at, arrival.node, &request);
                let inbox = arrival.inbox.upgrade();
                if let (Some(inbox), Some(answered_at)) = (inbox, arrival.answered_at) {
                    let event = Event::Granted {
                        limit: request.limit,
                        no: request.no,
                        answer,
                    };
                    inbox.borrow_mut().insert((answered_at, no), event);
                }
            }
            LedgerWork::GiveBack(back) => {
                let now = self.clock.at(at);
                if let Some(reporter) = self.reporter(arrival.node) {
                    let (epoch, at) = (back.receipt.epoch, back.receipt.at);
                    let mut reporter = reporter.borrow_mut();
                    reporter.gave_back(&back.key, epoch, at, back.tokens);
                }
                if back.receipt.epoch == self.epoch
                    && let Some(counter) = self.counters.get_mut(&*back.key)
                {
                    self.stats.given_back += u64::from(back.tokens);
                    counter.give_back(&now, back.tokens, Mono(back.receipt.at));
                }
            }
            LedgerWork::Pause { key, lasts } => {
                let now = self.clock.at(at);
                match lasts {
                    Nanos::ZERO => self.counter(&key).resume(),
                    _ => self.counter(&key).pause(now.mono + lasts),
                }
                self.tell_all(at, &key, lasts);
            }
            // Its connection keeps it.
            LedgerWork::Recall(_) => {}
        }
    }

    /// All nodes hear of a pause, after a way of their own.
    fn tell_all(&mut self, at: Mono, key: &Arc<LimitKey>, lasts: Nanos) {
        self.nodes.retain(|_, it| it.inbox.strong_count() > 0);
        let inboxes = self.nodes.values().filter_map(|it| it.inbox.upgrade());
        let inboxes: Vec<_> = inboxes.collect();
        for inbox in inboxes {
            let no = self.number();
            let key = Arc::clone(key);
            let event = Event::Paused { key, lasts };
            inbox.borrow_mut().insert((at + TOLD_AFTER, no), event);
        }
    }

    fn counter(&mut self, key: &LimitKey) -> &mut Counter {
        let lost_at = self.lost_at;
        let counters = &mut self.counters;
        counters
            .entry(key.clone())
            .or_insert_with(|| Counter::new(lost_at))
    }

    /// Another node. What it is called.
    pub fn join(&mut self, inbox: &Inbox, reporter: &Rc<RefCell<Reporter>>) -> u64 {
        let node = self.number();
        let linked = LinkedNode {
            inbox: Rc::downgrade(inbox),
            reporter: Rc::downgrade(reporter),
        };
        self.nodes.insert(node, linked);
        node
    }

    fn answer(&mut self, at: Mono, node: u64, request: &LeaseRequest) -> LeaseAnswer {
        let now = self.clock.at(at);
        let (settings, epoch) = (self.settings.leasing, self.epoch);
        self.stats.requests += 1;
        let counter = self.counter(&request.key);
        let mut answer = counter.ask(&settings, &now, node, request);
        if let LeaseAnswer::Leased {
            tokens, receipt, ..
        } = &mut answer
        {
            *receipt = Receipt {
                epoch,
                at: now.mono.0,
                wall: now.wall,
            };
            self.stats.leases += 1;
            self.stats.tokens += u64::from(*tokens);
            let tokens = *tokens;
            if let Some(reporter) = self.reporter(node) {
                let mut reporter = reporter.borrow_mut();
                reporter.leased((at, &now), request, epoch, tokens);
            }
        }
        answer
    }

    /// Forgets all counts, and knows that it did.
    pub fn lose_state(&mut self, world: Mono) {
        self.advance(world);
        self.counters.clear();
        self.lost_at = Some(self.clock.at(world));
        self.epoch += 1;
        self.reported.clear();
        let nodes: Vec<u64> = self.nodes.keys().copied().collect();
        for node in nodes {
            self.look_later(world, node);
        }
    }

    /// Forgets all counts without knowing: what a ledger must never do.
    #[cfg(test)]
    pub fn forget_all(&mut self) {
        self.counters.clear();
        self.lost_at = None;
    }

    pub fn step_clock(&mut self, world: Mono, by: i64) {
        self.advance(world);
        self.clock.at(world);
        self.clock.step(by);
    }
}
