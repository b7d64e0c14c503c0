//! What the ledger tells one node: events, put down in order and fetched at once.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use outflow_core::engine::event::Event;

/// Has the node look at its ports.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// What was told and the node has not fetched.
pub(crate) struct Outbox {
    told: Mutex<Vec<Event>>,
    wake: Wake,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outbox")
    }
}

impl Outbox {
    pub fn new(wake: Wake) -> Self {
        Self {
            told: Mutex::new(Vec::new()),
            wake,
        }
    }

    /// Tells the node. It is woken once for all that it has not fetched.
    pub fn tell(&self, event: Event) {
        let is_first = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.push(event);
            told.len() == 1
        };
        if is_first {
            (self.wake)();
        }
    }

    /// All that was told.
    pub fn fetch(&self) -> Vec<Event> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut told)
    }

    pub fn is_empty(&self) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.is_empty()
    }
}
