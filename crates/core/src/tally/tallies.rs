//! The counts of all keys, which are bounded in number.
//!
//! When the table is full, a new key takes the place of the one that was silent
//! for longest, if that was silent for a while; else it is counted under
//! "other", so that nobody can fill the memory with names.

use std::collections::{BTreeMap, BTreeSet};

use super::counter::Counter;
use super::key::Tally;
use super::window::Window;
use crate::time::{Mono, Nanos};

/// A key that was silent for so long may make room.
const SILENT: Nanos = Window::QuarterHour.length();
/// Last times are kept by the minute, so that a busy key seldom moves.
const GRAIN: u64 = Nanos::from_secs(60).0;

#[derive(Clone, Debug)]
struct Kept {
    tally: Box<Tally>,
    seen: u64,
}

/// The counts of all keys.
#[derive(Clone, Debug)]
pub struct Tallies<K> {
    most: usize,
    keys: BTreeMap<K, Kept>,
    by_age: BTreeSet<(u64, K)>,
    other: Box<Tally>,
}

impl<K: Ord + Clone> Tallies<K> {
    /// Counts for at most `most` keys.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            keys: BTreeMap::new(),
            by_age: BTreeSet::new(),
            other: Box::default(),
        }
    }

    /// So many more of `counter` for `key`.
    pub fn add(&mut self, now: Mono, key: &K, counter: Counter, count: u32) {
        self.of(now, key).add(now, counter, count);
    }

    /// The counts of `key`, if it is known.
    pub fn get(&self, key: &K) -> Option<&Tally> {
        self.keys.get(key).map(|kept| &*kept.tally)
    }

    /// The counts of those for which there was no room.
    pub fn other(&self) -> &Tally {
        &self.other
    }

    /// All keys and their counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &Tally)> {
        self.keys.iter().map(|(key, kept)| (key, &*kept.tally))
    }

    /// How many keys are known.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn of(&mut self, now: Mono, key: &K) -> &mut Tally {
        let seen = now.0 / GRAIN;
        if !self.keys.contains_key(key) && !self.make_room(now) {
            return &mut self.other;
        }
        let kept = self.keys.entry(key.clone()).or_insert_with(|| {
            self.by_age.insert((seen, key.clone()));
            Kept {
                tally: Box::default(),
                seen,
            }
        });
        if kept.seen != seen {
            self.by_age.remove(&(kept.seen, key.clone()));
            self.by_age.insert((seen, key.clone()));
            kept.seen = seen;
        }
        &mut kept.tally
    }

    /// Whether there is room for another key now.
    fn make_room(&mut self, now: Mono) -> bool {
        if self.keys.len() < self.most {
            return true;
        }
        let silent_since = now.0.saturating_sub(SILENT.0) / GRAIN;
        let oldest = self.by_age.first();
        let Some(oldest) = oldest.filter(|(seen, _)| *seen < silent_since).cloned() else {
            return false;
        };
        self.by_age.remove(&oldest);
        self.keys.remove(&oldest.1);
        true
    }
}
