//! A throttle in the words of redis-cell: `CL.THROTTLE key max_burst count
//! period quantity`.
//!
//! It is a token bucket that holds `max_burst + 1` and fills by `count` in
//! `period` seconds. The answer has seconds, as clients of redis-cell expect.

use super::Throttle;
use super::line::Rank;
use super::parts::{Part, Parts};
use super::request::{Key, Outcome, Refusal, Wanted, Why};
use crate::class::Class;
use crate::limit::need::Need;
use crate::limit::spec::{LimitSpec, Rate};
use crate::limit::{Limit, Until};
use crate::policy::facet::Facet;
use crate::policy::policy::WhenAway;
use crate::time::{NANOS_PER_SECOND, Nanos, Now};

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// Whose key it is.
    pub space: &'a str,
    /// The key.
    pub name: &'a str,
    /// What the bucket holds: one more than what redis-cell calls the burst.
    pub burst: u32,
    /// How fast it fills.
    pub rate: Rate,
    /// How much is taken; 0 looks and takes nothing.
    pub quantity: u32,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the call was refused.
    pub limited: bool,
    /// What the bucket holds at most.
    pub limit: u32,
    /// What it holds now.
    pub remaining: u64,
    /// Seconds after which it is worth coming back; -1 if it was granted, or can
    /// never be.
    pub retry_after: i64,
    /// Seconds until it is full again.
    pub reset_after: i64,
}

/// What a call hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The answer.
    Answer(Answer),
    /// A ledger must be heard first: ask for the same limit as somebody who
    /// waits, then look.
    NotYet,
}

/// Nobody is told to come back too early.
fn seconds_up(span: Nanos) -> i64 {
    i64::try_from(span.0.div_ceil(NANOS_PER_SECOND)).unwrap_or(i64::MAX)
}

/// As redis-cell rounds: up, but for less than a millisecond.
fn seconds(span: Nanos) -> i64 {
    let millis = span.0 / 1_000_000;
    i64::try_from(millis.div_ceil(1_000)).unwrap_or(i64::MAX)
}

fn time_to(limit: &Limit, now: &Now, tokens: u32) -> Nanos {
    match limit.until(now, Class::Critical, Need::whole(tokens)) {
        Until::At(at) => at.since(now.mono),
        Until::Now | Until::Released | Until::Granted | Until::Never => Nanos::ZERO,
    }
}

impl Throttle {
    /// Answers as redis-cell does. Refused only if there is no room for the key.
    pub fn cell(
        &mut self,
        now: &Now,
        cell: &Cell<'_>,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<Told, Refusal> {
        let spec = LimitSpec::TokenBucket {
            rate: cell.rate,
            burst: cell.burst,
        };
        let wanted = Wanted {
            key: Key {
                space: cell.space,
                name: cell.name,
                facet: &Facet::Rate,
            },
            spec: &spec,
            cost: cell.quantity,
            when_away: WhenAway::Closed,
            version: 0,
        };
        let crowded = |why| Refusal {
            by: 0,
            why,
            retry_after: Some(Nanos::from_secs(1)),
        };
        self.void_parted(now);
        let place = self
            .entry(now, &wanted, &Parts::default(), outcomes)
            .map_err(crowded)?;
        self.arrivals += 1;
        // There are no classes in redis-cell, so nothing is kept from anybody.
        let class = Class::Critical;
        let rank = Rank {
            class,
            no: self.arrivals,
        };
        if cell.quantity > 0 && self.waits_for_lease(now, place, rank, cell.quantity) {
            return Ok(Told::NotYet);
        }
        let entry = self.entries.get_mut(place);
        let entry = entry.ok_or_else(|| crowded(Why::TooManyKeys))?;
        let is_possible = cell.quantity <= entry.limit.largest_cost();
        let held = match cell.quantity {
            0 => None,
            quantity => entry.hold(now, rank, class, quantity),
        };
        let limited = !is_possible || held.is_some();
        if !limited && cell.quantity > 0 {
            entry.limit.take(now, class, cell.quantity);
        }
        entry.is_fresh = true;
        let retry_after = match held {
            Some(hold) if is_possible => seconds_up(hold.back_at.since(now.mono)),
            _ => -1,
        };
        let answer = Answer {
            limited,
            limit: cell.burst,
            remaining: entry.limit.available(now),
            retry_after,
            reset_after: seconds(time_to(&entry.limit, now, cell.burst)),
        };
        let is_fed = entry.feed.is_some();
        if !limited && entry.line().is_some() {
            let mut parts = Parts::default();
            parts.add(Part {
                entry: place,
                cost: cell.quantity,
                want: 0,
            });
            self.note_passed(now, class, &parts);
        }
        if limited {
            self.note_held(place);
        }
        if is_fed && !limited && cell.quantity > 0 {
            self.note_taken(now, place, class, cell.quantity);
        }
        Ok(Told::Answer(answer))
    }
}
