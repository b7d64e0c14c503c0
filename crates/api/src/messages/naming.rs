//! Message-IDs: fixed at acceptance, so that a duplicate can be recognised.

use std::sync::atomic::{AtomicU64, Ordering};

use outflow_core::time::Wall;

use crate::grant::NoEntropy;

/// Gives every message an id of its own: the time, which process, and a count.
#[derive(Debug)]
pub struct Naming {
    process: u64,
    count: AtomicU64,
}

impl Naming {
    /// For this process.
    pub fn new() -> Result<Self, NoEntropy> {
        let mut process = [0; 8];
        getrandom::fill(&mut process).map_err(|_| NoEntropy)?;
        Ok(Self::of(u64::from_le_bytes(process)))
    }

    /// For the process of this number.
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
