//! Accounts whose limits and pauses at destinations are worked out anew.
//!
//! A policy change may touch every account at every destination, a pause of an
//! account at a destination likewise. Accounts stand in line, each once, and are
//! gone through in slices of pairs; a new or changed account sends nothing until
//! its turn is over. What flows can ever send follows from it, so their limits
//! are worked out after the last account.

use std::collections::{BTreeSet, VecDeque};

use super::Engine;
use super::sweep::Sweep;
use crate::handle::{AccountId, LaneId};
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::role::Role;
use crate::time::Now;

/// Pairs in one slice.
const SLICE: usize = 1_000;

/// Things that are learnt, in one slice: each asks all policies.
const BOUNDS_SLICE: usize = 200;

/// Accounts in line.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    line: VecDeque<AccountId>,
    waiting: BTreeSet<AccountId>,
    /// The one being gone through, and its next lane.
    current: Option<(AccountId, usize)>,
    /// Whether flows follow when the line is empty.
    then_flows: bool,
    /// Bounds of what is learnt are looked at before, from this key on.
    bounds: Option<LimitKey>,
}

/// The first key there can be.
fn first_key() -> LimitKey {
    LimitKey::new([], Facet::Rate)
}

impl Rounds {
    /// Policies may have changed while nobody was there.
    pub fn from_the_start() -> Self {
        Self {
            bounds: Some(first_key()),
            then_flows: true,
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.line.is_empty() && self.current.is_none() && self.bounds.is_none()
    }

    /// Puts an account in line, unless it waits there already.
    fn join(&mut self, id: AccountId) {
        if self.waiting.insert(id) {
            self.line.push_back(id);
        }
    }

    fn next(&mut self) -> Option<AccountId> {
        let id = self.line.pop_front()?;
        self.waiting.remove(&id);
        Some(id)
    }
}

impl Engine {
    /// Has the limits of an account worked out, then those of all flows.
    pub(super) fn review_account(&mut self, id: AccountId) {
        self.rounds.join(id);
        self.rounds.then_flows = true;
    }

    /// Has the bounds of all that is learnt worked out.
    pub(super) fn review_bounds(&mut self) {
        self.rounds.bounds = Some(first_key());
    }

    /// Has the limits of all accounts worked out, then those of all flows.
    pub(super) fn review_accounts(&mut self) {
        self.join_all();
        self.rounds.then_flows = true;
    }

    /// Has pauses of accounts at destinations matched anew.
    pub(super) fn review_pair_pauses(&mut self) {
        if self.has_pair_pauses() || self.counter.desk.has_held_pairs() {
            self.join_all();
        }
    }

    fn join_all(&mut self) {
        for (id, _) in self.counter.desk.accounts() {
            self.rounds.join(id);
        }
    }

    /// What flows can ever send may have changed.
    pub(super) fn review_flows(&mut self) {
        if !self.sweeps.iter().any(Sweep::is_fresh_relimit) {
            self.sweeps.push_back(Sweep::relimit());
        }
    }

    /// Goes on with the accounts in line, one slice.
    pub(super) fn go_round(&mut self, now: &Now) {
        if self.rounds.is_empty() {
            return;
        }
        if let Some(from) = self.rounds.bounds.take() {
            self.rounds.bounds = self.bound_some(&from, BOUNDS_SLICE);
            if self.rounds.bounds.is_some() {
                return;
            }
        }
        let has_pauses = self.has_pair_pauses() || self.counter.desk.has_held_pairs();
        let limited = self.counter.policies.has_pairs() || self.counter.desk.limits.has_pairs();
        let mut left = SLICE;
        while left > 0 {
            let (id, start) = match self.rounds.current.take() {
                Some(place) => place,
                None => {
                    let Some(id) = self.rounds.next() else { break };
                    let counter = &mut self.counter;
                    let (policies, maker) = (&counter.policies, &mut counter.maker);
                    counter.desk.relimit_account(now, id, policies, maker);
                    left -= 1;
                    (id, 0)
                }
            };
            let mut index = start;
            while (limited || has_pauses)
                && let Some(lane) = self.counter.desk.lane_at(id, index)
            {
                if left == 0 {
                    self.rounds.current = Some((id, index));
                    return;
                }
                self.review_pair(now, id, lane, limited);
                (index, left) = (index + 1, left - 1);
            }
            self.counter.desk.settle(id);
        }
        if self.rounds.is_empty() && std::mem::take(&mut self.rounds.then_flows) {
            self.review_flows();
        }
    }

    fn review_pair(&mut self, now: &Now, id: AccountId, lane: LaneId, limited: bool) {
        let counter = &mut self.counter;
        if limited {
            let (policies, maker) = (&counter.policies, &mut counter.maker);
            counter.desk.relimit_pair(now, id, lane, policies, maker);
        }
        let paused = self.is_pair_paused(id, lane);
        self.counter.desk.set_pair_paused(id, lane, paused);
    }

    /// A lane is new: accounts may be paused there.
    pub(super) fn pause_pairs_of(&mut self, lane: LaneId) {
        if self.has_pair_pauses() {
            for id in self.counter.desk.accounts_of(lane) {
                let paused = self.is_pair_paused(id, lane);
                self.counter.desk.set_pair_paused(id, lane, paused);
            }
        }
    }

    fn has_pair_pauses(&self) -> bool {
        self.pauses.values().any(|pause| pause.is_of_pairs())
    }

    /// Of the lane only its pool and destination count, as with policies.
    fn is_pair_paused(&self, id: AccountId, lane: LaneId) -> bool {
        let Some(account) = self.counter.desk.account(id) else {
            return false;
        };
        let (facts, flow) = (account.spec.facts(), &self.counter.desk.lane(lane).facts);
        self.pauses
            .values()
            .filter(|pause| pause.is_of_pairs())
            .any(|pause| pause.matches.matches_pair(&facts, flow))
    }
}

impl super::sweep::Pause {
    /// Whether it speaks of accounts at a destination.
    fn is_of_pairs(&self) -> bool {
        Role::of(self.matches.scopes()) == Ok(Role::Pair)
    }
}
