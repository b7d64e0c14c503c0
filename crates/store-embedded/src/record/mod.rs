//! What people ask for later: receipts, and what operators set.
//!
//! One SQLite file. Receipts of messages that are done with are handed over in
//! the order of the journal and written by one thread, five seconds' worth or
//! 10,000 rows at a time, together with the journal position they reach. Until
//! then they are answered from memory, and the journal keeps them: what is lost
//! in a crash is handed over again. What operators set is written at once, and
//! on the disk before they hear of it.
//!
//! Reading order: [`settings`], [`error`]; `schema` (the tables), `words`,
//! `timeline` and `row` (what is in them); `waiting` (what is not in them yet),
//! `applier` and `retention` (the thread), `turn`; `keys`; `readers`, `filter`,
//! `receipts` (the answers); `registry`, `suppressions`; `history`; `verify`,
//! `rescue`.

mod applier;
pub mod error;
mod filter;
mod history;
mod keys;
mod readers;
mod receipts;
mod registry;
mod rescue;
mod retention;
mod row;
mod schema;
pub mod settings;
mod suppressions;
#[cfg(test)]
mod tests;
mod timeline;
mod turn;
mod verify;
mod waiting;
mod words;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use outflow_core::message::Seq;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::Wall;
use outflow_ports::receipts::{Happening, Receipt};
use rusqlite::Connection;

use crate::boot::{BootClock, SystemBoot};
use crate::private;
use readers::Readers;
use turn::Turns;
use waiting::{Job, Key, Waiting};

pub(crate) use applier::Applier;
pub use error::RecordError;
pub use rescue::{cover_at_most, rescue};
pub use settings::{KeptReceipts, RecordSettings};
pub use verify::{ended_by_damage, store_and_position, verify};

/// A handle to the record. Clones share it; when the last is dropped without
/// [`Record::close`], what waits is left to the journal.
#[derive(Clone)]
pub struct Record {
    shared: Arc<Shared>,
}

struct Shared {
    settings: RecordSettings,
    clock: Arc<dyn BootClock>,
    waiting: Arc<Waiting>,
    turns: Arc<Turns>,
    readers: Readers,
    keys: Mutex<Connection>,
    /// Whether looking for a key on the disk can find any. Most records never
    /// hold one, and then each new message would pay for the look.
    any_keys: AtomicBool,
    registry_reader: Mutex<Connection>,
    registry_writer: Mutex<Connection>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Record {
    /// Opens the record in this file; makes it if there is none.
    pub fn open(path: &Path, settings: RecordSettings) -> Result<Self, RecordError> {
        private::with_companions(path).map_err(RecordError::NotPrivate)?;
        let (record, applier) = Self::open_idle(path, settings, Arc::new(SystemBoot))?;
        let thread = thread::Builder::new()
            .name("record".to_owned())
            .spawn(|| applier.run())
            .map_err(RecordError::Thread)?;
        record
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(thread);
        Ok(record)
    }

    /// The same without a thread: the applier is to be stepped.
    pub(crate) fn open_idle(
        path: &Path,
        settings: RecordSettings,
        clock: Arc<dyn BootClock>,
    ) -> Result<(Self, Applier), RecordError> {
        let mut connection = schema::writer(path)?;
        schema::migrate(&mut connection)?;
        let applied: i64 =
            connection.query_row("SELECT journal FROM position", [], |row| row.get(0))?;
        let any_keys = keys::any(&connection)?;
        let waiting = Arc::new(Waiting::new(applied.cast_unsigned(), Arc::clone(&clock)));
        let turns = Arc::new(Turns::default());
        let applier = Applier::new(
            path,
            settings,
            Arc::clone(&clock),
            connection,
            Arc::clone(&waiting),
            Arc::clone(&turns),
        );
        let shared = Arc::new(Shared {
            settings,
            clock,
            waiting,
            turns,
            readers: Readers::open(path)?,
            keys: Mutex::new(schema::reader(path)?),
            any_keys: AtomicBool::new(any_keys),
            registry_reader: Mutex::new(schema::reader(path)?),
            registry_writer: Mutex::new(schema::rare_writer(path)?),
            thread: Mutex::new(None),
        });
        Ok((Self { shared }, applier))
    }

    /// The journal position up to which everything settled is durable here.
    pub fn applied(&self) -> u64 {
        self.waiting().position()
    }

    /// Takes receipts, in the order of the journal, which the record covers up
    /// to `through` once they are applied. Never waits for the disk.
    pub fn settle(&self, receipts: Vec<Receipt>, through: u64) {
        let kept = self.shared.settings.receipts;
        let mut receipts = receipts
            .into_iter()
            .filter(|receipt| kept.keeps(&receipt.key.tenant, receipt.state))
            .map(Arc::new)
            .peekable();
        let rows_max = self.rows_max();
        loop {
            let part: Vec<Arc<Receipt>> = receipts.by_ref().take(rows_max).collect();
            let is_last = receipts.peek().is_none();
            let job = Job::Receipts(part, is_last.then_some(through));
            self.waiting().add(job, rows_max);
            if is_last {
                break;
            }
        }
    }

    /// Has what waits written soon: somebody waits for it.
    pub fn hasten(&self) {
        self.waiting().hasten();
    }

    /// How many receipts are not applied yet.
    pub fn backlog(&self) -> usize {
        self.waiting().backlog()
    }

    /// Adds what somebody said later to the timeline of a settled message.
    pub fn feedback(&self, seq: Seq, at: Wall, error: LastError) {
        let happening = Happening {
            at,
            what: "feedback".to_owned(),
            account: None,
            until: None,
            error: Some(error),
        };
        let job = Job::Feedback(seq, happening);
        self.waiting().add(job, self.rows_max());
    }

    /// Takes idempotency keys: the hash, the message, when it was accepted, and
    /// when to forget the key.
    pub fn remember_keys(&self, keys: Vec<(u64, Seq, Wall, Wall)>) {
        if keys.is_empty() {
            return;
        }
        let keys = keys
            .into_iter()
            .map(|(hash, seq, accepted_at, forget_at)| Key {
                hash,
                seq,
                accepted_at,
                forget_at,
            });
        let job = Job::Keys(keys.collect());
        self.waiting().add(job, self.rows_max());
        self.shared.any_keys.store(true, Ordering::Release);
    }

    /// Whether there may be idempotency keys here.
    pub fn has_keys(&self) -> bool {
        self.shared.any_keys.load(Ordering::Acquire)
    }

    /// The message of an idempotency key, and when it was accepted.
    pub fn find_key(&self, hash: u64) -> Option<(Seq, Wall)> {
        if !self.has_keys() {
            return None;
        }
        let now = self.shared.clock.wall();
        if let Some(key) = self.waiting().key(hash) {
            return (key.forget_at > now).then_some((key.seq, key.accepted_at));
        }
        let connection = self.shared.keys.lock();
        let connection = connection.unwrap_or_else(PoisonError::into_inner);
        keys::find(&connection, hash, now).unwrap_or_else(|error| {
            self.waiting().failed(error.to_string());
            None
        })
    }

    /// Which store this is the record of; 0 if it was not told yet.
    pub fn store_id(&self) -> Result<u64, RecordError> {
        let connection = self.registry_reader();
        Ok(schema::store_id(&connection)?)
    }

    /// Tells it which store it is of, on the disk before this returns.
    pub fn set_store_id(&self, id: u64) -> Result<(), RecordError> {
        let writer = self.shared.registry_writer.lock();
        let writer = writer.unwrap_or_else(PoisonError::into_inner);
        writer.execute(
            "INSERT OR REPLACE INTO store (only_row, id) VALUES (1, ?1)",
            [id.cast_signed()],
        )?;
        Ok(())
    }

    /// Whether what is handed over reaches the disk.
    pub fn healthy(&self) -> bool {
        self.last_error().is_none()
    }

    /// What keeps the record from the disk, if anything does.
    pub fn last_error(&self) -> Option<String> {
        self.waiting().error()
    }

    /// Waits until the record covers the journal up to `through`; whether it
    /// does in time.
    pub fn wait_applied(&self, through: u64, within: Duration) -> bool {
        self.waiting()
            .wait_until(within, |applied, _| applied >= through)
    }

    /// Writes what waits and ends the thread. If the disk does not take it,
    /// it is left to the journal.
    pub fn close(&self) {
        self.shared.end(true);
    }

    fn waiting(&self) -> &Waiting {
        &self.shared.waiting
    }

    fn readers(&self) -> &Readers {
        &self.shared.readers
    }

    fn rows_max(&self) -> usize {
        self.shared.settings.batch_rows.max(1)
    }
}

impl Shared {
    fn end(&self, flush: bool) {
        self.waiting.end(flush);
        let thread = self.thread.lock();
        let mut thread = thread.unwrap_or_else(PoisonError::into_inner);
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            self.waiting
                .failed("the record's thread has panicked".to_owned());
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end(false);
    }
}
