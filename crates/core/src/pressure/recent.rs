//! What was sent in the last minute, at the price of one addition per send.
//!
//! A minute is counted in slots of a sixteenth of a second, and never more than a
//! minute is counted: up to one slot less. So who is held to a count from here
//! is never held to more than was really sent, and gives up 0.1 % at most.

use crate::time::{Mono, Nanos};

const SLOT: Nanos = Nanos::from_micros(62_500);
const SLOTS: usize = 960;

/// A count over the last minute.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// None until something was sent.
    slots: Option<Box<[u16; SLOTS]>>,
    /// The number of the newest slot, counted from the clock's beginning.
    newest: u64,
}

const fn slot_of(at: Mono) -> u64 {
    at.0 / SLOT.0
}

fn place_of(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

impl Recent {
    /// So many were sent now. Time does not go back.
    pub fn add(&mut self, now: Mono, count: u32) {
        let slot = slot_of(now).max(self.newest);
        let slots = self.slots.get_or_insert_with(|| Box::new([0; SLOTS]));
        if slot > self.newest {
            let passed = (slot - self.newest).min(SLOTS as u64);
            for old in slot + 1 - passed..=slot {
                if let Some(count) = slots.get_mut(place_of(old)) {
                    *count = 0;
                }
            }
            self.newest = slot;
        }
        if let Some(sum) = slots.get_mut(place_of(slot)) {
            *sum = sum.saturating_add(u16::try_from(count).unwrap_or(u16::MAX));
        }
    }

    /// How many were sent in the minute up to `at`, if nothing was sent since.
    pub fn count(&self, at: Mono) -> u64 {
        self.within(at).map(|(_, count)| u64::from(count)).sum()
    }

    /// For how long of the minute up to `at` something was sent: from the first
    /// send on. Who began lately is judged by the rate since then.
    pub fn span(&self, at: Mono) -> Nanos {
        let mut sent = self.within(at).filter(|&(_, count)| count > 0);
        let first = sent
            .next()
            .map(|(slot, _)| Mono(slot.saturating_mul(SLOT.0)));
        first.map_or(Nanos::ZERO, |first| at.since(first))
    }

    /// The slots that are still within the minute up to `at`, oldest first.
    fn within(&self, at: Mono) -> impl Iterator<Item = (u64, u16)> {
        let slots = self.slots.as_ref();
        let passed = slot_of(at).saturating_sub(self.newest);
        let kept = (SLOTS as u64).saturating_sub(passed);
        let first = (self.newest + 1).saturating_sub(kept);
        let numbers = first..=self.newest;
        numbers.filter_map(move |slot| Some((slot, *slots?.get(place_of(slot))?)))
    }
}
