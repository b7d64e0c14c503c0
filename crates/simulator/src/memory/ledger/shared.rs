//! What all nodes share: the counts, and the requests on their way to them.
//!
//! Requests are answered in the order in which they arrive, each at the time of
//! its arrival, however late anybody looks: so a run does not depend on who
//! asks first for what was done.

use std::collections::BTreeMap;
use std::rc::Weak;

use outflow_core::engine::action::LeaseRequest;
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Mono, Now};

use super::clock::LedgerClock;
use super::counter::Counter;
use super::link::Inbox;
use super::settings::Settings;

/// A request on its way.
#[derive(Debug)]
pub(super) struct Arrival {
    pub request: LeaseRequest,
    pub inbox: Weak<<Inbox as std::ops::Deref>::Target>,
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
        while let Some(entry) = self.arrivals.first_entry() {
            let (at, no) = *entry.key();
            if at > world {
                break;
            }
            let arrival = entry.remove();
            let answer = self.answer(at, &arrival.request);
            let inbox = arrival.inbox.upgrade();
            if let (Some(inbox), Some(answered_at)) = (inbox, arrival.answered_at) {
                let event = Event::Granted {
                    limit: arrival.request.limit,
                    no: arrival.request.no,
                    answer,
                };
                inbox.borrow_mut().insert((answered_at, no), event);
            }
        }
    }

    fn answer(&mut self, at: Mono, request: &LeaseRequest) -> LeaseAnswer {
        let now = self.clock.at(at);
        self.stats.requests += 1;
        if !self.counters.contains_key(&*request.key) {
            let counter = Counter::new(self.lost_at);
            self.counters.insert((*request.key).clone(), counter);
        }
        let Some(counter) = self.counters.get_mut(&*request.key) else {
            return LeaseAnswer::Away;
        };
        let answer = counter.ask(&self.settings.leasing, &now, request);
        if let LeaseAnswer::Leased { tokens, .. } = answer {
            self.stats.leases += 1;
            self.stats.tokens += u64::from(tokens);
        }
        answer
    }

    /// Forgets all counts, and knows that it did.
    pub fn lose_state(&mut self, world: Mono) {
        self.advance(world);
        self.counters.clear();
        self.lost_at = Some(self.clock.at(world));
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
