//! Durable reservations: why a restart never sends faster.
//!
//! A window, or a bucket that takes long to fill, must not forget what it
//! granted when the node dies. Writing down every token would cost a write per
//! message, so the limit promises ahead: "at most so many tokens are used by
//! now". It spends only below a promise that is on disk, and keeps up to two
//! blocks promised beyond its use, so that sends do not wait for the disk. A
//! block begins at a hundredth of the limit and follows what is used between
//! two commits, up to a tenth: a slow disk hardly slows anybody down. After a crash
//! all that was promised counts as spent.
//!
//! A spaced limit owes at most the gap of its largest cost, whatever it let
//! through. So it promises without end, once, and again only before a cost
//! that is larger than the disk knows.
//!
//! Buckets that fill quickly need none of this: they start empty.

use super::need::Need;
use super::spec::LimitSpec;
use crate::time::Nanos;

/// Buckets that take longer than this to fill reserve; others start empty.
pub const UNRESERVED_MAX: Nanos = Nanos::from_secs(5);

/// A promise that is not used up.
const ENDLESS: u32 = u32::MAX;

/// How much is promised at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// Blocks between these two, and never more than the capacity ahead.
    Blocks {
        least: u32,
        most: u32,
        capacity: u32,
    },
    /// Everything, for one largest cost.
    Endless,
}

/// Tokens promised on disk against tokens used.
#[derive(Clone, Debug)]
pub struct Reserve {
    size: Size,
    /// The block by recent use.
    block: u32,
    largest_cost: u32,
    /// The largest cost that the promise under way, and the one on disk, name.
    cost_asked: u32,
    cost_on_disk: u32,
    /// Promises on disk, over all time.
    reserved: u64,
    /// Promises on their way to the disk.
    asked: u64,
    used: u64,
    /// What was used when the last promise reached the disk.
    used_at_commit: u64,
}

impl Reserve {
    /// The reserve that a limit needs, if it needs one.
    pub fn of(spec: &LimitSpec) -> Option<Self> {
        let size = match spec {
            LimitSpec::TokenBucket { rate, burst } => {
                (rate.time_for(u64::from(*burst)) > UNRESERVED_MAX).then(|| Size::blocks(*burst))
            }
            LimitSpec::LeakyBucket { .. } => Some(Size::Endless),
            LimitSpec::SlidingWindow { count, .. } | LimitSpec::CalendarWindow { count, .. } => {
                Some(Size::blocks(*count))
            }
            LimitSpec::Concurrency { .. } => None,
        };
        size.map(|size| Self {
            size,
            block: size.fit(0),
            largest_cost: 1,
            cost_asked: 0,
            cost_on_disk: 0,
            reserved: 0,
            asked: 0,
            used: 0,
            used_at_commit: 0,
        })
    }

    /// The reserve of a limit that a fleet shares, if it needs one. Each node
    /// promises for itself, so blocks stay small: all that the nodes promised
    /// counts as used if the ledger loses its counts after they were restarted.
    pub fn of_shared(spec: &LimitSpec) -> Option<Self> {
        let mut reserve = Self::of(spec)?;
        if let Size::Blocks { least, most, .. } = &mut reserve.size {
            *most = *least;
        }
        Some(reserve)
    }

    /// Goes on with the sizes of another reserve. Promises of the other kind
    /// say nothing here.
    pub fn resized(mut self, other: Self) -> Self {
        if (self.size == Size::Endless) != (other.size == Size::Endless) {
            return other;
        }
        self.size = other.size;
        self.block = self.size.fit(self.block);
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

    /// Whether a take is covered. `need` may contain what others are booked
    /// for, which needs no promise yet, so the largest cost is enough.
    pub fn covers(&self, need: Need) -> bool {
        let most = match self.size {
            Size::Blocks { .. } => self.left(),
            Size::Endless => self.left().min(u64::from(self.cost_on_disk)),
        };
        most >= u64::from(self.largest_cost) || need.0 <= most * 1_000
    }

    /// Counts `cost` tokens as used.
    pub fn take(&mut self, cost: u32) {
        self.expect_cost(cost);
        self.used += u64::from(cost);
    }

    /// The block to promise next, if it is time.
    pub fn due(&self) -> Option<u32> {
        let Size::Blocks { capacity, .. } = self.size else {
            let short = !self.covers(Need::whole(self.largest_cost));
            return (short && self.asked == 0).then_some(ENDLESS);
        };
        let block = u64::from(self.block.max(self.largest_cost));
        let most = (2 * block).min(u64::from(capacity)).max(block);
        let unspent = self.unspent();
        (unspent <= block && unspent < most).then(|| tokens(most - unspent + self.overdrawn()))
    }

    /// The block that one message of this cost lacks, and nothing ahead of it.
    pub fn due_for(&self, cost: u32) -> Option<u32> {
        match self.size {
            Size::Endless => self.due(),
            Size::Blocks { .. } => Some(tokens(u64::from(cost) + self.overdrawn())),
        }
    }

    fn overdrawn(&self) -> u64 {
        self.used.saturating_sub(self.reserved + self.asked)
    }

    /// A promise is on its way to the disk.
    pub fn asked(&mut self, block: u32) {
        self.asked += u64::from(block);
        self.cost_asked = self.largest_cost;
    }

    /// A promise is on disk.
    pub fn committed(&mut self, block: u32) {
        // It ran dry while it waited for the disk: the block was too small.
        let dry = self.used > 0 && self.left() < u64::from(self.largest_cost);
        self.asked = self.asked.saturating_sub(u64::from(block));
        self.reserved += u64::from(block);
        self.cost_on_disk = self.cost_on_disk.max(self.cost_asked);
        let used = tokens(self.used - self.used_at_commit);
        self.used_at_commit = self.used;
        let wanted = if dry {
            self.block.saturating_mul(2)
        } else {
            self.block / 2
        };
        self.block = self.size.fit(used.max(wanted));
    }

    /// Tokens promised, or about to be, and not used.
    pub fn unspent(&self) -> u64 {
        (self.reserved + self.asked).saturating_sub(self.used)
    }

    /// The same, but nothing where promises have no end.
    pub fn promised(&self) -> u64 {
        match self.size {
            Size::Blocks { .. } => self.unspent(),
            Size::Endless => 0,
        }
    }

    /// Whether a promise is on its way.
    pub const fn is_asking(&self) -> bool {
        self.asked > 0
    }
}

impl Size {
    fn blocks(capacity: u32) -> Self {
        let least = (capacity / 100).max(1);
        let most = (capacity / 10).max(least);
        Self::Blocks {
            least,
            most,
            capacity,
        }
    }

    /// The block that comes closest to `wanted`.
    fn fit(self, wanted: u32) -> u32 {
        match self {
            Self::Blocks { least, most, .. } => wanted.clamp(least, most),
            Self::Endless => ENDLESS,
        }
    }
}

fn tokens(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
