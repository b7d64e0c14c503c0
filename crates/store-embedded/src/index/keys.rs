//! Idempotency keys: the same submission twice is one message.
//!
//! Only hashes are kept, made with a seed that nobody outside knows. The hash of
//! a live message stands in its slot, so a live key costs four bytes here. Keys
//! of settled messages are remembered for a while (see `remembered`); beyond a
//! number the oldest are handed to the record.

use std::collections::HashMap;

use outflow_core::message::Seq;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::intake::Given;

use super::remembered::Remembered;
use super::slots::{Low, NOBODY, Slots};
use crate::journal::entry::OldKey;

/// A place in the table that was used once.
const GONE: Low = Low::MAX;

/// All known keys.
#[derive(Debug)]
pub struct Keys {
    /// Messages on their way to the disk, and in which generation.
    pending: HashMap<u64, (Given, u64)>,
    /// Live ones: numbers, found by the hash in their slot.
    table: Vec<Low>,
    used: usize,
    live: usize,
    pub remembered: Remembered,
    max: usize,
    life: Nanos,
    /// The journal is being read: live keys are put into the table afterwards,
    /// when it is known how many there are.
    is_replaying: bool,
}

impl Keys {
    pub fn new(max: usize, life: Nanos) -> Self {
        Self {
            pending: HashMap::new(),
            table: Vec::new(),
            used: 0,
            live: 0,
            remembered: Remembered::default(),
            max,
            life,
            is_replaying: true,
        }
    }

    /// The journal was read; up to `count` live keys are about to be added.
    pub fn replayed(&mut self, count: usize) {
        self.is_replaying = false;
        self.remembered.sort();
        self.used = 0;
        self.live = 0;
        self.table = vec![NOBODY; (count * 4 / 3 + 64).next_power_of_two()];
    }

    /// The message of a key. Not one of an earlier generation that is still on its
    /// way: it will not get there, though nobody has said so yet.
    pub fn find(&self, slots: &Slots, hash: u64, generation: u64) -> Option<Given> {
        if let Some((given, given_in)) = self.pending.get(&hash)
            && *given_in >= generation
        {
            return Some(*given);
        }
        let known = |seq, accepted_at| Given {
            seq,
            accepted_at,
            known: true,
        };
        if let Some(key) = self.remembered.find(hash) {
            return Some(known(key.seq, key.accepted_at));
        }
        let (_, seq) = self.probe(slots, hash)?;
        let slot = slots.get(seq)?;
        Some(known(seq, slot.accepted_at.wall()))
    }

    fn probe(&self, slots: &Slots, hash: u64) -> Option<(usize, Seq)> {
        let mask = self.table.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            match *self.table.get(at)? {
                NOBODY => return None,
                GONE => {}
                low => {
                    let seq = slots.find_low(low);
                    let key = seq.and_then(|seq| slots.get(seq)).map(|slot| slot.key);
                    if key == Some(hash) {
                        return Some((at, seq?));
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// A message with this key is on its way to the disk.
    pub fn reserve(&mut self, hash: u64, given: Given, generation: u64) {
        let known = true;
        let given = Given { known, ..given };
        self.pending.insert(hash, (given, generation));
    }

    /// It did not get there.
    pub fn release(&mut self, hash: u64, seq: Seq) {
        let is_it = |(given, _): &(Given, u64)| given.seq == seq;
        if self.pending.get(&hash).is_some_and(is_it) {
            self.pending.remove(&hash);
        }
    }

    /// A live message has this key; its slot says so already.
    pub fn add(&mut self, slots: &Slots, hash: u64, seq: Seq) {
        self.pending.remove(&hash);
        // It was free, so whoever had it before has been forgotten.
        self.remembered.replace(hash);
        if self.is_replaying {
            return;
        }
        if (self.used + 1) * 4 > self.table.len() * 3 {
            self.grow(slots);
        }
        self.put(hash, seq.0 as Low);
        self.live += 1;
    }

    fn put(&mut self, hash: u64, low: Low) {
        let mask = self.table.len().saturating_sub(1);
        let mut at = hash as usize & mask;
        while let Some(place) = self.table.get_mut(at) {
            if *place == NOBODY {
                *place = low;
                self.used += 1;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self, slots: &Slots) {
        let size = (self.live * 2 + 64).next_power_of_two();
        let old = std::mem::replace(&mut self.table, vec![NOBODY; size]);
        self.used = 0;
        for low in old.into_iter().filter(|low| ![NOBODY, GONE].contains(low)) {
            let slot = slots.find_low(low).and_then(|seq| slots.get(seq));
            if let Some(slot) = slot {
                self.put(slot.key, low);
            }
        }
    }

    /// A message is done with; its slot is still there. Its key is remembered.
    pub fn settle(&mut self, slots: &Slots, now: Wall, seq: Seq) {
        let Some(slot) = slots.get(seq).filter(|slot| slot.key != 0) else {
            return;
        };
        if !self.is_replaying {
            let Some((at, of)) = self.probe(slots, slot.key) else {
                return;
            };
            let Some(place) = self.table.get_mut(at).filter(|_| of == seq) else {
                return;
            };
            *place = GONE;
            self.live -= 1;
        }
        let key = OldKey {
            hash: slot.key,
            seq,
            accepted_at: slot.accepted_at.wall(),
            until: now + self.life,
        };
        self.remembered.add(key, slot.root.segment());
    }

    /// Forgets what is old; what is too much goes to `moved`.
    pub fn forget(&mut self, now: Wall, moved: &mut Vec<OldKey>) {
        self.remembered.forget(now, self.max, moved);
    }
}
