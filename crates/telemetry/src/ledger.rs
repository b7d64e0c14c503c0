//! What is counted of the ledger of a fleet.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::catalogue::LedgerCounts;

/// How the ledger is, and what was asked of it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    is_away: AtomicBool,
    round_trips: AtomicU64,
    leased: AtomicU64,
    given_back: AtomicU64,
}

impl Ledger {
    pub fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Relaxed);
    }

    pub fn set_counts(&self, counts: &LedgerCounts) {
        self.round_trips.store(counts.round_trips, Relaxed);
        self.leased.store(counts.leased, Relaxed);
        self.given_back.store(counts.given_back, Relaxed);
    }

    pub fn is_away(&self) -> bool {
        self.is_away.load(Relaxed)
    }

    pub fn counts(&self) -> LedgerCounts {
        LedgerCounts {
            round_trips: self.round_trips.load(Relaxed),
            leased: self.leased.load(Relaxed),
            given_back: self.given_back.load(Relaxed),
        }
    }
}
