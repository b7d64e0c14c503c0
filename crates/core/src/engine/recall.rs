//! How accounts are held is written down, and held again after a restart.
//!
//! Three things hold an account beside its limits: the far end's word, a breaker,
//! and the rate of the minute before while others of its pool are blocked. None
//! of them is escaped by a restart.

use std::sync::Arc;

use super::Engine;
use super::action::{Hold, Record};
use crate::handle::{AccountId, LaneId};
use crate::name::Name;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::pressure::episode::WORTH;
use crate::time::{Mono, Nanos, Now, Wall};

/// A breaker whose time was over for this long has nothing to say any more.
pub const BREAKER_FORGOTTEN: Nanos = Nanos::from_secs(600);

impl Engine {
    /// An account is held as it was when the process ended.
    pub(super) fn recall_account(&mut self, now: &Now, id: AccountId, name: &Name) {
        let maker = &mut self.counter.maker;
        let block = maker.hold_of(name, Facet::Rate);
        let breaker = maker.hold_of(name, Facet::Breaker);
        let kept = maker.hold_of(name, Facet::Kept);
        let desk = &mut self.counter.desk;
        // Caps first: a block begins an episode.
        if let Some(Hold { until, per_minute }) = kept
            && until > now.wall
        {
            let age = WORTH.minus(until.since(now.wall));
            desk.recall_cap(now.mono, id, per_minute, age);
        }
        // A block that is over is none, and begins no episode.
        if let Some(hold) = block
            && hold.until > now.wall
        {
            let until = now.mono_at(hold.until);
            desk.block(now.mono, id, until);
            if let Some(account) = desk.account_mut(id) {
                account.block_written = Some(until);
            }
        }
        if let Some(until) = breaker.and_then(|hold| open_until(now, hold.until)) {
            desk.recall_breaker(now.mono, id, until);
        }
        self.recall_pairs(now, |it, _| it == id);
    }

    /// Accounts are held at a new lane as they were at its destination.
    pub(super) fn recall_lane(&mut self, now: &Now, lane: LaneId) {
        self.recall_pairs(now, |_, it| it == lane);
    }

    fn recall_pairs(&mut self, now: &Now, is_meant: impl Fn(AccountId, LaneId) -> bool) {
        let desk = &self.counter.desk;
        let mut found = Vec::new();
        for (key, until) in self.counter.maker.broken_pairs() {
            let account = key.name(Scope::Account);
            let Some(id) = account.and_then(|name| desk.find_account(name)) else {
                continue;
            };
            let Some(until) = open_until(now, until) else {
                continue;
            };
            let (Some(account), Some(to)) = (desk.account(id), key.destination()) else {
                continue;
            };
            let lanes = desk.lanes_to(account.pool, &to);
            let lanes = lanes.filter(|lane| is_meant(id, *lane));
            found.extend(lanes.map(|lane| (id, lane, until)));
        }
        for (id, lane, until) in found {
            self.counter.desk.recall_pair(id, lane, until);
        }
    }

    /// Writes down until when a breaker is open.
    pub(super) fn write_breaker(
        &mut self,
        now: &Now,
        id: AccountId,
        lane: Option<LaneId>,
        until: Mono,
    ) {
        if let Some(key) = self.breaker_key(id, lane) {
            self.counter.append(Record::Held {
                key: Arc::new(key),
                hold: Hold::nothing_until(now.wall_at(until)),
            });
        }
    }

    /// Writes down what accounts keep to while others of their pool are blocked.
    pub(super) fn write_kept(&mut self, now: &Now) {
        while let Some((id, per_minute, began)) = self.counter.desk.next_kept() {
            let Some(account) = self.counter.desk.account(id) else {
                continue;
            };
            let parts = [(Scope::Account, account.spec.id.clone())];
            let until = now.wall + WORTH.minus(now.mono.since(began));
            self.counter.append(Record::Held {
                key: Arc::new(LimitKey::new(parts, Facet::Kept)),
                hold: Hold { until, per_minute },
            });
        }
    }

    fn breaker_key(&self, id: AccountId, lane: Option<LaneId>) -> Option<LimitKey> {
        let desk = &self.counter.desk;
        let account = (Scope::Account, desk.account(id)?.spec.id.clone());
        let to = match lane {
            Some(lane) => {
                let to = &desk.lane(lane).destination;
                Some((Scope::of_destination(to.kind)?, to.name.clone()))
            }
            None => None,
        };
        Some(LimitKey::new(
            [Some(account), to].into_iter().flatten(),
            Facet::Breaker,
        ))
    }
}

/// Until when a breaker is open that was so until `until`, if that still matters.
fn open_until(now: &Now, until: Wall) -> Option<Mono> {
    let is_forgotten = now.wall.since(until) > BREAKER_FORGOTTEN;
    (!is_forgotten).then(|| now.mono_at(until).max(now.mono))
}
