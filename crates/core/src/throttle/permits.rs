//! Slots that are held, until they are given back or their time is over.

use std::collections::BTreeSet;

use super::request::Permit;
use super::slab::Slab;
use crate::time::Mono;

/// Slots of limits: which, and how many.
pub(super) type Slots = Vec<(u32, u32)>;

/// All permits that are held.
#[derive(Debug, Default)]
pub(super) struct Permits {
    held: Slab<(Slots, Mono)>,
    ends: BTreeSet<(Mono, u32)>,
}

impl Permits {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Holds slots until `end`.
    pub fn hold(&mut self, slots: Slots, end: Mono) -> Permit {
        let (index, generation) = self.held.insert((slots, end));
        self.ends.insert((end, index));
        Permit { index, generation }
    }

    /// Gives a permit back: its slots, if it was still held.
    pub fn release(&mut self, permit: Permit) -> Option<Slots> {
        if !self.held.is(permit.index, permit.generation) {
            return None;
        }
        let (slots, end) = self.held.remove(permit.index)?;
        self.ends.remove(&(end, permit.index));
        Some(slots)
    }

    /// The slots of one permit whose time is over.
    pub fn ended(&mut self, now: Mono) -> Option<Slots> {
        let (end, index) = self.ends.first().copied()?;
        if end > now {
            return None;
        }
        self.ends.remove(&(end, index));
        self.held.remove(index).map(|(slots, _)| slots)
    }

    /// When the time of the next one is over.
    pub fn next_end(&self) -> Option<Mono> {
        self.ends.first().map(|(end, _)| *end)
    }
}
