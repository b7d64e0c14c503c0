//! What became of messages that are done with.

use outflow_core::flow::FlowKey;
use outflow_core::message::{Seq, State};
use outflow_core::retry::dead_letter::LastError;
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::Wall;

/// Something that happened to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at: Wall,
    /// `accepted`, `deferred`, `delivered`, `bounced`, `feedback`, ...
    pub what: String,
    /// Through which account.
    pub account: Option<String>,
    /// Waits until then.
    pub until: Option<Wall>,
    /// What went wrong.
    pub error: Option<LastError>,
}

/// The receipt of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its number.
    pub seq: Seq,
    /// Its flow.
    pub key: FlowKey,
    /// What became of it.
    pub state: State,
    /// When it was accepted.
    pub accepted_at: Wall,
    /// When it was done with.
    pub settled_at: Wall,
    /// How often it was tried.
    pub attempts: u16,
    /// The account that tried last.
    pub account: Option<String>,
    /// What its last failure was.
    pub error: Option<LastError>,
    /// Why it was given up, if it was.
    pub cause: Option<DeathCause>,
    /// What belonged to it alone: addresses, tags.
    pub envelope: Vec<u8>,
    /// What happened to it, oldest first.
    pub events: Vec<Happening>,
}

/// Which receipts are meant; a field that says nothing matches all.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ReceiptFilter {
    pub states: Vec<State>,
    pub tenant: Option<String>,
    pub campaign: Option<String>,
    pub class: Option<String>,
    /// As `isp:google`.
    pub destination: Option<String>,
    pub pool: Option<String>,
    pub settled_since: Option<Wall>,
    pub settled_before: Option<Wall>,
}

/// How many dead letters have one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseCount {
    /// Why they were given up.
    pub cause: String,
    /// The class of their last error.
    pub error_class: String,
    /// Its status, where there was one.
    pub code: Option<u16>,
    /// Where they went.
    pub destination: String,
    /// How many.
    pub count: u64,
}

/// Why receipts cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("receipts cannot be read: {0}")]
pub struct ReceiptsError(pub String);

/// Answers what became of messages. Calls may wait for a disk.
pub trait Receipts: Send + Sync {
    /// The receipt of one message, if it is done with and kept.
    fn get(&self, seq: Seq) -> Result<Option<Receipt>, ReceiptsError>;

    /// Receipts that match, newest first, with numbers below `before`.
    fn list(
        &self,
        filter: &ReceiptFilter,
        before: Option<Seq>,
        max: usize,
    ) -> Result<Vec<Receipt>, ReceiptsError>;

    /// What happened so far to a message that is not done with, oldest first.
    fn events(&self, seq: Seq) -> Result<Vec<Happening>, ReceiptsError>;

    /// How many receipts match.
    fn count(&self, filter: &ReceiptFilter) -> Result<u64, ReceiptsError>;

    /// Dead letters that match, grouped by cause, most first.
    fn causes(&self, filter: &ReceiptFilter) -> Result<Vec<CauseCount>, ReceiptsError>;
}
