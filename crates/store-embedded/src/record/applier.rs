//! The thread that writes: batches in order, each with the journal position it
//! reaches, in one transaction; between them, a slice of retention.
//!
//! If SQLite fails, the same batch is tried again, with pauses, on a fresh
//! connection: nothing overtakes it and nothing is dropped. What comes meanwhile
//! waits in memory, which the caller bounds by the backlog.
//!
//! After a while without a batch the pages that SQLite holds in memory go back:
//! a crowd of receipts leaves as many as its cache takes, and nobody reads them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outflow_core::time::{Mono, Nanos};
use outflow_ports::receipts::Happening;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::error::RecordError;
use super::keys;
use super::retention::Sweep;
use super::settings::RecordSettings;
use super::turn::Turns;
use super::waiting::{Job, Next, Numbered, Waiting};
use super::{row, schema, timeline};
use crate::boot::BootClock;

const PAUSE_MIN: Nanos = Nanos::from_millis(100);
const PAUSE_MAX: Nanos = Nanos::from_secs(5);
/// So long after their last use the pages in memory are given back.
const PAGES_KEPT: Nanos = Nanos::from_secs(5);

/// What comes after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// Nothing is to be done for so long, unless more comes.
    Rests(Nanos),
    /// It failed and is tried again after a pause.
    Failed(Nanos),
    /// It was told to end.
    Ended,
}

/// Who writes.
pub struct Applier {
    /// Where the record is.
    path: PathBuf,
    /// How it behaves.
    settings: RecordSettings,
    /// What is to be written.
    waiting: Arc<Waiting>,
    /// Who writes next.
    turns: Arc<Turns>,
    clock: Arc<dyn BootClock>,
    /// How far retention is.
    sweep: Sweep,
    /// None after a failure.
    pub connection: Option<Connection>,
    /// A batch that failed, and how long to wait after the next failure.
    failed: Option<Vec<Numbered>>,
    pause: Nanos,
    /// When pages were last read or written, if they may still be in memory.
    used_at: Option<Mono>,
}

impl Applier {
    /// Writes what waits to the record at `path`.
    pub fn new(
        path: &Path,
        settings: RecordSettings,
        clock: Arc<dyn BootClock>,
        connection: Connection,
        waiting: Arc<Waiting>,
        turns: Arc<Turns>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            settings,
            waiting,
            turns,
            sweep: Sweep::new(clock.mono()),
            clock,
            connection: Some(connection),
            failed: None,
            pause: PAUSE_MIN,
            used_at: None,
        }
    }

    /// Works until it is told to end.
    pub fn run(mut self) {
        let mut is_last = false;
        loop {
            match self.step() {
                Stepped::Rests(rest) => {
                    is_last = false;
                    let (rows_max, batch_time) = self.batch();
                    self.waiting.wait(rows_max, batch_time, rest);
                }
                Stepped::Failed(pause) if !is_last => {
                    is_last = !self.waiting.pause(Duration::from_nanos(pause.0))
                }
                Stepped::Failed(_) | Stepped::Ended => break,
            }
        }
        if let Some(connection) = self.connection {
            // The log file is folded in for whoever copies the file; if that
            // fails, the next start does it.
            let _ = connection.pragma_update(None, "wal_checkpoint", "TRUNCATE");
        }
    }

    fn batch(&self) -> (usize, Nanos) {
        (self.settings.batch_rows, self.settings.batch_time)
    }

    /// Applies the next batch if it is time for it, then tidies up if it is time
    /// for that.
    pub fn step(&mut self) -> Stepped {
        let batch = match self.failed.take() {
            Some(batch) => Some(batch),
            None => {
                let (rows_max, batch_time) = self.batch();
                match self.waiting.next(rows_max, batch_time) {
                    Next::Apply(batch) => Some(batch),
                    Next::Wait => None,
                    Next::Stop => return Stepped::Ended,
                }
            }
        };
        if let Some(batch) = batch {
            if let Err(error) = self.apply(&batch) {
                self.connection = None;
                self.waiting.failed(error.to_string());
                self.failed = Some(batch);
                let pause = self.pause;
                self.pause = pause.times(2).min(PAUSE_MAX);
                return Stepped::Failed(pause);
            }
            self.pause = PAUSE_MIN;
            self.waiting.applied(batch);
        } else {
            self.release_pages();
        }
        self.sweep();
        Stepped::Rests(self.rest())
    }

    /// How long nothing is to be done if no batch comes.
    fn rest(&self) -> Nanos {
        let now = self.clock.mono();
        let sweep = self.sweep.due_in(now);
        let pages = self.used_at.map(|at| (at + PAGES_KEPT).since(now));
        pages.map_or(sweep, |pages| pages.min(sweep))
    }

    /// Gives back the pages that SQLite holds, if it is time. Whether that
    /// succeeds is of no consequence.
    fn release_pages(&mut self) {
        let now = self.clock.mono();
        let is_due = |at: &mut Mono| *at + PAGES_KEPT <= now;
        if self.used_at.take_if(is_due).is_some()
            && let Some(connection) = &self.connection
        {
            let _ = connection.execute_batch("PRAGMA shrink_memory");
        }
    }

    /// When there is a batch to apply, if no more comes.
    pub fn next_batch(&self) -> Mono {
        let (rows_max, batch_time) = self.batch();
        self.waiting.due(rows_max, batch_time)
    }

    /// Applies a batch, all or nothing.
    pub fn apply(&mut self, batch: &[Numbered]) -> Result<(), RecordError> {
        let _turn = self.turns.take();
        let connection = open(&mut self.connection, &self.path)?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut reached = None;
        for Numbered { job, .. } in batch {
            match job {
                Job::Receipts(receipts, through) => {
                    row::write(&change, receipts)?;
                    reached = reached.max(*through);
                }
                Job::Feedback(seq, happening) => {
                    add_happening(&change, seq.0.cast_signed(), happening)?;
                }
                Job::Keys(keys) => keys::write(&change, keys)?,
            }
        }
        if let Some(reached) = reached {
            change.execute(
                "UPDATE position SET journal = max(journal, ?1)",
                [reached.cast_signed()],
            )?;
        }
        change.commit()?;
        self.used_at = Some(self.clock.mono());
        Ok(())
    }

    fn sweep(&mut self) {
        let now = self.clock.mono();
        if self.sweep.due_in(now) != Nanos::ZERO {
            return;
        }
        let _turn = self.turns.take();
        let wall = self.clock.wall();
        let swept = open(&mut self.connection, &self.path)
            .and_then(|connection| self.sweep.slice(connection, &self.settings, wall));
        match swept {
            Ok(more) => {
                self.sweep.rest(self.clock.mono(), more);
                self.used_at = Some(now);
                self.waiting.succeeded();
            }
            Err(error) => {
                self.connection = None;
                self.sweep.start_over(now);
                self.waiting.failed(error.to_string());
            }
        }
    }
}

fn open<'a>(
    connection: &'a mut Option<Connection>,
    path: &Path,
) -> Result<&'a mut Connection, RecordError> {
    if connection.is_none() {
        *connection = Some(schema::writer(path)?);
    }
    Ok(connection
        .as_mut()
        .expect("a connection was made if there was none"))
}

/// Adds to the timeline of a receipt, once however often it is tried. A message
/// without a receipt has no timeline.
fn add_happening(
    change: &Transaction<'_>,
    seq: i64,
    happening: &Happening,
) -> Result<(), RecordError> {
    let text: Option<String> = change
        .prepare_cached("SELECT timeline FROM receipts WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    // A timeline that cannot be read must not hold up what comes after it.
    let Some(Ok(mut events)) = text.map(|text| timeline::decode(&text)) else {
        return Ok(());
    };
    timeline::add(&mut events, happening.clone());
    change
        .prepare_cached("UPDATE receipts SET timeline = ?2 WHERE seq = ?1")?
        .execute(params![seq, timeline::encode(&events)])?;
    Ok(())
}
