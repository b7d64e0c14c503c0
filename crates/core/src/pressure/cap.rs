//! The rate of a minute, held.
//!
//! The guarantee: in any minute at most as much as was counted, and one message
//! more. A wake-up that comes a little late must not cost the account its rate,
//! so that much may be made up for; the minute is taken to be as much longer to
//! pay for it. A message may cost more than one: it then takes the time of as
//! many.

use super::MINUTE;
use crate::limit::spec::Rate;
use crate::time::{Mono, Nanos};

/// How far behind its time an account may be without losing its turn.
const SLACK: Nanos = Nanos::from_millis(25);

/// The most a minute's count is taken for.
const COUNT_MAX: u64 = u32::MAX as u64;

/// A cap on one account.
#[derive(Clone, Debug)]
pub struct Cap {
    rate: Rate,
    /// When all it sent so far has had its time.
    spent_until: Mono,
}

impl Cap {
    /// Lets as many through in a minute as were counted; at least one.
    pub fn new(now: Mono, per_minute: u64) -> Self {
        let per_minute = per_minute.clamp(1, COUNT_MAX);
        let rate = Rate {
            count: u32::try_from(per_minute).unwrap_or(u32::MAX),
            per: MINUTE + SLACK,
        };
        Self {
            rate,
            spent_until: now,
        }
    }

    /// What it lets through in a minute.
    pub const fn per_minute(&self) -> u32 {
        self.rate.count
    }

    /// When the next message may go.
    pub const fn opens_at(&self) -> Mono {
        Mono(self.spent_until.0.saturating_sub(SLACK.0))
    }

    /// A message of this cost goes, at so many thousandths of the rate.
    pub fn take(&mut self, now: Mono, cost: u32, permille: u64) {
        let whole = self.rate.time_for(u64::from(cost));
        let takes = u128::from(whole.0) * 1_000 / u128::from(permille.max(1));
        let takes = Nanos(u64::try_from(takes).unwrap_or(u64::MAX));
        self.spent_until = self.spent_until.max(now) + takes;
    }
}
