//! How keys come and go.
//!
//! A key is known from its first use until it is idle: until its limit
//! remembers nothing that a fresh one would not know. Each new key looks at a
//! few others in turn and drops those that are idle and were not used since the
//! last look. When there are as many as may be, it looks further; if none is
//! idle, the new key is refused, since to forget a limit is to grant too much.

use std::sync::Arc;

use super::Throttle;
use super::entry::{self, Entry};
use super::parts::{Part, Parts};
use super::request::{Outcome, Refusal, Request, Wanted, Why};
use crate::engine::feed::Feed;
use crate::limit::spec::{Headroom, LimitSpec};
use crate::limit::{Fill, Limit};
use crate::time::{Mono, Nanos, Now};

/// Keys that a new one looks at.
const LOOKED_AT: usize = 4;
/// Keys that a new one looks at when there is no room.
const LOOKED_AT_MOST: usize = 1_024;
/// When to come back if there is no room for a key.
const CROWDED: Nanos = Nanos::from_secs(1);

impl Entry {
    /// Whether what is taken from it is held.
    pub(super) fn holds_slots(&self) -> bool {
        matches!(self.limit.spec(), LimitSpec::Concurrency { .. })
    }
}

impl Throttle {
    /// Finds the limits of a request, makes those that are not there, and sees
    /// whether it can ever be granted.
    pub(super) fn resolve(
        &mut self,
        now: &Now,
        request: &Request<'_>,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<Parts, Refusal> {
        let mut parts = Parts::default();
        for (want, wanted) in request.wants.iter().enumerate() {
            let refused = |why, retry_after| Refusal {
                by: want,
                why,
                retry_after,
            };
            let entry = self.entry(now, wanted, &parts, outcomes);
            let entry = entry.map_err(|why| refused(why, Some(CROWDED)))?;
            parts.add(Part {
                entry,
                cost: wanted.cost,
                want: u8::try_from(want).unwrap_or(u8::MAX),
            });
            let cost = parts.of(entry).map_or(0, |part| part.cost);
            if let Some(entry) = self.entries.get_mut(entry) {
                let largest = entry.limit.largest_cost();
                if cost > largest {
                    return Err(refused(Why::TooLarge { largest }, None));
                }
                entry.cost_max = entry.cost_max.max(cost);
                entry.limit.expect_cost(entry.cost_max);
            }
        }
        if self.permits.of_owner(request.owner).1 == 0 {
            let wants_slots = |part: Part| {
                let entry = self.entries.get(part.entry);
                entry.is_some_and(Entry::holds_slots)
            };
            if let Some(part) = parts.iter().find(|part| wants_slots(*part)) {
                return Err(Refusal {
                    by: usize::from(part.want),
                    why: match self.permits.len() < self.settings.permits_max {
                        true => Why::TooManyOwnPermits,
                        false => Why::TooManyKeys,
                    },
                    retry_after: Some(CROWDED),
                });
            }
        }
        Ok(parts)
    }

    /// The limit of a key, with the numbers that are wanted now. `others` of the
    /// same request stay.
    pub(super) fn entry(
        &mut self,
        now: &Now,
        wanted: &Wanted<'_>,
        others: &Parts,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<u32, Why> {
        let key = &wanted.key;
        let hash = self
            .index
            .hash([key.space, key.name], entry::number(key.facet));
        let found = self.index.find(hash, |place| {
            let entry = self.entries.get(place);
            entry.is_some_and(|entry| entry.hash == hash && entry.is(key))
        });
        let Some(place) = found else {
            return self.make(now, wanted, hash, others);
        };
        if let Some(entry) = self.entries.get_mut(place)
            && entry.limit.spec() != wanted.spec
        {
            entry.version = wanted.version;
            entry.limit.reconfigure(now, wanted.spec.clone());
            if let Some(feed) = &mut entry.feed {
                feed.renumber();
                entry.feed_at = now.mono;
            }
            entry
                .limit
                .set_headroom(headroom(self.settings.headroom, wanted.spec));
            // A raised limit must not keep anybody waiting for its old time.
            if entry.line().is_some() {
                self.serve(now, place, outcomes);
            }
        }
        if !self.pauses.is_empty() {
            self.apply_pause(now, place);
        }
        Ok(place)
    }

    /// `others` of the same request were found already and must stay.
    fn make(
        &mut self,
        now: &Now,
        wanted: &Wanted<'_>,
        hash: u64,
        others: &Parts,
    ) -> Result<u32, Why> {
        let space = wanted.key.space;
        let is_full = self.room_for(space) == 0;
        self.drop_idle(now, LOOKED_AT, others, is_full.then_some(space));
        if self.room_for(space) == 0 {
            self.drop_idle(now, LOOKED_AT_MOST, others, Some(space));
        }
        if self.room_for(space) == 0 {
            return Err(match self.entries.len() < self.settings.keys_max {
                true => Why::TooManyOwnKeys,
                false => Why::TooManyKeys,
            });
        }
        let since = match self.settings.fill {
            Fill::Full => now,
            Fill::Empty => &self.started,
        };
        let spec = wanted.spec.clone();
        let headroom = headroom(self.settings.headroom, &spec);
        let mut entry = match self.settings.leased {
            true => Entry::new(wanted, hash, Limit::leased(spec, headroom)),
            false => {
                let limit = Limit::transient(spec, headroom, since, self.settings.fill);
                Entry::new(wanted, hash, limit)
            }
        };
        if self.settings.leased {
            let mut feed = Feed::new(Arc::new(wanted.key.of_fleet()), wanted.when_away);
            feed.number_after(self.last_request);
            entry.feed = Some(Box::new(feed));
        }
        let (place, _) = self.entries.insert(entry);
        self.index.insert(hash, place);
        match self.owned.get_mut(space) {
            Some(count) => *count += 1,
            None => {
                self.owned.insert(Box::from(space), 1);
            }
        }
        self.apply_pause(now, place);
        Ok(place)
    }

    /// Looks at some limits, from where the last look ended, and drops those
    /// that are idle. `wanting` is the owner for whom there is no room: for it
    /// also those are dropped that were used lately, until there is.
    fn drop_idle(&mut self, now: &Now, looks: usize, kept: &Parts, wanting: Option<&str>) {
        for _ in 0..looks.min(self.entries.places()) {
            let place = self.hand;
            self.hand += 1;
            if self.hand as usize >= self.entries.places() {
                self.hand = 0;
            }
            let Some(entry) = self.entries.get_mut(place) else {
                continue;
            };
            let was_used = std::mem::take(&mut entry.is_fresh);
            if (was_used && wanting.is_none()) || !entry.is_idle(now) || kept.of(place).is_some() {
                continue;
            }
            let hash = entry.hash;
            if let Some(feed) = &entry.feed {
                self.last_request = self.last_request.max(feed.last_request());
            }
            entry.feed_at = Mono::NEVER;
            self.set_timer(place, Mono::NEVER);
            let entries = &self.entries;
            self.index.remove(hash, place, |other| {
                entries.get(other).map_or(0, |entry| entry.hash)
            });
            if let Some(gone) = self.entries.remove(place)
                && let Some(count) = self.owned.get_mut(&gone.space)
            {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.owned.remove(&gone.space);
                }
            }
            if wanting.is_some_and(|space| self.room_for(space) > 0) {
                return;
            }
        }
    }
}

/// Headroom costs a bucket no sustained rate and a quota nothing in the end;
/// elsewhere it would be a hard share.
const fn headroom(headroom: Headroom, spec: &LimitSpec) -> Headroom {
    match spec {
        LimitSpec::TokenBucket { .. } | LimitSpec::CalendarWindow { .. } => headroom,
        _ => Headroom([0; 4]),
    }
}
