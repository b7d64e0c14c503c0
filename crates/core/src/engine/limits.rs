//! The limits that flows pass themselves, by key; and how any limit is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::feed::Feed;
use crate::handle::PlaceId;
use crate::limit::saved::Saved;
use crate::limit::spec::LimitSpec;
use crate::limit::{Fill, Limit};
use crate::policy::applied::Applied;
use crate::policy::key::LimitKey;
use crate::schedule::Schedule;
use crate::schedule::place::Holder;
use crate::time::{Mono, Nanos, Now};

/// What the journal knew of a limit when the engine started.
#[derive(Clone, Debug)]
pub struct SavedLimit {
    /// Its state at the last reservation.
    pub saved: Saved,
    /// Tokens reserved since that state was saved.
    pub reserved_since: u64,
}

/// How the engine starts.
#[derive(Clone, Debug)]
pub enum Start {
    /// For the first time: limits are full.
    Fresh,
    /// Again, so long after it ended. What was reserved counts as spent, and
    /// short buckets start empty: a restart never sends faster.
    Again {
        /// What the journal knew of each limit.
        limits: BTreeMap<LimitKey, SavedLimit>,
        /// From the last record to now, at least.
        downtime: Nanos,
    },
}

/// Makes limits as this node must have them.
#[derive(Debug)]
pub(super) struct Maker {
    /// Whether a ledger counts, for the whole fleet.
    leased: bool,
    start: Start,
    started_at: Mono,
}

impl Maker {
    pub fn new(leased: bool, start: Start, started_at: Mono) -> Self {
        Self {
            leased,
            start,
            started_at,
        }
    }

    /// A limit with its feed, if it spends what it is given.
    pub fn make(&mut self, now: &Now, applied: &Applied) -> (Limit, Option<Feed>) {
        let limit = self.make_limit(now, applied);
        let fed = limit.is_leased() || limit.needs_reserve();
        let feed = fed.then(|| Feed::new(Arc::new(applied.key.clone()), applied.when_away));
        (limit, feed)
    }

    fn make_limit(&mut self, now: &Now, applied: &Applied) -> Limit {
        let (spec, headroom) = (applied.spec.clone(), applied.headroom);
        // What is in flight is counted where it flies.
        if self.leased && !matches!(spec, LimitSpec::Concurrency { .. }) {
            return Limit::leased(spec, headroom);
        }
        let Start::Again { limits, downtime } = &mut self.start else {
            return Limit::owned(spec, headroom, now, Fill::Full);
        };
        let at_start = Now {
            mono: self.started_at,
            ..*now
        };
        if let Some(known) = limits.remove(&applied.key) {
            let since = known.reserved_since;
            return Limit::restore(spec, headroom, &known.saved, since, &at_start, *downtime);
        }
        // A limit that reserves and has no record was never used.
        let fresh = Limit::owned(spec.clone(), headroom, now, Fill::Full);
        if fresh.needs_reserve() || matches!(spec, LimitSpec::Concurrency { .. }) {
            return fresh;
        }
        Limit::owned(spec, headroom, &at_start, Fill::Empty)
    }
}

/// One limit at a place.
#[derive(Debug)]
pub(super) struct FlowLimit {
    pub key: Arc<LimitKey>,
    pub feed: Option<Feed>,
    users: u32,
}

/// All limits that flows pass themselves.
#[derive(Debug, Default)]
pub(super) struct FlowLimits {
    by_key: BTreeMap<Arc<LimitKey>, PlaceId>,
    by_place: BTreeMap<PlaceId, FlowLimit>,
}

impl FlowLimits {
    /// The place of a limit, made if need be; its numbers are brought up to date.
    pub fn join(
        &mut self,
        now: &Now,
        applied: &Applied,
        schedule: &mut Schedule,
        maker: &mut Maker,
    ) -> PlaceId {
        if let Some(&place) = self.by_key.get(&applied.key) {
            if let Some(limit) = self.by_place.get_mut(&place) {
                limit.users += 1;
            }
            let changed = schedule
                .limit(place)
                .is_some_and(|limit| *limit.spec() != applied.spec);
            if changed {
                schedule.reconfigure(now, place, applied.spec.clone());
            }
            return place;
        }
        let (limit, feed) = maker.make(now, applied);
        let place = schedule.add_place(Holder::Limit(Box::new(limit)));
        schedule.group_waits(place, applied.key.scopes());
        let key = Arc::new(applied.key.clone());
        self.by_key.insert(Arc::clone(&key), place);
        self.by_place.insert(
            place,
            FlowLimit {
                key,
                feed,
                users: 1,
            },
        );
        place
    }

    /// One flow less passes a limit; the last one takes it along.
    pub fn leave(&mut self, place: PlaceId, schedule: &mut Schedule) {
        let Some(limit) = self.by_place.get_mut(&place) else {
            return;
        };
        limit.users -= 1;
        if limit.users == 0
            && let Some(limit) = self.by_place.remove(&place)
        {
            self.by_key.remove(&limit.key);
            schedule.remove_place(place);
        }
    }

    pub fn get(&self, place: PlaceId) -> Option<&FlowLimit> {
        self.by_place.get(&place)
    }

    pub fn get_mut(&mut self, place: PlaceId) -> Option<&mut FlowLimit> {
        self.by_place.get_mut(&place)
    }

    pub fn find(&self, key: &LimitKey) -> Option<PlaceId> {
        self.by_key.get(key).copied()
    }

    /// How many limits there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }
}
