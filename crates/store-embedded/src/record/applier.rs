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
use std::time::{Duration, Instant};

use outflow_ports::receipts::Happening;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::error::RecordError;
use super::keys;
use super::retention::Sweep;
use super::settings::RecordSettings;
use super::turn::Turns;
use super::waiting::{Job, Next, Numbered, Waiting};
use super::{row, schema, timeline};

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// So long after the last batch the pages in memory are given back.
const PAGES_KEPT: Duration = Duration::from_secs(5);

/// The thread that writes.
pub struct Applier {
    /// Where the record is.
    pub path: PathBuf,
    /// How it behaves.
    pub settings: RecordSettings,
    /// What is to be written.
    pub waiting: Arc<Waiting>,
    /// Who writes next.
    pub turns: Arc<Turns>,
    /// How far retention is.
    pub sweep: Sweep,
    /// None after a failure.
    pub connection: Option<Connection>,
    /// When a batch was written last, if its pages may still be in memory.
    pub written_at: Option<Instant>,
}

impl Applier {
    /// Works until it is told to end.
    pub fn run(mut self) {
        let rows_max = self.settings.batch_rows;
        let batch_time = Duration::from_nanos(self.settings.batch_time.0);
        loop {
            let rest = self.rest(Instant::now());
            match self.waiting.next(rows_max, batch_time, rest) {
                Next::Apply(batch) => {
                    if !self.apply_until_done(batch) {
                        break;
                    }
                    self.written_at = Some(Instant::now());
                }
                Next::Rest => self.release_pages(Instant::now()),
                Next::Stop => break,
            }
            self.sweep();
        }
        if let Some(connection) = self.connection {
            // The log file is folded in for whoever copies the file; if that
            // fails, the next start does it.
            let _ = connection.pragma_update(None, "wal_checkpoint", "TRUNCATE");
        }
    }

    /// How long nothing is to be done if no batch comes.
    fn rest(&self, now: Instant) -> Duration {
        let pages = self.written_at.map_or(Duration::MAX, |at| {
            (at + PAGES_KEPT).saturating_duration_since(now)
        });
        self.sweep.due_in(now).min(pages)
    }

    /// Gives back the pages that SQLite holds, if it is time. Whether that
    /// succeeds is of no consequence.
    pub fn release_pages(&mut self, now: Instant) {
        let is_due = |at: &mut Instant| *at + PAGES_KEPT <= now;
        if self.written_at.take_if(is_due).is_some()
            && let Some(connection) = &self.connection
        {
            let _ = connection.execute_batch("PRAGMA shrink_memory");
        }
    }

    /// False if it was told to end before it succeeded.
    fn apply_until_done(&mut self, batch: Vec<Numbered>) -> bool {
        let mut pause = PAUSE_MIN;
        let mut is_last = false;
        while let Err(error) = self.apply(&batch) {
            self.connection = None;
            self.waiting.failed(error.to_string());
            if is_last {
                return false;
            }
            is_last = !self.waiting.pause(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.waiting.applied(batch);
        true
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
        Ok(change.commit()?)
    }

    fn sweep(&mut self) {
        if !self.sweep.due_in(Instant::now()).is_zero() {
            return;
        }
        let _turn = self.turns.take();
        let swept = open(&mut self.connection, &self.path)
            .and_then(|connection| self.sweep.slice(connection, &self.settings));
        match swept {
            Ok(()) => self.waiting.succeeded(),
            Err(error) => {
                self.connection = None;
                self.sweep.start_over(Instant::now());
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
