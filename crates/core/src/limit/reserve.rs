//! Durable reservations: why a restart never sends faster.
//!
//! A window, or a bucket that takes long to fill, must not forget what it
//! granted when the node dies. Writing down every token would cost a write per
//! message, so the limit promises ahead: "at most so many tokens are used by
//! now". It spends only below a promise that is on disk, and asks for the next
//! block when half of the current one is left, so that sends seldom wait for
//! the disk. After a crash all that was promised counts as spent.
//! Buckets that fill quickly need none of this: they start empty.

use super::need::Need;
use super::spec::LimitSpec;
use crate::time::Nanos;

/// Buckets that take longer than this to fill reserve; others start empty.
pub const UNRESERVED_MAX: Nanos = Nanos::from_secs(5);

/// Tokens promised on disk against tokens used.
#[derive(Clone, Debug)]
pub struct Reserve {
    block: u32,
    largest_cost: u32,
    /// Promises on disk, over all time.
    reserved: u64,
    /// Promises on their way to the disk.
    asked: u64,
    used: u64,
}

impl Reserve {
    /// The reserve that a limit needs, if it needs one.
    pub fn of(spec: &LimitSpec) -> Option<Self> {
        let block = match spec {
            LimitSpec::TokenBucket { rate, burst } => {
                (rate.time_for(u64::from(*burst)) > UNRESERVED_MAX).then_some(burst / 100)
            }
            LimitSpec::LeakyBucket { rate } => (rate.time_for(1) > UNRESERVED_MAX).then_some(1),
            LimitSpec::SlidingWindow { count, .. } | LimitSpec::CalendarWindow { count, .. } => {
                Some(count / 100)
            }
            LimitSpec::Concurrency { .. } => None,
        };
        Some(Self {
            block: block?.max(1),
            largest_cost: 1,
            reserved: 0,
            asked: 0,
            used: 0,
        })
    }

    /// Goes on with the block size of another reserve.
    pub fn resized(mut self, other: &Self) -> Self {
        self.block = other.block;
        self
    }

    fn left(&self) -> u64 {
        self.reserved.saturating_sub(self.used)
    }

    /// Learns that a single take may cost this much.
    pub fn expect_cost(&mut self, cost: u32) {
        self.largest_cost = self.largest_cost.max(cost);
    }

    /// The largest cost that was expected or taken.
    pub const fn largest_cost(&self) -> u32 {
        self.largest_cost
    }

    /// Whether a take is covered. `need` contains floors, which need no
    /// promise, so the largest cost is enough.
    pub fn covers(&self, need: Need) -> bool {
        let left = self.left();
        left >= u64::from(self.largest_cost) || need.0 <= left * 1_000
    }

    /// Counts `cost` tokens as used.
    pub fn take(&mut self, cost: u32) {
        self.expect_cost(cost);
        self.used += u64::from(cost);
    }

    /// The block to promise next, if it is time.
    pub fn due(&self) -> Option<u32> {
        let block = self.block.max(self.largest_cost);
        let short =
            self.left() <= u64::from(block / 2) || self.left() < u64::from(self.largest_cost);
        let overdrawn = self.used.saturating_sub(self.reserved);
        let block = block.saturating_add(u32::try_from(overdrawn).unwrap_or(u32::MAX));
        (self.asked == 0 && short).then_some(block)
    }

    /// A promise is on its way to the disk.
    pub fn asked(&mut self, block: u32) {
        self.asked += u64::from(block);
    }

    /// A promise is on disk.
    pub fn committed(&mut self, block: u32) {
        self.asked = self.asked.saturating_sub(u64::from(block));
        self.reserved += u64::from(block);
    }

    /// A promise did not reach the disk, or nobody knows.
    pub fn failed(&mut self, block: u32) {
        self.asked = self.asked.saturating_sub(u64::from(block));
    }

    /// Tokens promised, or about to be, and not used.
    pub fn unspent(&self) -> u64 {
        (self.reserved + self.asked).saturating_sub(self.used)
    }

    /// Whether a promise is on its way.
    pub const fn is_asking(&self) -> bool {
        self.asked > 0
    }
}
