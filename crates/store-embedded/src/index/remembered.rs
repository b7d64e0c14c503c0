//! Idempotency keys of messages that are done with, and the envelope segments
//! that they stand in.
//!
//! A segment lives as long as a key stands in it only, so keys count as living
//! bytes of their segment, and are written again like messages when it goes.
//! Every key has an ordinal, by which it is found in one step; each segment has
//! a list of the ordinals of its keys, from which they are taken without a look
//! at all others. A list may have ordinals of keys that are forgotten or stand
//! elsewhere by now: who takes one checks it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use outflow_core::time::Wall;

use crate::journal::entry::OldKey;

/// Bytes that a key takes when it is written again.
const KEY_BYTES: u64 = 32;
/// No segment has this number: the key is to be written nowhere.
const NOWHERE: u32 = 0;

/// The number of a key, in the order in which they came, modulo 2^32.
type Ordinal = u32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: OldKey,
    segment: u32,
}

/// The keys that stand in one segment.
#[derive(Debug, Default)]
struct Standing {
    count: u64,
    ordinals: Vec<Ordinal>,
}

/// Keys of settled messages.
#[derive(Debug, Default)]
pub struct Remembered {
    by_hash: HashMap<u64, Ordinal>,
    /// In the order in which they are forgotten.
    entries: VecDeque<Entry>,
    /// The ordinal of the first.
    first: Ordinal,
    segments: BTreeMap<u32, Standing>,
}

impl Remembered {
    fn get(&self, ordinal: Ordinal) -> Option<&Entry> {
        self.entries.get(ordinal.wrapping_sub(self.first) as usize)
    }

    /// The ordinal of a key, if it was not replaced by that of another message.
    fn ordinal(&self, key: &OldKey) -> Option<Ordinal> {
        let ordinal = *self.by_hash.get(&key.hash)?;
        let entry = self.get(ordinal)?;
        (entry.key.seq == key.seq).then_some(ordinal)
    }

    /// The message of a key.
    pub fn find(&self, hash: u64) -> Option<&OldKey> {
        let entry = self.get(*self.by_hash.get(&hash)?)?;
        Some(&entry.key)
    }

    /// Remembers a key that stands in this segment, or in this one too.
    pub fn add(&mut self, key: OldKey, segment: u32) {
        if let Some(ordinal) = self.ordinal(&key) {
            return self.stand(ordinal, segment);
        }
        let ordinal = self.first.wrapping_add(self.entries.len() as Ordinal);
        self.replace(key.hash);
        self.by_hash.insert(key.hash, ordinal);
        let entry = Entry {
            key,
            segment: NOWHERE,
        };
        self.entries.push_back(entry);
        self.stand(ordinal, segment);
    }

    /// Another message has this key now: the one before is not written again.
    pub fn replace(&mut self, hash: u64) {
        if let Some(ordinal) = self.by_hash.remove(&hash) {
            self.stand(ordinal, NOWHERE);
        }
    }

    fn stand(&mut self, ordinal: Ordinal, segment: u32) {
        let at = ordinal.wrapping_sub(self.first) as usize;
        let Some(entry) = self.entries.get_mut(at) else {
            return;
        };
        let before = std::mem::replace(&mut entry.segment, segment);
        if before == segment {
            return;
        }
        self.leave(before);
        if segment != NOWHERE {
            let standing = self.segments.entry(segment).or_default();
            standing.count += 1;
            standing.ordinals.push(ordinal);
        }
    }

    fn leave(&mut self, segment: u32) {
        let Some(standing) = self.segments.get_mut(&segment) else {
            return;
        };
        standing.count = standing.count.saturating_sub(1);
        if standing.count == 0 {
            self.segments.remove(&segment);
        }
    }

    /// Forgets keys whose time is over; what is more than `max` goes to `moved`.
    pub fn forget(&mut self, now: Wall, max: usize, moved: &mut Vec<OldKey>) {
        while let Some(Entry { key, segment }) = self.entries.front().copied() {
            let is_over = key.until <= now;
            if !is_over && self.entries.len() <= max {
                return;
            }
            let is_meant = self.by_hash.get(&key.hash) == Some(&self.first);
            self.entries.pop_front();
            self.first = self.first.wrapping_add(1);
            self.leave(segment);
            if is_meant {
                self.by_hash.remove(&key.hash);
                if !is_over {
                    moved.push(key);
                }
            }
        }
    }

    /// Bytes of all keys, as they would be written again.
    pub fn bytes(&self) -> u64 {
        self.entries.len() as u64 * KEY_BYTES
    }

    /// Bytes of the keys that stand in a segment.
    pub fn bytes_in(&self, segment: u32) -> u64 {
        let standing = self.segments.get(&segment);
        standing.map_or(0, |standing| standing.count * KEY_BYTES)
    }

    /// Whether keys stand in segments up to this one only.
    pub fn any_in(&self, through: u32) -> bool {
        self.segments.range(..=through).next().is_some()
    }

    /// Takes up to `max` keys that stand in segments up to this one only. They
    /// are written again ([`Self::restated`]) or not ([`Self::not_restated`]).
    pub fn take_in(&mut self, through: u32, max: usize) -> Vec<OldKey> {
        let mut taken = Vec::new();
        while taken.len() < max {
            let Some((&segment, standing)) = self.segments.range_mut(..=through).next() else {
                break;
            };
            let Some(ordinal) = standing.ordinals.pop() else {
                // The others were taken before and are on their way.
                break;
            };
            let entry = self.get(ordinal).filter(|it| it.segment == segment);
            taken.extend(entry.map(|entry| entry.key));
        }
        taken
    }

    /// Keys that were taken stand in this segment now.
    pub fn restated(&mut self, keys: &[OldKey], segment: u32) {
        for key in keys {
            if let Some(ordinal) = self.ordinal(key) {
                self.stand(ordinal, segment);
            }
        }
    }

    /// Keys that were taken still stand where they stood.
    pub fn not_restated(&mut self, keys: &[OldKey]) {
        for key in keys {
            let Some(ordinal) = self.ordinal(key) else {
                continue;
            };
            let segment = self.get(ordinal).map_or(NOWHERE, |entry| entry.segment);
            if let Some(standing) = self.segments.get_mut(&segment) {
                standing.ordinals.push(ordinal);
            }
        }
    }

    /// After a start: puts them into the order in which they are forgotten.
    pub fn sort(&mut self) {
        if self.entries.iter().is_sorted_by_key(|it| it.key.until) {
            return;
        }
        let before = std::mem::take(self);
        let mut entries: Vec<Entry> = before.entries.into();
        entries.retain(|it| it.segment != NOWHERE);
        entries.sort_by_key(|it| it.key.until);
        for Entry { key, segment } in entries {
            self.add(key, segment);
        }
    }
}
