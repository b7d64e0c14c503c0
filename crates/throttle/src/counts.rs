//! What was counted, for whoever serves metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::schedule::waits::Waits;

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub granted: AtomicU64,
    pub refused: AtomicU64,
    pub failed: AtomicU64,
    pub waited: AtomicU64,
}

impl Counters {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }
}

/// What was counted since the start, and what is so now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were granted, at once or after a wait.
    pub granted: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests that made no sense.
    pub failed: u64,
    /// Requests that had to wait.
    pub waited: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// Limits that are known now.
    pub keys: u64,
    /// Permits that are held now.
    pub permits: u64,
    /// Who was held up, by the scopes of limits.
    pub waits: Vec<(ScopeSet, Waits)>,
}
