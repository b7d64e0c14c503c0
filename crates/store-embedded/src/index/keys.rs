//! Idempotency keys: the same submission twice is one message.
//!
//! Only hashes are kept, made with a seed that nobody outside knows. The hash of
//! a live message stands in its slot, so a live key costs four bytes here. Keys
//! of settled messages are remembered for a while; beyond a number the oldest
//! are handed to the record.

use std::collections::{HashMap, VecDeque};

use outflow_core::message::Seq;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::intake::Given;

use super::slots::{Low, NOBODY, Slots};
use crate::journal::entry::OldKey;

/// A place in the table that was used once.
const GONE: Low = Low::MAX;

/// A remembered key and the segment that it stands in.
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    pub key: OldKey,
    pub segment: u32,
}

/// All known keys.
#[derive(Debug)]
pub struct Keys {
    /// Messages on their way to the disk.
    pending: HashMap<u64, Given>,
    /// Live ones: numbers, found by the hash in their slot.
    table: Vec<Low>,
    used: usize,
    live: usize,
    settled: HashMap<u64, (Seq, Wall)>,
    /// Settled ones, in the order in which they are forgotten.
    old: VecDeque<Remembered>,
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
            settled: HashMap::new(),
            old: VecDeque::new(),
            max,
            life,
            is_replaying: true,
        }
    }

    /// The journal was read; up to `count` live keys are about to be added.
    pub fn replayed(&mut self, count: usize) {
        self.is_replaying = false;
        self.used = 0;
        self.live = 0;
        self.table = vec![NOBODY; (count * 4 / 3 + 64).next_power_of_two()];
    }

    /// The message of a key.
    pub fn find(&self, slots: &Slots, hash: u64) -> Option<Given> {
        if let Some(given) = self.pending.get(&hash) {
            return Some(*given);
        }
        let known = |seq, accepted_at| Given {
            seq,
            accepted_at,
            known: true,
        };
        if let Some(&(seq, accepted_at)) = self.settled.get(&hash) {
            return Some(known(seq, accepted_at));
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
    pub fn reserve(&mut self, hash: u64, given: Given) {
        let known = true;
        self.pending.insert(hash, Given { known, ..given });
    }

    /// It did not get there.
    pub fn release(&mut self, hash: u64) {
        self.pending.remove(&hash);
    }

    /// A live message has this key; its slot says so already.
    pub fn add(&mut self, slots: &Slots, hash: u64, seq: Seq) {
        self.pending.remove(&hash);
        // It was free, so whoever had it before has been forgotten.
        self.settled.remove(&hash);
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
        self.remember(Remembered {
            key: OldKey {
                hash: slot.key,
                seq,
                accepted_at: slot.accepted_at.wall(),
                until: now + self.life,
            },
            segment: slot.root.segment(),
        });
    }

    /// Remembers the key of a settled message.
    pub fn remember(&mut self, it: Remembered) {
        let OldKey {
            hash,
            seq,
            accepted_at,
            ..
        } = it.key;
        let before = self.settled.insert(hash, (seq, accepted_at));
        if before.is_none_or(|(of, _)| of != seq) {
            self.old.push_back(it);
        }
    }

    /// Forgets what is old; what is too much goes to `moved`.
    pub fn forget(&mut self, now: Wall, moved: &mut Vec<OldKey>) {
        while let Some(oldest) = self.old.front() {
            let is_over = oldest.key.until <= now;
            if !is_over && self.old.len() <= self.max {
                return;
            }
            let Some(Remembered { key, .. }) = self.old.pop_front() else {
                return;
            };
            let of = self.settled.get(&key.hash).map(|(seq, _)| *seq);
            if of != Some(key.seq) {
                continue;
            }
            self.settled.remove(&key.hash);
            if !is_over {
                moved.push(key);
            }
        }
    }

    /// Keys that stand in segments up to this one only, at most `max`.
    pub fn standing_in(&self, through: u32, max: usize) -> Vec<OldKey> {
        let in_old = self.old.iter().filter(|it| it.segment <= through);
        in_old.take(max).map(|it| it.key).collect()
    }

    /// These keys were written again.
    pub fn restate(&mut self, keys: &[OldKey], segment: u32) {
        let mut keys: Vec<u64> = keys.iter().map(|key| key.hash).collect();
        keys.sort_unstable();
        for it in &mut self.old {
            if keys.binary_search(&it.key.hash).is_ok() {
                it.segment = segment;
            }
        }
    }
}
