//! Slots in a ring: the newest overwrites the oldest.

use crate::time::{Mono, Nanos};

/// So many slots of so many counters.
#[derive(Clone, Debug)]
pub(super) struct Ring<const SLOTS: usize, const COUNTERS: usize> {
    slots: [[u32; COUNTERS]; SLOTS],
    /// The number of the newest slot, counted from the beginning of time.
    newest: u64,
    width: Nanos,
}

impl<const SLOTS: usize, const COUNTERS: usize> Ring<SLOTS, COUNTERS> {
    pub(super) const fn new(width: Nanos) -> Self {
        Self {
            slots: [[0; COUNTERS]; SLOTS],
            newest: 0,
            width,
        }
    }

    const fn number(&self, now: Mono) -> u64 {
        now.0 / self.width.0
    }

    /// Adds `count` to the counter at `place`, if the ring counts that.
    pub(super) fn add(&mut self, now: Mono, place: usize, count: u32) {
        // A clock that stands a little behind counts in the newest slot.
        let number = self.number(now).max(self.newest);
        let over = (number - self.newest).min(SLOTS as u64);
        for step in 1..=over {
            let gone = number - over + step;
            if let Some(slot) = self.slots.get_mut((gone % SLOTS as u64) as usize) {
                *slot = [0; COUNTERS];
            }
        }
        self.newest = number;
        let slot = self.slots.get_mut((number % SLOTS as u64) as usize);
        if let Some(counter) = slot.and_then(|slot| slot.get_mut(place)) {
            *counter = counter.saturating_add(count);
        }
    }

    /// What the slot of this time counted, if it is kept.
    pub(super) fn sum_of(&self, at: Mono, place: usize) -> u64 {
        let number = self.number(at);
        let oldest = (self.newest + 1).saturating_sub(SLOTS as u64);
        if number < oldest || number > self.newest {
            return 0;
        }
        let slot = self.slots.get((number % SLOTS as u64) as usize);
        slot.and_then(|slot| slot.get(place))
            .map_or(0, |count| u64::from(*count))
    }

    /// The sum over the slot of `now` and those before it, `slots` in all.
    pub(super) fn sum(&self, now: Mono, place: usize, slots: u64) -> u64 {
        let number = self.number(now).max(self.newest);
        let first = (number + 1).saturating_sub(slots.min(SLOTS as u64));
        // What lies before the oldest slot that is kept was overwritten.
        let kept = (self.newest + 1).saturating_sub(SLOTS as u64);
        (first.max(kept)..=self.newest)
            .filter_map(|number| self.slots.get((number % SLOTS as u64) as usize))
            .filter_map(|slot| slot.get(place))
            .map(|count| u64::from(*count))
            .sum()
    }
}
