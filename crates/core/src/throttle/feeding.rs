//! Tokens that a fleet shares.
//!
//! A leased limit spends what a ledger granted. It asks for more while it is
//! used, and gives back what it does not need. Whoever finds it without tokens
//! while the ledger has not answered yet waits for that answer, also if they
//! would not wait for tokens: nobody is refused for a question that was not
//! answered.

use super::Throttle;
use super::line::Rank;
use super::parts::Parts;
use super::request::Outcome;
use crate::class::Class;
use crate::engine::action::Action;
use crate::engine::event::LeaseAnswer;
use crate::engine::feed::Demand;
use crate::handle::{AccountLimitId, LimitId};
use crate::limit::lease::PARTING_SEEN;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::pool::ClassMask;
use crate::time::{Mono, Nanos, Now};

/// How long somebody who does not wait for tokens waits for the ledger. It is as
/// good as away long before.
pub(super) const ANSWER_WAIT: Nanos = Nanos::from_secs(1);
/// How soon the tokens of a limit are looked at again, at the soonest.
const AGAIN_MIN: Nanos = Nanos(100_000);
/// Waiters that are told at once that the ledger refused.
const DISMISSED_AT_ONCE: usize = 256;

impl Throttle {
    /// What the ledger is to be asked, and what somebody should know.
    pub fn take_actions(&mut self, into: &mut Vec<Action>) {
        into.append(&mut self.actions);
    }

    /// Whether there is something to ask the ledger.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Asks for more tokens of a leased limit, or gives some back.
    pub(super) fn feed(&mut self, now: &Now, id: u32) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let head = entry.line().and_then(|line| line.head());
        let waiter = head.and_then(|(_, who)| self.waiters.get(who));
        let crowd = entry.line().map(|line| line.crowd());
        let (flows, waiting) = crowd.unwrap_or((1, ClassMask::NONE));
        let asked = entry.wanted.take();
        let booked = entry.line().and_then(|line| line.first_booked());
        let wanted = match waiter {
            Some(waiter) => waiter.parts.of(id).map(|part| (waiter.class, part.cost)),
            None => booked.or(asked),
        };
        let demand = wanted.map(|(class, cost)| Demand {
            class,
            out_of_turn: false,
            earned: false,
            cost,
            flows: flows.max(1),
            waiting: waiting.with(class),
            has_session: true,
        });
        let Some(feed) = &mut entry.feed else {
            return;
        };
        let name = (LimitId::Account(AccountLimitId(id)), entry.version);
        let again = feed.lease(now, name, &mut entry.limit, demand, &mut self.actions);
        entry.feed_at = match again {
            Mono::NEVER => Mono::NEVER,
            again => again.max(now.mono + AGAIN_MIN),
        };
        self.arm(id);
    }

    /// The same, if it is time to.
    pub(super) fn feed_if_due(&mut self, now: &Now, id: u32) {
        let entry = self.entries.get(id);
        if entry.is_some_and(|entry| entry.feed_at <= now.mono) {
            self.feed(now, id);
        }
    }

    /// Tokens of a leased limit were taken.
    pub(super) fn note_taken(&mut self, now: &Now, id: u32, class: Class, cost: u32) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        entry.wanted = Some((class, cost));
        let Some(feed) = &mut entry.feed else {
            return;
        };
        feed.note_taken(now.mono, cost);
        if !feed.is_asking() {
            self.feed(now, id);
        }
    }

    /// Has those limits of a request ask that have not enough. Whether an answer
    /// is on its way to any of them.
    pub(super) fn ask_for(&mut self, now: &Now, rank: Rank, class: Class, parts: &Parts) -> bool {
        if !self.settings.leased {
            return false;
        }
        let mut is_asked = false;
        for part in parts.iter() {
            is_asked |= self.waits_for(now, part.entry, rank, (class, part.cost));
        }
        is_asked
    }

    /// Whether one of cost `quantity` has to hear the ledger first.
    pub(super) fn waits_for_lease(
        &mut self,
        now: &Now,
        id: u32,
        rank: Rank,
        quantity: u32,
    ) -> bool {
        self.settings.leased && self.waits_for(now, id, rank, (rank.class, quantity))
    }

    fn waits_for(&mut self, now: &Now, id: u32, rank: Rank, (class, cost): (Class, u32)) -> bool {
        let Some(entry) = self.entries.get_mut(id) else {
            return false;
        };
        if cost > entry.limit.largest_cost() || entry.hold(now, rank, class, cost).is_none() {
            return false;
        }
        entry.wanted = Some((class, cost));
        let is_asking = |entry: &super::Entry| {
            let feed = entry.feed.as_ref();
            feed.is_some_and(|feed| feed.is_asking())
        };
        if !is_asking(entry) {
            self.feed(now, id);
        }
        self.entries.get(id).is_some_and(is_asking)
    }

    /// The ledger answered request `no` for tokens of a limit.
    pub fn granted(
        &mut self,
        now: &Now,
        (limit, no): (LimitId, u32),
        answer: LeaseAnswer,
        outcomes: &mut Vec<Outcome>,
    ) {
        let LimitId::Account(AccountLimitId(id)) = limit else {
            return;
        };
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Some(feed) = &mut entry.feed else {
            return;
        };
        let again = feed.answered(now, &mut entry.limit, no, answer, &mut self.actions);
        entry.feed_at = match again {
            Mono::NEVER => Mono::NEVER,
            again => again.max(now.mono + AGAIN_MIN),
        };
        self.arm(id);
        self.serve(now, id, outcomes);
        let waits = |it: &Self| {
            it.entries
                .get(id)
                .is_some_and(|entry| entry.line().is_some())
        };
        if waits(self) {
            self.feed(now, id);
            self.dismiss(now, id, outcomes);
        }
    }

    /// Tells those who waited only for the ledger that it has nothing for them.
    fn dismiss(&mut self, now: &Now, id: u32, outcomes: &mut Vec<Outcome>) {
        let Some(entry) = self.entries.get(id) else {
            return;
        };
        let is_asking = entry.feed.as_ref().is_some_and(|feed| feed.is_asking());
        let Some(line) = entry.line().filter(|_| !is_asking) else {
            return;
        };
        let waiters = line.waiters().take(DISMISSED_AT_ONCE);
        let prompt: Vec<u32> = waiters
            .filter(|who| self.waiters.get(*who).is_some_and(|it| it.is_prompt))
            .collect();
        for who in prompt {
            self.give_up(now, who, outcomes);
        }
    }

    /// Some node of the fleet was told to grant nothing of a limit for so long;
    /// for no time at all if a pause was lifted.
    pub fn paused(&mut self, now: &Now, key: &LimitKey, lasts: Nanos, outcomes: &mut Vec<Outcome>) {
        let of_policies = LimitKey::new(key.parts().iter().cloned(), Facet::Rate).to_string();
        let own = match key.parts() {
            [(Scope::Key, name)] => Some(("", name)),
            [(Scope::Tenant, tenant), (Scope::Key, name)] => Some((tenant.as_str(), name)),
            _ => None,
        };
        let own = own.map(|(space, name)| (space, name.as_str()));
        let of_policies = (super::request::POLICY_SPACE, of_policies.as_str());
        for name in [Some(of_policies), own].into_iter().flatten() {
            match lasts {
                Nanos::ZERO => self.resume(now, name, outcomes),
                lasts => {
                    self.pause(now, name, lasts, outcomes);
                }
            }
        }
    }

    /// Leases are older than they seem if the machine slept or its clock was set.
    pub(super) fn void_parted(&mut self, now: &Now) {
        if !self.settings.leased || self.clocks.parted(now) < PARTING_SEEN {
            return;
        }
        self.clocks = now.clocks();
        for id in 0..u32::try_from(self.entries.places()).unwrap_or(u32::MAX) {
            let entry = self.entries.get_mut(id);
            if entry.is_some_and(|entry| entry.limit.void_parted(now)) {
                self.feed(now, id);
            }
        }
    }

    /// Whether what is taken from a limit is held.
    pub(super) fn holds_slots(&self, id: u32) -> bool {
        let entry = self.entries.get(id);
        entry.is_some_and(super::Entry::holds_slots)
    }
}
