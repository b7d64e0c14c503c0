//! A queue of messages, linked through the slab: any member leaves in one step.

use super::slab::{Slab, Slot};

/// Members from first to last.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: Slot,
    last: Slot,
    len: u32,
    ordinals: u64,
}

impl Default for List {
    fn default() -> Self {
        Self {
            first: Slot::NONE,
            last: Slot::NONE,
            len: 0,
            ordinals: 0,
        }
    }
}

impl List {
    pub const fn len(&self) -> u32 {
        self.len
    }

    pub fn first(&self) -> Option<Slot> {
        Some(self.first).filter(|slot| *slot != Slot::NONE)
    }

    pub fn push_back(&mut self, slab: &mut Slab, slot: Slot) {
        let last = std::mem::replace(&mut self.last, slot);
        if let Some(entry) = slab.get_mut(slot) {
            entry.prev = last;
            entry.next = Slot::NONE;
            entry.ordinal = self.ordinals;
        }
        match slab.get_mut(last) {
            Some(last) => last.next = slot,
            None => self.first = slot,
        }
        self.ordinals += 1;
        self.len += 1;
    }

    pub fn remove(&mut self, slab: &mut Slab, slot: Slot) {
        let Some(entry) = slab.get_mut(slot) else {
            return;
        };
        let (prev, next) = (entry.prev, entry.next);
        (entry.prev, entry.next) = (Slot::NONE, Slot::NONE);
        match slab.get_mut(prev) {
            Some(prev) => prev.next = next,
            None => self.first = next,
        }
        match slab.get_mut(next) {
            Some(next) => next.prev = prev,
            None => self.last = prev,
        }
        self.len -= 1;
    }

    /// How many members stand before this one. Those that left from the middle
    /// still count: an upper bound.
    pub fn before(&self, slab: &Slab, ordinal: u64) -> u64 {
        let first = slab.get(self.first).map_or(ordinal, |first| first.ordinal);
        ordinal.saturating_sub(first)
    }

    /// Its members, first to last.
    pub fn iter(self, slab: &Slab) -> impl Iterator<Item = Slot> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let slot = at;
            at = slab.get(slot)?.next;
            Some(slot)
        })
    }
}
