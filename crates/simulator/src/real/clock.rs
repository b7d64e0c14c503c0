//! The clocks of a node, as its store reads them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_store_embedded::boot::BootClock;

/// Shows what it was set to. Between restarts of the process it goes on; a loss
/// of power makes it another boot.
#[derive(Debug)]
pub struct StoreClock {
    boot: AtomicU64,
    mono: AtomicU64,
    wall: AtomicI64,
}

impl Default for StoreClock {
    fn default() -> Self {
        Self {
            boot: AtomicU64::new(1),
            mono: AtomicU64::new(0),
            wall: AtomicI64::new(0),
        }
    }
}

impl StoreClock {
    /// It is now.
    pub fn set(&self, now: &Now) {
        self.mono.store(now.mono.0, SeqCst);
        self.wall.store(now.wall.0, SeqCst);
    }

    /// The machine starts anew.
    pub fn reboot(&self) {
        self.boot.fetch_add(1, SeqCst);
    }
}

impl BootClock for StoreClock {
    fn id(&self) -> u64 {
        self.boot.load(SeqCst)
    }

    fn time(&self) -> Nanos {
        Nanos(self.mono.load(SeqCst))
    }

    fn wall(&self) -> Wall {
        Wall(self.wall.load(SeqCst))
    }

    fn mono(&self) -> Mono {
        Mono(self.mono.load(SeqCst))
    }
}
