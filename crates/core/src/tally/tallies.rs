//! The counts of all keys, which are bounded in number.
//!
//! When the table is full, a new key takes the place of the one that was silent
//! for longest, if that was silent for a while; else it is counted under
//! "other", so that nobody can fill the memory with names.
//!
//! Who counts often keeps a [`TallyRef`], so that no name is compared on the way
//! of a message.

use std::borrow::Borrow;
use std::cmp::Ordering;

use super::counter::Counter;
use super::key::Tally;
use super::window::Window;
use crate::time::{Mono, Nanos};

/// A key that was silent for so long may make room.
const SILENT: Nanos = Window::QuarterHour.length();

/// Where a key is counted, as long as it was not forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyRef {
    place: u32,
    generation: u32,
}

#[derive(Clone, Debug)]
struct Kept<K> {
    key: K,
    tally: Box<Tally>,
    seen: Mono,
    /// How often the place was given to another key.
    generation: u32,
}

/// The counts of all keys.
#[derive(Clone, Debug)]
pub struct Tallies<K> {
    most: usize,
    kept: Vec<Kept<K>>,
    /// Where they are kept, in order of their keys.
    order: Vec<u32>,
    other: Box<Tally>,
    /// No key is silent for long enough before this time.
    full_until: Mono,
}

impl<K: Ord + Clone> Tallies<K> {
    /// Counts for at most `most` keys.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            kept: Vec::new(),
            order: Vec::new(),
            other: Box::default(),
            full_until: Mono(0),
        }
    }

    /// So many more of `counter` for `key`.
    pub fn add(&mut self, now: Mono, key: &K, counter: Counter, count: u32) {
        let place = self.place_of(now, |known| known.cmp(key), || key.clone());
        self.at(now, place).add(now, counter, count);
    }

    /// Whether no other key finds a place for a while.
    pub fn is_full(&self, now: Mono) -> bool {
        now < self.full_until && self.kept.len() >= self.most
    }

    /// Where `key` is counted; none if there is no room for it now.
    pub fn find(&mut self, now: Mono, key: &K) -> Option<TallyRef> {
        self.find_by(now, |known| known.cmp(key), || key.clone())
    }

    /// Where the key is counted to which `compare` compares others; it is made
    /// only if it is new.
    pub fn find_by(
        &mut self,
        now: Mono,
        compare: impl Fn(&K) -> Ordering,
        make: impl FnOnce() -> K,
    ) -> Option<TallyRef> {
        let place = self.place_of(now, compare, make)?;
        let generation = self.kept.get(place as usize)?.generation;
        Some(TallyRef { place, generation })
    }

    /// One more of each of these at `place`. Whether it still counts the key
    /// that it was found for; if not, nothing is counted.
    pub fn add_each(&mut self, now: Mono, place: TallyRef, counters: &[Counter]) -> bool {
        match self.kept.get_mut(place.place as usize) {
            Some(kept) if kept.generation == place.generation => {
                kept.seen = now;
                kept.tally.add_each(now, counters);
                true
            }
            _ => false,
        }
    }

    /// One more of each of these for a key without a place.
    pub fn add_other(&mut self, now: Mono, counters: &[Counter]) {
        self.other.add_each(now, counters);
    }

    /// The counts of `key`, if it is known.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&Tally>
    where
        K: Borrow<Q>,
    {
        let at = self.search(|known| known.borrow().cmp(key)).ok()?;
        let place = *self.order.get(at)?;
        self.kept.get(place as usize).map(|kept| &*kept.tally)
    }

    /// The key that is counted at `place`, as long as it is.
    pub fn key_at(&self, place: TallyRef) -> Option<&K> {
        let kept = self.kept.get(place.place as usize)?;
        (kept.generation == place.generation).then_some(&kept.key)
    }

    /// The counts of those for which there was no room.
    pub fn other(&self) -> &Tally {
        &self.other
    }

    /// All keys and their counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &Tally)> {
        let places = self.order.iter();
        let kept = places.filter_map(|&place| self.kept.get(place as usize));
        kept.map(|kept| (&kept.key, &*kept.tally))
    }

    /// How many keys are known.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn at(&mut self, now: Mono, place: Option<u32>) -> &mut Tally {
        match place.and_then(|place| self.kept.get_mut(place as usize)) {
            Some(kept) => {
                kept.seen = now;
                &mut kept.tally
            }
            None => &mut self.other,
        }
    }

    /// Where in the order a key stands, or would.
    fn search(&self, compare: impl Fn(&K) -> Ordering) -> Result<usize, usize> {
        self.order.binary_search_by(|place| {
            let kept = self.kept.get(*place as usize);
            kept.map_or(Ordering::Less, |kept| compare(&kept.key))
        })
    }

    /// The place of a key, made if there is room.
    fn place_of(
        &mut self,
        now: Mono,
        compare: impl Fn(&K) -> Ordering,
        make: impl FnOnce() -> K,
    ) -> Option<u32> {
        let mut at = match self.search(&compare) {
            Ok(at) => return self.order.get(at).copied(),
            Err(at) => at,
        };
        let is_new = self.kept.len() < self.most;
        let place = match is_new {
            true => self.kept.len(),
            false => self.silent(now)?,
        };
        let kept = Kept {
            key: make(),
            tally: Box::default(),
            seen: now,
            generation: 0,
        };
        if is_new {
            self.kept.push(kept);
        } else {
            let old = self.kept.get(place)?;
            let generation = old.generation.wrapping_add(1);
            let old_at = self.search(|known| known.cmp(&old.key));
            if let Ok(old_at) = old_at {
                self.order.remove(old_at);
                at -= usize::from(old_at < at);
            }
            *self.kept.get_mut(place)? = Kept { generation, ..kept };
        }
        let place = u32::try_from(place).ok()?;
        self.order.insert(at, place);
        Some(place)
    }

    /// The place that was silent for longest, if that was long enough. All are
    /// looked at once in a while only: while all are busy, none becomes silent
    /// before the first of them could.
    fn silent(&mut self, now: Mono) -> Option<usize> {
        if now < self.full_until {
            return None;
        }
        let kept = self.kept.iter().enumerate();
        let (place, oldest) = kept.min_by_key(|(_, kept)| kept.seen)?;
        if now.since(oldest.seen) > SILENT {
            return Some(place);
        }
        self.full_until = oldest.seen + SILENT;
        None
    }
}
