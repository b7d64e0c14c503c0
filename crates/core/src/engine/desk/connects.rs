//! How fast accounts may connect.
//!
//! One bucket per account that has a connection rate. An account whose bucket
//! is empty has no room for a session, as if it were at its cap; one timer per
//! account gives the room back.

use std::collections::{BTreeMap, BTreeSet};

use super::Desk;
use crate::handle::{AccountId, LaneId, PoolId, SessionId};
use crate::limit::need::Need;
use crate::limit::spec::Rate;
use crate::limit::token_bucket::TokenBucket;
use crate::limit::{Fill, Until};
use crate::time::{Mono, Now};

/// The connection rates of accounts. Those that left are remembered: they may
/// come back.
#[derive(Debug, Default)]
pub(super) struct Connects {
    buckets: BTreeMap<AccountId, TokenBucket>,
    timers: BTreeSet<(Mono, AccountId)>,
}

impl Connects {
    /// Sets an account's connection rate, or lifts it.
    pub fn set(&mut self, now: Mono, id: AccountId, rate: Option<Rate>, fill: Fill) {
        let Some(rate) = rate else {
            self.buckets.remove(&id);
            return;
        };
        let burst = rate.default_burst();
        let fresh = || TokenBucket::new(rate, burst, now, fill);
        let bucket = self.buckets.entry(id).or_insert_with(fresh);
        if bucket.rate() != rate {
            bucket.reconfigure(now, rate, burst);
        }
    }

    /// When an account may connect; none if now.
    fn until(&self, now: Mono, id: AccountId) -> Option<Mono> {
        match self.buckets.get(&id)?.until(now, Need::whole(1)) {
            Until::Now => None,
            Until::At(at) => Some(at),
            Until::Released | Until::Granted | Until::Never => Some(Mono::NEVER),
        }
    }

    pub fn next_wake(&self) -> Mono {
        self.timers.first().map_or(Mono::NEVER, |&(at, _)| at)
    }
}

impl Desk {
    /// The next session that a pool closes.
    pub(in crate::engine) fn next_close(&mut self, pool: PoolId) -> Option<SessionId> {
        if !self.pool(pool).is_closing() {
            return None;
        }
        self.pool_mut(pool).next_close()
    }

    /// The next session that a pool opens.
    pub(in crate::engine) fn next_open(
        &mut self,
        now: &Now,
        pool: PoolId,
    ) -> Option<(SessionId, AccountId, LaneId)> {
        if !self.pool(pool).may_open() {
            return None;
        }
        let opening = self.pool_mut(pool).next_open(now.mono)?;
        let (_, id, lane) = opening;
        self.note_opening(id, lane);
        if let Some(bucket) = self.connects.buckets.get_mut(&id) {
            bucket.take(now.mono, 1);
            self.tell_room(now, id);
        }
        Some(opening)
    }

    /// Tells the pool whether an account may connect, and sets the time to look
    /// again if not.
    pub(super) fn tell_room(&mut self, now: &Now, id: AccountId) {
        let Some(pool) = self.account(id).map(|account| account.pool) else {
            return;
        };
        let until = self.connects.until(now.mono, id);
        if let Some(at) = until.filter(|at| *at != Mono::NEVER) {
            self.connects.timers.insert((at, id));
        }
        self.pool_mut(pool).set_room(id, until.is_none());
    }

    pub(super) fn wake_connects(&mut self, now: &Now) {
        while let Some(&(at, id)) = self.connects.timers.first() {
            if at > now.mono {
                return;
            }
            self.connects.timers.remove(&(at, id));
            self.tell_room(now, id);
        }
    }
}
