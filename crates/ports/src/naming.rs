//! Message-IDs: fixed at acceptance, so that a duplicate can be recognised.

use std::sync::atomic::{AtomicU64, Ordering};

use outflow_core::time::Wall;

/// Gives every message an id of its own: the time, which process, and a count.
#[derive(Debug)]
pub struct Naming {
    process: u64,
    count: AtomicU64,
}

impl Naming {
    /// For the process of this number, which is drawn by lot: two processes
    /// with one number would give one id twice.
    pub const fn of(process: u64) -> Self {
        Self {
            process,
            count: AtomicU64::new(0),
        }
    }

    /// The Message-ID of a message from this domain.
    pub fn message_id(&self, now: Wall, domain: &str) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let millis = now.0.div_euclid(1_000_000);
        format!("<{millis:x}.{:016x}.{count:x}@{domain}>", self.process)
    }
}
