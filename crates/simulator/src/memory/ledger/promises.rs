//! Who comes when, where many want what accrues.
//!
//! Everybody who is refused comes back at a time of his own, one lot after the
//! other, and until then nobody takes less than a lot: else whoever is quickest
//! takes every token as it accrues, and the others nothing. The urgent do not
//! queue behind the less urgent.

use outflow_core::class::Class;
use outflow_core::ledger::QUEUE_MAX;
use outflow_core::time::{Mono, Nanos};

/// The last lot promised to each class.
#[derive(Clone, Debug, Default)]
pub(super) struct Promises([Mono; Class::COUNT]);

impl Promises {
    /// Whether somebody as urgent as `class` was told to come later than now.
    pub fn are_open(&self, now: Mono, class: Class) -> bool {
        self.last(class) > now
    }

    fn last(&self, class: Class) -> Mono {
        let queue = self.0.iter().take(class.index() + 1);
        queue.copied().max().unwrap_or_default()
    }

    /// When to come: `first` is when a lot will be there, `lot` how long one
    /// takes to accrue.
    pub fn add(&mut self, class: Class, first: Mono, lot: Nanos) -> Mono {
        let queued = (self.last(class) + lot).min(first + QUEUE_MAX);
        let at = first.max(queued);
        if let Some(last) = self.0.get_mut(class.index()) {
            *last = at;
        }
        at
    }
}
