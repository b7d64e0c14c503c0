//! What may go wrong with a store, as data.

use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos};

use crate::memory::window::{self, Window};

/// How commits behave. Windows are on the clock of the store's node.
#[derive(Clone, Debug)]
pub struct Faults {
    /// A commit takes at least this long ...
    pub commit_min: Nanos,
    /// ... and usually at most this long.
    pub commit_max: Nanos,
    /// So many of a thousand commits are slow ...
    pub slow_permille: u32,
    /// ... and take this long.
    pub slow_commit: Nanos,
    /// So many of a thousand commits fail.
    pub fail_permille: u32,
    /// Every commit that ends in one of these fails.
    pub failing: Vec<Window>,
    /// The disk is full: new messages are refused.
    pub full: Vec<Window>,
    /// Records that still have room on a full disk.
    pub full_room: u32,
    /// Of a thousand crashes, so many leave part of the commit under way on
    /// the disk, though nobody heard of it.
    pub torn_permille: u32,
    /// Where chance comes from.
    pub entropy: Entropy,
}

impl Default for Faults {
    /// A disk that takes a millisecond and never fails.
    fn default() -> Self {
        Self {
            commit_min: Nanos::from_millis(1),
            commit_max: Nanos::from_millis(1),
            slow_permille: 0,
            slow_commit: Nanos::ZERO,
            fail_permille: 0,
            failing: Vec::new(),
            full: Vec::new(),
            full_room: 10_000,
            torn_permille: 0,
            entropy: Entropy(0),
        }
    }
}

impl Faults {
    /// Whether something that happens to so many of a thousand happens now.
    fn strikes(&mut self, permille: u32) -> bool {
        permille > 0 && self.entropy.between(0, 999) < u64::from(permille)
    }

    pub(super) fn commit_time(&mut self) -> Nanos {
        if self.strikes(self.slow_permille) {
            return self.slow_commit;
        }
        if self.commit_min >= self.commit_max {
            return self.commit_min;
        }
        Nanos(self.entropy.between(self.commit_min.0, self.commit_max.0))
    }

    pub(super) fn commit_fails(&mut self, now: Mono) -> bool {
        window::around(&self.failing, now).is_some() || self.strikes(self.fail_permille)
    }

    pub(super) fn is_full(&self, now: Mono) -> bool {
        window::around(&self.full, now).is_some()
    }

    /// How many of the works of a commit under way outlive a crash.
    pub(super) fn torn(&mut self, works: usize) -> usize {
        if !self.strikes(self.torn_permille) {
            return 0;
        }
        self.entropy.between(0, works as u64) as usize
    }
}
