//! What people ask for later: receipts, and what operators set.

mod error;
mod settings;

use std::path::Path;
use std::time::Duration;

use outflow_core::message::Seq;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::Wall;
use outflow_ports::receipts::{
    CauseCount, Happening, Receipt, ReceiptFilter, Receipts, ReceiptsError,
};
use outflow_ports::registry::{Audit, AuditEntry, Change, Document, Kind, Registry, RegistryError};

pub use error::RecordError;
pub use settings::{KeptReceipts, RecordSettings};

/// A handle to the record. Clones share one record.
#[derive(Clone)]
pub struct Record;

impl Record {
    /// Opens the record in this file; makes it if there is none.
    pub fn open(_path: &Path, _settings: RecordSettings) -> Result<Self, RecordError> {
        Ok(Self)
    }
    /// The journal position up to which everything settled is durable here.
    pub fn applied(&self) -> u64 {
        0
    }
    /// Takes receipts, in the order of the journal, which it then covers up to
    /// `through`.
    pub fn settle(&self, _receipts: Vec<Receipt>, _through: u64) {}
    /// How many receipts are not applied yet.
    pub fn backlog(&self) -> usize {
        0
    }
    /// Adds what a provider said later to the timeline of a settled message.
    pub fn feedback(&self, _seq: Seq, _at: Wall, _error: LastError) {}
    /// Takes idempotency keys: hash, message, when it was accepted, when to forget.
    pub fn remember_keys(&self, _keys: Vec<(u64, Seq, Wall, Wall)>) {}
    /// The message of an idempotency key, and when it was accepted.
    pub fn find_key(&self, _hash: u64) -> Option<(Seq, Wall)> {
        None
    }
    /// Whether the last transaction succeeded.
    pub fn healthy(&self) -> bool {
        true
    }
    /// What keeps receipts from being applied, if anything does.
    pub fn last_error(&self) -> Option<String> {
        None
    }
    /// Waits until the record covers the journal up to `through`; whether it
    /// does in time.
    pub fn wait_applied(&self, _through: u64, _within: Duration) -> bool {
        false
    }
    /// Writes what waits and ends the thread.
    pub fn close(&self) {}
}

/// Checks a record that no process has open; what is wrong, in words.
pub fn verify(_path: &Path) -> Result<Vec<String>, RecordError> {
    Ok(Vec::new())
}

impl Receipts for Record {
    fn get(&self, _seq: Seq) -> Result<Option<Receipt>, ReceiptsError> {
        Err(ReceiptsError("no receipts are kept yet".into()))
    }
    fn list(
        &self,
        _filter: &ReceiptFilter,
        _before: Option<Seq>,
        _max: usize,
    ) -> Result<Vec<Receipt>, ReceiptsError> {
        Err(ReceiptsError("no receipts are kept yet".into()))
    }
    fn events(&self, _seq: Seq) -> Result<Vec<Happening>, ReceiptsError> {
        Err(ReceiptsError("no receipts are kept yet".into()))
    }
    fn count(&self, _filter: &ReceiptFilter) -> Result<u64, ReceiptsError> {
        Err(ReceiptsError("no receipts are kept yet".into()))
    }
    fn causes(&self, _filter: &ReceiptFilter) -> Result<Vec<CauseCount>, ReceiptsError> {
        Err(ReceiptsError("no receipts are kept yet".into()))
    }
}

impl Registry for Record {
    fn list(&self, _kind: Kind) -> Result<Vec<Document>, RegistryError> {
        Err(RegistryError::Storage("no documents are kept yet".into()))
    }
    fn get(&self, _kind: Kind, _id: &str) -> Result<Option<Document>, RegistryError> {
        Err(RegistryError::Storage("no documents are kept yet".into()))
    }
    fn change(&self, _change: Change<'_>, _audit: Audit<'_>) -> Result<u64, RegistryError> {
        Err(RegistryError::Storage("no documents are kept yet".into()))
    }
    fn audit(&self, _audit: Audit<'_>) -> Result<(), RegistryError> {
        Err(RegistryError::Storage("no documents are kept yet".into()))
    }
    fn audit_entries(
        &self,
        _since: Wall,
        _before: Option<u64>,
        _max: usize,
    ) -> Result<Vec<AuditEntry>, RegistryError> {
        Err(RegistryError::Storage("no documents are kept yet".into()))
    }
}
