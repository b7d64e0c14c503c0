//! What is deleted when its time has passed.
//!
//! Receipts lie in the order of acceptance, which is close to the order in
//! which they run out. So a walk from the oldest on finds them without an index:
//! it ends where a whole slice was accepted too late to have run out. Dead
//! letters have a time of their own and are walked by the index of failures.
//! Each slice is one short transaction.

use outflow_core::time::{Mono, Nanos, Wall};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::error::RecordError;
use super::settings::RecordSettings;
use super::{history, keys, registry, words};

/// Rows looked at in one slice.
const LOOKS: usize = 10_000;

/// The wait after a slice: others may write meanwhile.
const BETWEEN: Nanos = Nanos::from_millis(20);

/// The wait after a whole walk.
const REST: Nanos = Nanos::from_secs(60);

const RECEIPTS: &str = "SELECT seq, accepted_at_ms, settled_at_ms FROM receipts NOT INDEXED \
     WHERE seq > ?1 AND state <> 'dead' ORDER BY seq LIMIT ?2";

const DEAD_LETTERS: &str = "SELECT seq, accepted_at_ms, settled_at_ms FROM receipts \
     INDEXED BY receipts_not_delivered \
     WHERE state = 'dead' AND state <> 'delivered' AND seq > ?1 ORDER BY seq LIMIT ?2";

/// How far the walks are.
#[derive(Debug)]
pub struct Sweep {
    receipts: Walk,
    dead_letters: Walk,
    due: Mono,
}

#[derive(Debug)]
struct Walk {
    after: i64,
    is_over: bool,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            after: i64::MIN,
            is_over: false,
        }
    }
}

impl Sweep {
    /// Begins at the oldest, at this time.
    pub fn new(due: Mono) -> Self {
        Self {
            receipts: Walk::default(),
            dead_letters: Walk::default(),
            due,
        }
    }

    /// How long until the next slice.
    pub fn due_in(&self, now: Mono) -> Nanos {
        self.due.since(now)
    }

    /// Begins anew, after a wait: what was deleted since is not known.
    pub fn start_over(&mut self, now: Mono) {
        *self = Self::new(now + REST);
    }

    /// Waits for the next slice, or for the next walk.
    pub fn rest(&mut self, now: Mono, more: bool) {
        match more {
            true => self.due = now + BETWEEN,
            false => self.start_over(now),
        }
    }

    /// Deletes a slice of what has run out by `wall`; whether there may be more.
    pub fn slice(
        &mut self,
        connection: &mut Connection,
        settings: &RecordSettings,
        wall: Wall,
    ) -> Result<bool, RecordError> {
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let old = |kept: Nanos| wall.0.saturating_sub_unsigned(kept.0);
        self.receipts
            .step(&change, RECEIPTS, Wall(old(settings.receipts_for)))?;
        self.dead_letters
            .step(&change, DEAD_LETTERS, Wall(old(settings.dead_letters_for)))?;
        let forgotten = keys::forget(&change, wall, LOOKS)?;
        let kept_since = Wall(old(settings.history_for));
        let more = history::forget(&change, kept_since, settings.history_rows_max, LOOKS)?;
        let kept_since = Wall(old(settings.audit_for));
        let more = registry::forget(&change, kept_since, settings.audit_rows_max, LOOKS)? || more;
        change.commit()?;

        let is_over =
            self.receipts.is_over && self.dead_letters.is_over && forgotten < LOOKS && !more;
        Ok(!is_over)
    }
}

impl Walk {
    fn step(
        &mut self,
        change: &Transaction<'_>,
        select: &str,
        cutoff: Wall,
    ) -> Result<(), RecordError> {
        if self.is_over {
            return Ok(());
        }
        let cutoff_ms = words::millis(cutoff);
        let (mut looked, mut any_old, mut last) = (0, false, self.after);
        let mut expired = Vec::new();
        let mut rows = change.prepare_cached(select)?;
        let mut rows = rows.query(params![self.after, LOOKS as i64])?;
        while let Some(row) = rows.next()? {
            last = row.get(0)?;
            looked += 1;
            any_old |= row.get::<_, i64>(1)? < cutoff_ms;
            if row.get::<_, i64>(2)? < cutoff_ms {
                expired.push(last);
            }
        }
        let mut delete = change.prepare_cached("DELETE FROM receipts WHERE seq = ?1")?;
        for seq in expired {
            delete.execute([seq])?;
        }
        self.after = last;
        self.is_over = looked < LOOKS || !any_old;
        Ok(())
    }
}
