//! One limit of a throttle, with those who wait at it.

use super::line::{Line, Rank};
use super::request::{Key, Wanted};
use super::waits;
use crate::class::Class;
use crate::engine::feed::Feed;
use crate::limit::need::Need;
use crate::limit::{Limit, Until};
use crate::policy::facet::Facet;
use crate::policy::scope_set::ScopeSet;
use crate::time::{Mono, Nanos, Now};

/// How long to tell somebody to stay away if nobody knows when a slot is given
/// back.
const RELEASE_GUESS: Nanos = Nanos::from_secs(1);

/// The same, for tokens that a ledger has not granted yet.
const LEASE_GUESS: Nanos = Nanos::from_millis(5);

/// One limit.
#[derive(Debug)]
pub(super) struct Entry {
    pub space: Box<str>,
    pub name: Box<str>,
    pub facet: Facet,
    pub hash: u64,
    pub scopes: ScopeSet,
    pub limit: Limit,
    /// The largest cost that was asked of it: floors leave room for that.
    pub cost_max: u32,
    /// Whether it was used since the last look for idle ones.
    pub is_fresh: bool,
    /// When those who wait are looked at next.
    pub line_at: Mono,
    /// When its tokens are looked at next, if they are leased.
    pub feed_at: Mono,
    /// The earlier of the two, for which a timer stands.
    pub timer: Mono,
    /// Where its tokens come from, if they are leased.
    pub feed: Option<Box<Feed>>,
    /// Of which version of the policies its numbers are.
    pub version: u64,
    /// What was last asked of it, until its tokens are looked at.
    pub wanted: Option<(Class, u32)>,
    line: Option<Box<Line>>,
}

/// When a limit has room for somebody, and what that means for who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    /// When to look again; never if something else must happen first.
    pub at: Mono,
    /// When it is worth coming back.
    pub back_at: Mono,
}

/// A number for a facet, by which most differ.
pub(super) fn number(facet: &Facet) -> u64 {
    match facet {
        Facet::Rate => 0,
        Facet::FurtherRate(nth) => 0x1_0000_0000 | u64::from(*nth),
        Facet::Concurrency => 1,
        Facet::Learnt => 8,
        Facet::Breaker => 9,
        Facet::Kept => 10,
        Facet::Window(length) => length.0,
        Facet::Calendar(period, _) => 2 + (*period as u64),
    }
}

impl Entry {
    pub fn new(wanted: &Wanted<'_>, hash: u64, limit: Limit) -> Self {
        Self {
            space: Box::from(wanted.key.space),
            name: Box::from(wanted.key.name),
            facet: wanted.key.facet.clone(),
            hash,
            scopes: waits::scopes(&wanted.key),
            limit,
            cost_max: 1,
            is_fresh: true,
            line_at: Mono::NEVER,
            feed_at: Mono::NEVER,
            timer: Mono::NEVER,
            feed: None,
            version: wanted.version,
            wanted: None,
            line: None,
        }
    }

    /// Whether it is the limit of this key.
    pub fn is(&self, key: &Key<'_>) -> bool {
        *self.name == *key.name && *self.space == *key.space && self.facet == *key.facet
    }

    /// Whether a fresh one would know as much.
    pub fn is_idle(&self, now: &Now) -> bool {
        let is_asking = self.feed.as_ref().is_some_and(|feed| feed.is_asking());
        self.line.is_none() && !is_asking && self.limit.is_idle(now)
    }

    pub fn line(&self) -> Option<&Line> {
        self.line.as_deref()
    }

    pub fn line_mut(&mut self) -> &mut Line {
        self.line.get_or_insert_default()
    }

    /// Forgets an empty line.
    pub fn tidy_line(&mut self) {
        if self.line.as_ref().is_some_and(|line| line.is_empty()) {
            self.line = None;
        }
    }

    /// What `rank` must leave to those before it and to the classes above.
    /// What must be there above the floor.
    fn need(&self, rank: Rank, cost: u32) -> Need {
        let booked = self
            .line
            .as_ref()
            .map_or(0, |line| line.booked_before(rank));
        Need::whole(cost) + Need::whole(booked)
    }

    /// Whether it has enough for `rank`, whoever else stands there.
    pub fn has_room(&self, now: &Now, rank: Rank, class: Class, cost: u32) -> bool {
        let floor = self.limit.floor(now, rank.class, self.cost_max);
        self.limit
            .fits_above(now, class, self.need(rank, cost), floor)
    }

    /// What holds somebody of `rank` here; none if nothing does.
    pub fn hold(&self, now: &Now, rank: Rank, class: Class, cost: u32) -> Option<Hold> {
        let is_behind = self.line.as_ref().is_some_and(|line| line.is_behind(rank));
        if !is_behind && self.has_room(now, rank, class, cost) {
            return None;
        }
        let need = self.need(rank, cost);
        let until = self
            .limit
            .until_above_floor(now, rank.class, need, self.cost_max);
        let at = match until {
            Until::Now if is_behind => now.mono,
            // It never is, with room; but nobody shall spin if it were.
            Until::Now => now.mono + Nanos::from_millis(1),
            Until::At(at) => at,
            Until::Released | Until::Granted | Until::Never => Mono::NEVER,
        };
        let known = match (at, &self.feed) {
            (Mono::NEVER, Some(feed)) => feed.asks_again_at().max(now.mono + LEASE_GUESS),
            (Mono::NEVER, None) => now.mono + RELEASE_GUESS,
            (at, _) => at,
        };
        let ahead = match (&self.line, self.limit.shape().rate) {
            (Some(line), Some(rate)) if is_behind => rate.time_for(line.queued(rank.class)),
            _ => Nanos::ZERO,
        };
        Some(Hold {
            at,
            back_at: (known + ahead).max(now.mono + Nanos(1)),
        })
    }
}
