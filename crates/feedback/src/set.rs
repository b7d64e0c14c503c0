//! Everybody who is suppressed, in memory: 16 bytes each, and what a hash table
//! leaves empty.
//!
//! The node looks here before it sends, so looking must not wait: the table is
//! in parts, and whoever changes one holds it for as long as that takes, which
//! is a few milliseconds when a part grows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use outflow_core::suppression::{Reason, Reasons};
use outflow_core::time::Wall;

/// Parts of the table: with ten million entries a part grows in about 3 ms.
const PARTS: usize = 256;

/// What is kept of one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Why he is suppressed.
    pub reasons: Reasons,
    /// Since when, in seconds since 1970.
    since_s: u32,
}

impl Kept {
    /// Since when.
    pub fn since(self) -> Wall {
        Wall(i64::from(self.since_s) * 1_000_000_000)
    }
}

/// Everybody who is suppressed.
pub struct Set {
    parts: Vec<RwLock<HashMap<u64, Kept>>>,
    len: AtomicUsize,
}

impl Default for Set {
    fn default() -> Self {
        Self {
            parts: (0..PARTS).map(|_| RwLock::default()).collect(),
            len: AtomicUsize::new(0),
        }
    }
}

impl Set {
    fn part(&self, place: u64) -> Option<&RwLock<HashMap<u64, Kept>>> {
        self.parts.get((place >> 32) as usize % PARTS)
    }

    /// What is kept of the recipient at this place.
    pub fn get(&self, place: u64) -> Option<Kept> {
        // Most servers look here for each message and have nobody.
        if self.is_empty() {
            return None;
        }
        let part = self.part(place)?.read();
        let part = part.unwrap_or_else(PoisonError::into_inner);
        part.get(&place).copied()
    }

    /// One more reason.
    pub fn insert(&self, place: u64, reason: Reason, since: Wall) {
        let Some(part) = self.part(place) else { return };
        let since_s = u32::try_from(since.0.div_euclid(1_000_000_000)).unwrap_or(0);
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        let kept = part.entry(place).or_insert_with(|| {
            self.len.fetch_add(1, Ordering::Release);
            Kept {
                reasons: Reasons::default(),
                since_s,
            }
        });
        if !kept.reasons.has(reason) {
            kept.reasons = kept.reasons.with(reason);
            kept.since_s = since_s;
        }
    }

    /// One reason less.
    pub fn remove(&self, place: u64, reason: Reason) {
        let Some(part) = self.part(place) else { return };
        let mut part = part.write().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = part.get_mut(&place) else {
            return;
        };
        kept.reasons = kept.reasons.without(reason);
        if kept.reasons.is_empty() {
            part.remove(&place);
            self.len.fetch_sub(1, Ordering::Release);
        }
    }

    /// How many recipients there are.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
