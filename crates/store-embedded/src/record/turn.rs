//! Who writes next.
//!
//! SQLite has one writer at a time and is not fair: while receipts stream in,
//! an operator's change would wait long behind transaction after transaction.
//! So the writers of this process take turns, first come, first served.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Line {
    next: u64,
    serving: u64,
}

/// The line of those who want to write.
#[derive(Default)]
pub struct Turns {
    line: Mutex<Line>,
    moved: Condvar,
}

/// The right to write, until it is dropped.
pub struct Turn<'a>(&'a Turns);

impl Turns {
    /// Waits for a turn.
    pub fn take(&self) -> Turn<'_> {
        let mut line = self.line();
        let mine = line.next;
        line.next += 1;
        while line.serving != mine {
            line = self
                .moved
                .wait(line)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Turn(self)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.line().serving += 1;
        self.0.moved.notify_all();
    }
}
