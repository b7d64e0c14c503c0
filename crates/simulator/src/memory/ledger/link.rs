//! A node's connection to the ledger, with everything that a network does.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::ledger::{Ledger, LedgerWork};

use super::clock::WorldClock;
use super::reporter::Reporter;
use super::shared::{Arrival, Shared};
use crate::memory::window::{self, Window};

/// How a connection behaves. Windows are in the time of the world.
#[derive(Clone, Debug)]
pub struct LinkFaults {
    /// One way takes at least this long ...
    pub latency_min: Nanos,
    /// ... and at most this long.
    pub latency_max: Nanos,
    /// Of a thousand requests, so many get lost, or their answers do.
    pub loss_permille: u32,
    /// From then on none does.
    pub loss_ends: Mono,
    /// Requests that arrive in one of these wait for its end.
    pub stalls: Vec<Window>,
    /// The ledger cannot be reached.
    pub cuts: Vec<Window>,
    /// Whether a cut-off ledger is silent, instead of known to be away.
    pub cut_is_silent: bool,
    /// Where chance comes from.
    pub entropy: Entropy,
}

impl Default for LinkFaults {
    /// A connection that takes a millisecond each way and never fails.
    fn default() -> Self {
        Self {
            latency_min: Nanos::from_millis(1),
            latency_max: Nanos::from_millis(1),
            loss_permille: 0,
            loss_ends: Mono::NEVER,
            stalls: Vec::new(),
            cuts: Vec::new(),
            cut_is_silent: false,
            entropy: Entropy(0),
        }
    }
}

impl LinkFaults {
    fn latency(&mut self) -> Nanos {
        if self.latency_min >= self.latency_max {
            return self.latency_min;
        }
        Nanos(self.entropy.between(self.latency_min.0, self.latency_max.0))
    }

    fn loses(&mut self, world: Mono) -> bool {
        world < self.loss_ends
            && self.loss_permille > 0
            && self.entropy.between(0, 999) < u64::from(self.loss_permille)
    }

    fn is_cut(&self, at: Mono) -> bool {
        window::around(&self.cuts, at).is_some()
    }
}

/// Answers on their way to a node, by time of the world.
pub(super) type Inbox = Rc<RefCell<BTreeMap<(Mono, u64), Event>>>;

/// One node's connection to a [`MemoryLedger`](super::MemoryLedger).
#[derive(Debug)]
pub struct LedgerLink {
    world: WorldClock,
    shared: Rc<RefCell<Shared>>,
    faults: LinkFaults,
    inbox: Inbox,
    reporter: Rc<RefCell<Reporter>>,
    /// What the ledger calls this node.
    node: u64,
    /// When answers will arrive.
    expected: BTreeSet<(Mono, u64)>,
    /// The node's clock and the world's when last called.
    clocks: (Mono, Mono),
}

impl LedgerLink {
    pub(super) fn new(
        world: WorldClock,
        shared: Rc<RefCell<Shared>>,
        faults: LinkFaults,
        name: u64,
    ) -> Self {
        let inbox = Inbox::default();
        let reporter = Reporter::new(name, faults.cuts.clone());
        let reporter = Rc::new(RefCell::new(reporter));
        let node = shared.borrow_mut().join(&inbox, &reporter);
        Self {
            world,
            shared,
            faults,
            inbox,
            reporter,
            node,
            expected: BTreeSet::new(),
            clocks: (Mono(0), Mono(0)),
        }
    }

    /// What may go wrong from now on.
    pub fn faults_mut(&mut self) -> &mut LinkFaults {
        &mut self.faults
    }

    pub(super) fn reporter_name(&self) -> u64 {
        self.reporter.borrow().name
    }

    /// Remembers what earlier processes of the node used.
    fn recall(&mut self, world: Mono, work: &LedgerWork) -> bool {
        let LedgerWork::Recall(recalled) = work else {
            return false;
        };
        let mut reporter = self.reporter.borrow_mut();
        reporter.set_cuts(&self.faults.cuts);
        reporter.recall(world, recalled);
        drop(reporter);
        self.shared.borrow_mut().look_later(world, self.node);
        true
    }

    fn send(&mut self, world: Mono, work: LedgerWork) {
        let arrives_at = world + self.faults.latency();
        let stall = window::around(&self.faults.stalls, arrives_at);
        let arrives_at = stall.map_or(arrives_at, |stall| stall.until);
        let answered_at = arrives_at + self.faults.latency();
        let lost = self.faults.loses(world);
        let on_the_way_back = self.faults.entropy.between(0, 1) == 1;
        if lost && !on_the_way_back {
            return;
        }
        let answered = !lost && !self.faults.is_cut(answered_at);
        let is_answered = matches!(work, LedgerWork::Lease(_));
        let arrival = Arrival {
            work,
            node: self.node,
            inbox: Rc::downgrade(&self.inbox),
            answered_at: answered.then_some(answered_at),
        };
        let no = self.shared.borrow_mut().send(arrives_at, arrival);
        if answered && is_answered {
            self.expected.insert((answered_at, no));
        }
    }
}

impl Ledger for LedgerLink {
    fn submit(&mut self, now: &Now, work: LedgerWork) {
        let world = self.world.now();
        self.clocks = (now.mono, world);
        if self.recall(world, &work) {
            return;
        }
        if !self.faults.is_cut(world) {
            self.send(world, work);
        } else if !self.faults.cut_is_silent
            && let LedgerWork::Lease(request) = work
        {
            let no = self.shared.borrow_mut().number();
            let at = world + self.faults.latency();
            let away = Event::Granted {
                limit: request.limit,
                no: request.no,
                answer: LeaseAnswer::Away,
            };
            self.inbox.borrow_mut().insert((at, no), away);
            self.expected.insert((at, no));
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        let world = self.world.now();
        self.clocks = (now.mono, world);
        self.shared.borrow_mut().advance(world);
        let mut inbox = self.inbox.borrow_mut();
        while let Some(answer) = inbox.first_entry() {
            if answer.key().0 > world {
                break;
            }
            done.push(answer.remove());
        }
        while self.expected.first().is_some_and(|&(at, _)| at <= world) {
            self.expected.pop_first();
        }
    }

    fn next_completion(&self) -> Mono {
        let (mono, world) = self.clocks;
        let expected = self.expected.first().map(|&(at, _)| at);
        // What others did is not expected, but it is there.
        let told = self
            .inbox
            .borrow()
            .first_key_value()
            .map(|(&(at, _), _)| at);
        let next = expected.into_iter().chain(told).min();
        next.map_or(Mono::NEVER, |at| mono + at.since(world))
    }
}
