//! Token bucket: at most `burst + rate * T` tokens in any time `T`.
//!
//! The level is kept in units of `1 / per` of a token, of which exactly
//! `count` accrue in a nanosecond. Nothing is ever rounded, so a rate of three
//! a second yields three a second for years. After a live change the bound is
//! the largest burst in force plus the integral of the rate: the level carries
//! over, rounded down, and a larger burst starts without its extra tokens.

use super::algorithm::{Fill, Until};
use super::need::Need;
use super::spec::Rate;
use crate::time::{Mono, Nanos};

/// A bucket that fills at a rate and holds at most a burst.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: Rate,
    burst: u32,
    /// In units of `1 / rate.per` of a token.
    level: u128,
    at: Mono,
}

impl TokenBucket {
    /// A bucket that is full or empty now.
    pub fn new(rate: Rate, burst: u32, now: Mono, fill: Fill) -> Self {
        let mut bucket = Self {
            rate,
            burst,
            level: 0,
            at: now,
        };
        if fill == Fill::Full {
            bucket.level = bucket.full();
        }
        bucket
    }

    /// A bucket that held `level` (in millionths of a token) `age` ago, from
    /// which `spent` tokens may have been taken since, at any time.
    ///
    /// Taking them all now is the worst case: tokens taken earlier would have
    /// made room for others to accrue.
    pub fn restore(
        rate: Rate,
        burst: u32,
        (level_micro, slowest): (u64, Rate),
        age: Nanos,
        spent: u64,
        now: Mono,
    ) -> Self {
        let mut bucket = Self::new(slowest, burst, now, Fill::Empty);
        let unit = u128::from(slowest.per.0);
        let accrued = u128::from(age.0) * u128::from(slowest.count);
        let level = scale(u128::from(level_micro), unit, 1_000_000, Rounding::Down) + accrued;
        let spent = u128::from(spent).saturating_mul(unit);
        bucket.level = level.min(bucket.full()).saturating_sub(spent);
        bucket.reconfigure(now, rate, burst);
        bucket
    }

    fn full(&self) -> u128 {
        u128::from(self.burst) * u128::from(self.rate.per.0)
    }

    fn level_at(&self, now: Mono) -> u128 {
        let accrued = u128::from(now.since(self.at).0) * u128::from(self.rate.count);
        (self.level + accrued).min(self.full())
    }

    /// How long it takes to fill.
    pub fn fills_in(&self) -> Nanos {
        self.rate.time_for(u64::from(self.burst))
    }

    /// The rate in force.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether `need` is there now.
    pub fn fits(&self, now: Mono, need: Need) -> bool {
        self.level_at(now) * 1_000 >= u128::from(need.0) * u128::from(self.rate.per.0)
    }

    /// When `need` will be there if nobody takes anything.
    pub fn until(&self, now: Mono, need: Need) -> Until {
        if need > Need::whole(self.burst) {
            return Until::Never;
        }
        let wanted = u128::from(need.0) * u128::from(self.rate.per.0);
        let missing = wanted.saturating_sub(self.level_at(now) * 1_000);
        if missing == 0 {
            return Until::Now;
        }
        let per_nano = u128::from(self.rate.count) * 1_000;
        Until::At(now.max(self.at) + nanos_for(missing, per_nano))
    }

    /// Takes `cost` tokens.
    pub fn take(&mut self, now: Mono, cost: u32) {
        let cost = u128::from(cost) * u128::from(self.rate.per.0);
        self.level = self.level_at(now).saturating_sub(cost);
        self.at = self.at.max(now);
    }

    /// Takes tokens back that were taken at `since` and not used: what would
    /// have accrued without them is no more theirs.
    pub fn give_back(&mut self, now: Mono, tokens: u32, since: Mono) {
        let accrued = u128::from(now.since(since).0) * u128::from(self.rate.count);
        let tokens = u128::from(tokens) * u128::from(self.rate.per.0);
        let level = self.level_at(now) + tokens.saturating_sub(accrued);
        self.level = level.min(self.full());
        self.at = self.at.max(now);
    }

    /// Goes on with another rate and burst.
    pub fn reconfigure(&mut self, now: Mono, rate: Rate, burst: u32) {
        let level = self.level_at(now);
        self.level = scale(
            level,
            u128::from(rate.per.0),
            self.rate.per.0,
            Rounding::Down,
        );
        self.at = self.at.max(now);
        self.rate = rate;
        self.burst = burst;
        self.level = self.level.min(self.full());
    }

    /// Whole tokens missing from a full bucket, rounded up.
    pub fn used(&self, now: Mono) -> u32 {
        let missing = self.full() - self.level_at(now);
        let tokens = missing.div_ceil(u128::from(self.rate.per.0.max(1)));
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    /// The level now, in millionths of a token, rounded down.
    pub fn level_micro(&self, now: Mono) -> u64 {
        let micro = scale(
            self.level_at(now),
            1_000_000,
            self.rate.per.0,
            Rounding::Down,
        );
        u64::try_from(micro).unwrap_or(u64::MAX)
    }

    /// Whether a fresh bucket would know as much.
    pub fn is_idle(&self, now: Mono) -> bool {
        self.level_at(now) == self.full()
    }
}

/// Which way a conversion between units rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    Down,
    Up,
}

/// `amount * to / from` without overflow on the way.
pub(super) fn scale(amount: u128, to: u128, from: u64, rounding: Rounding) -> u128 {
    let from = u128::from(from.max(1));
    let part = (amount % from).saturating_mul(to);
    let part = match rounding {
        Rounding::Down => part / from,
        Rounding::Up => part.div_ceil(from),
    };
    (amount / from).saturating_mul(to).saturating_add(part)
}

/// How long `amount` takes at `per_nano` a nanosecond, rounded up.
pub(super) fn nanos_for(amount: u128, per_nano: u128) -> Nanos {
    match per_nano {
        0 => Nanos::MAX,
        _ => Nanos(u64::try_from(amount.div_ceil(per_nano)).unwrap_or(u64::MAX)),
    }
}
