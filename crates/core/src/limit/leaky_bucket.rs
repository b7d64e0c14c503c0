//! Leaky bucket: tokens leave one at a time, `1 / rate` apart.
//!
//! The guarantee, for any two takes `i < j`: between them lies at least the
//! time for all tokens from `i` up to but without `j`, rounded down to the
//! clock's nanosecond. A take at the first nanosecond it was due keeps the
//! fraction it was late, so three a second is three a second for years; a take
//! later than that starts a new count.
//!
//! After a live change a gap is at least `1 / rate` by the rate in force when
//! it ends, and the integral of the rate over it is at least one token. So
//! lowering a rate stretches the running gap from its beginning, and raising
//! it shortens only what is left: nobody waits a day for a limit that was a
//! daily one until now.

use super::algorithm::{Fill, Until};
use super::need::Need;
use super::reserve::UNRESERVED_MAX;
use super::spec::Rate;
use super::token_bucket::{Rounding, nanos_for, scale};
use crate::time::{Mono, Nanos};

/// A bucket that lets tokens through evenly spaced.
#[derive(Clone, Debug)]
pub struct LeakyBucket {
    rate: Rate,
    /// What must leak away before the next take, as of `at`, in units of
    /// `1 / rate.per` of a token.
    owed: u128,
    at: Mono,
    last: Mono,
    last_cost: u32,
    /// Set by a change of rate, for the gap that was running.
    not_before: Mono,
}

impl LeakyBucket {
    /// A bucket that is ready now, or that owes as much as a bucket without
    /// durable reservations can have forgotten.
    pub fn new(rate: Rate, now: Mono, fill: Fill) -> Self {
        let mut bucket = Self {
            rate,
            owed: 0,
            at: now,
            last: now,
            last_cost: 0,
            not_before: Mono::default(),
        };
        if fill == Fill::Empty {
            let forgotten = u128::from(UNRESERVED_MAX.0) * u128::from(rate.count);
            bucket.owe(forgotten.max(u128::from(rate.per.0)));
        }
        bucket
    }

    /// A bucket that owed `owed_micro` (millionths of a token) `age` ago, and
    /// from which a take of up to `spent` tokens may have followed.
    pub fn restore(
        rate: Rate,
        (owed_micro, slowest): (u64, Rate),
        age: Nanos,
        spent: u64,
        now: Mono,
    ) -> Self {
        let mut bucket = Self::new(slowest, now, Fill::Full);
        let unit = u128::from(slowest.per.0);
        let leaked = u128::from(age.0) * u128::from(slowest.count);
        let owed = scale(u128::from(owed_micro), unit, 1_000_000, Rounding::Up);
        let spent = u128::from(spent).saturating_mul(unit);
        bucket.owe(owed.saturating_sub(leaked).max(spent));
        bucket.reconfigure(now, rate);
        bucket
    }

    fn owe(&mut self, owed: u128) {
        let tokens = owed.div_ceil(u128::from(self.rate.per.0.max(1)));
        self.owed = owed;
        self.last_cost = u32::try_from(tokens).unwrap_or(u32::MAX);
    }

    fn leaked(&self, now: Mono) -> u128 {
        u128::from(now.since(self.at).0) * u128::from(self.rate.count)
    }

    /// The rate in force.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether the next token may leave now.
    pub fn fits(&self, now: Mono, need: Need) -> bool {
        need == Need::ZERO
            || self.rate.count > 0
                && need <= Need::whole(u32::MAX)
                && now >= self.not_before
                && self.leaked(now) >= self.owed
    }

    /// When the next token may leave.
    pub fn until(&self, now: Mono, need: Need) -> Until {
        if need > Need::whole(u32::MAX) {
            return Until::Never;
        }
        if self.fits(now, need) {
            return Until::Now;
        }
        let due = self.at + nanos_for(self.owed, u128::from(self.rate.count));
        Until::At(due.max(self.not_before))
    }

    /// Takes `cost` tokens: the next may leave `cost / rate` later.
    pub fn take(&mut self, now: Mono, cost: u32) {
        let late = self.leaked(now).saturating_sub(self.owed);
        let within_a_nano = late < u128::from(self.rate.count);
        let kept = if within_a_nano { late } else { 0 };
        let cost_units = u128::from(cost) * u128::from(self.rate.per.0);
        self.owed = cost_units.saturating_sub(kept);
        self.at = self.at.max(now);
        self.last = self.at;
        self.last_cost = cost;
        self.not_before = Mono::default();
    }

    /// Goes on with another rate.
    pub fn reconfigure(&mut self, now: Mono, rate: Rate) {
        if rate == self.rate {
            return;
        }
        let owed = self.owed.saturating_sub(self.leaked(now));
        self.owed = scale(owed, u128::from(rate.per.0), self.rate.per.0, Rounding::Up);
        self.at = self.at.max(now);
        self.rate = rate;
        self.not_before = match self.last_cost {
            0 => Mono::default(),
            cost => self.last + rate.time_for(u64::from(cost)),
        };
    }

    /// Whole tokens that have not leaked away yet, rounded up.
    pub fn used(&self, now: Mono) -> u32 {
        let owed = self.owed.saturating_sub(self.leaked(now));
        let tokens = owed.div_ceil(u128::from(self.rate.per.0.max(1)));
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    /// What is owed now, in millionths of a token, rounded up.
    pub fn owed_micro(&self, now: Mono) -> u64 {
        let owed = self.owed.saturating_sub(self.leaked(now));
        let held_back = self.not_before.since(now);
        let owed = owed.max(u128::from(held_back.0) * u128::from(self.rate.count));
        let micro = scale(owed, 1_000_000, self.rate.per.0, Rounding::Up);
        u64::try_from(micro).unwrap_or(u64::MAX)
    }

    /// Whether a fresh bucket would know as much.
    pub fn is_idle(&self, now: Mono) -> bool {
        now >= self.not_before && self.leaked(now) >= self.owed
    }
}
