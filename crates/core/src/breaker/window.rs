//! How many of how many, lately.

use crate::time::{Mono, Nanos};

const SLOTS: usize = 6;

/// Counts over six slots of a given length, the newest of which is running.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lately {
    slots: [(u32, u32); SLOTS],
    newest: u64,
}

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// So many ...
    pub part: u64,
    /// ... of so many.
    pub whole: u64,
}

impl Share {
    /// Whether it is above so many thousandths.
    pub fn is_above(self, permille: u32) -> bool {
        u128::from(self.part) * 1_000 > u128::from(permille) * u128::from(self.whole)
    }

    /// Whether it is so many thousandths at least.
    pub fn is_at_least(self, permille: u32) -> bool {
        u128::from(self.part) * 1_000 >= u128::from(permille) * u128::from(self.whole)
    }
}

impl Lately {
    /// One more, which counts or not.
    pub fn add(&mut self, now: Mono, slot: Nanos, counts: bool) {
        self.advance(now, slot);
        let place = (self.newest % SLOTS as u64) as usize;
        if let Some((part, whole)) = self.slots.get_mut(place) {
            *part = part.saturating_add(u32::from(counts));
            *whole = whole.saturating_add(1);
        }
    }

    /// So many more that do not count.
    pub fn add_fine(&mut self, now: Mono, slot: Nanos, count: u64) {
        self.advance(now, slot);
        let place = (self.newest % SLOTS as u64) as usize;
        if let Some((_, whole)) = self.slots.get_mut(place) {
            *whole = whole.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// How many of how many.
    pub fn share(&mut self, now: Mono, slot: Nanos) -> Share {
        self.advance(now, slot);
        let mut share = Share::default();
        for (part, whole) in self.slots {
            share.part += u64::from(part);
            share.whole += u64::from(whole);
        }
        share
    }

    fn advance(&mut self, now: Mono, slot: Nanos) {
        let number = now.0 / slot.0.max(1);
        let passed = number.saturating_sub(self.newest).min(SLOTS as u64);
        for old in (number + 1).saturating_sub(passed)..=number {
            if passed > 0
                && let Some(slot) = self.slots.get_mut((old % SLOTS as u64) as usize)
            {
                *slot = (0, 0);
            }
        }
        self.newest = self.newest.max(number);
    }
}
