//! What wakes the thread: rung by whoever has something for it, at any time.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A bell that stays rung until it is heard.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Rings it.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits until it is rung, at most so long.
    pub fn wait(&self, longest: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = self
            .changed
            .wait_timeout_while(rung, longest, |rung| !*rung);
        let (mut rung, _) = heard.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}
