//! A queue of messages, linked through their slots: any member leaves in one
//! step.

use outflow_core::message::Seq;

use super::slots::{Low, NOBODY, Slots};

/// Members from first to last.
#[derive(Clone, Copy, Debug, Default)]
pub struct List {
    first: Low,
    last: Low,
    len: u32,
    ordinals: u32,
}

impl List {
    pub const fn len(&self) -> u32 {
        self.len
    }

    pub fn first(&self, slots: &Slots) -> Option<Seq> {
        slots.find_low(self.first)
    }

    pub fn push_back(&mut self, slots: &mut Slots, seq: Seq) {
        let last = std::mem::replace(&mut self.last, seq.0 as Low);
        if let Some(slot) = slots.get_mut(seq) {
            slot.prev = last;
            slot.next = NOBODY;
            slot.ordinal = self.ordinals;
        }
        let last = slots.find_low(last).and_then(|last| slots.get_mut(last));
        match last {
            Some(last) => last.next = seq.0 as Low,
            None => self.first = seq.0 as Low,
        }
        self.ordinals = self.ordinals.wrapping_add(1);
        self.len += 1;
    }

    pub fn remove(&mut self, slots: &mut Slots, seq: Seq) {
        let Some(slot) = slots.get_mut(seq) else {
            return;
        };
        let (prev, next) = (slot.prev, slot.next);
        (slot.prev, slot.next) = (NOBODY, NOBODY);
        match slots.find_low(prev).and_then(|prev| slots.get_mut(prev)) {
            Some(prev) => prev.next = next,
            None => self.first = next,
        }
        match slots.find_low(next).and_then(|next| slots.get_mut(next)) {
            Some(next) => next.prev = prev,
            None => self.last = prev,
        }
        self.len -= 1;
    }

    /// How many members stand before this one. Those that left from the middle
    /// still count: an upper bound.
    pub fn before(&self, slots: &Slots, ordinal: u32) -> u64 {
        let first = self.first(slots).and_then(|first| slots.get(first));
        let first = first.map_or(ordinal, |first| first.ordinal);
        u64::from(ordinal.wrapping_sub(first)).min(u64::from(self.len))
    }

    /// Its members, first to last.
    pub fn iter(self, slots: &Slots) -> impl Iterator<Item = Seq> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let seq = slots.find_low(at)?;
            at = slots.get(seq)?.next;
            Some(seq)
        })
    }
}
