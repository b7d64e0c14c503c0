//! The rate of a minute, held.
//!
//! The guarantee: in any minute at most as much as was counted, and one message
//! more. A wake-up that comes late must not cost the account its rate, so a
//! little may be made up for: a four-hundredth of the count, which is taken off
//! the rate to pay for it. A message may cost more than one: it then takes the
//! time of as many.

use super::MINUTE;
use crate::limit::spec::Rate;
use crate::time::{Mono, Nanos};

/// The part of a minute's count that may be made up for at once.
const MADE_UP: u64 = 400;

/// The most a minute's count is taken for.
const COUNT_MAX: u64 = u32::MAX as u64;

/// A cap on one account.
#[derive(Clone, Debug)]
pub struct Cap {
    /// What it may send in a minute.
    per_minute: u64,
    rate: Rate,
    /// How far behind its time an account may be without losing its turn.
    slack: Nanos,
    /// When all it sent so far has had its time.
    spent_until: Mono,
}

impl Cap {
    /// Lets as many through in a minute as were counted; at least one.
    pub fn new(now: Mono, per_minute: u64) -> Self {
        let per_minute = per_minute.clamp(1, COUNT_MAX);
        let made_up = per_minute / MADE_UP;
        let count = per_minute - made_up;
        let rate = Rate {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            per: MINUTE,
        };
        Self {
            per_minute,
            rate,
            slack: rate.time_for(made_up),
            spent_until: now,
        }
    }

    /// What it lets through in a minute.
    pub const fn per_minute(&self) -> u64 {
        self.per_minute
    }

    /// When the next message may go.
    pub const fn opens_at(&self) -> Mono {
        Mono(self.spent_until.0.saturating_sub(self.slack.0))
    }

    /// A message of this cost goes, at so many thousandths of the rate.
    pub fn take(&mut self, now: Mono, cost: u32, permille: u64) {
        let whole = self.rate.time_for(u64::from(cost));
        let takes = u128::from(whole.0) * 1_000 / u128::from(permille.max(1));
        let takes = Nanos(u64::try_from(takes).unwrap_or(u64::MAX));
        self.spent_until = self.spent_until.max(now) + takes;
    }
}
