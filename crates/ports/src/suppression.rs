//! The suppression list: who is not sent to any more, kept for each tenant.
//!
//! Two sides: [`Screen`] is asked by the node before anything is sent, and must
//! not wait; [`Suppressions`] is what people and programs read and change, and
//! waits for the disk. What a call has returned from is durable and in force.

use std::fmt;
use std::sync::Arc;

use outflow_core::flow::FlowKey;
use outflow_core::message::Recipient;
use outflow_core::message_id::MessageId;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::suppression::Reason;
use outflow_core::time::Wall;

use crate::parcel::ParcelRef;
use crate::registry::Audit;

/// The most entries that one call takes or yields.
pub const PAGE_MAX: usize = 10_000;
/// Where entries come from that the server learnt by itself.
pub const LEARNT_FROM: [&str; 4] = ["reply", "dsn", "arf", "events"];
/// Bytes of what is kept of a far end's or a person's words.
pub const DETAIL_BYTES_MAX: usize = 256;

/// Why a recipient is not sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// Whose mail.
    pub tenant: String,
    /// To whom: the address in lower case.
    pub recipient: String,
    /// Why.
    pub reason: Reason,
    /// Held back until a person has looked: not in force.
    pub is_held: bool,
    /// Since when.
    pub since: Wall,
    /// Where it comes from: `reply`, `dsn`, `arf`, `events`, `api`, `import`.
    pub source: String,
    /// Who judged, as `isp:google`; empty if nobody knows.
    pub destination: String,
    /// The message that taught it; empty if none did.
    pub message: String,
    /// What was said, cut.
    pub detail: String,
}

/// What names an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuppressionKey {
    /// Whose mail.
    pub tenant: String,
    /// To whom.
    pub recipient: String,
    /// Why.
    pub reason: Reason,
}

impl Suppression {
    /// Whether the server learnt it by itself.
    pub fn is_learnt(&self) -> bool {
        LEARNT_FROM.contains(&self.source.as_str())
    }

    /// What names it.
    pub fn key(&self) -> SuppressionKey {
        SuppressionKey {
            tenant: self.tenant.clone(),
            recipient: self.recipient.clone(),
            reason: self.reason,
        }
    }
}

/// Which entries are meant; a field that says nothing matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct SuppressionFilter {
    pub tenant: Option<String>,
    pub recipient: Option<String>,
    pub reason: Option<Reason>,
    pub is_held: Option<bool>,
    /// As `isp:google`.
    pub destination: Option<String>,
    pub since: Option<Wall>,
    /// Before this.
    pub until: Option<Wall>,
    /// Only what the server learnt by itself from replies and reports.
    pub is_learnt: bool,
}

/// What becomes of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuppressionChange {
    /// They are taken away.
    Remove,
    /// They are not in force until a person has looked.
    Hold,
    /// They are in force.
    Approve,
}

/// What became of one entry that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It is new.
    New,
    /// It was there before, and in force.
    Known,
    /// It was held, and is in force now.
    Approved,
    /// It was held, and still is.
    Held,
}

/// What became of entries that were put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// So many are new.
    pub added: u64,
    /// So many were there before.
    pub known: u64,
    /// Each of them, in the order in which they were given.
    pub placed: Vec<Placed>,
}

impl Put {
    /// One more.
    pub fn push(&mut self, placed: Placed) {
        match placed {
            Placed::New => self.added += 1,
            Placed::Known | Placed::Approved | Placed::Held => self.known += 1,
        }
        self.placed.push(placed);
    }
}

/// Why the list cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum SuppressionError {
    /// The disk, or what manages it.
    #[error("the suppression list cannot be read or written: {0}")]
    Storage(String),
    /// There is no room.
    #[error("the suppression list is full: it has {0} entries")]
    Full(u64),
    /// A tenant has as many entries as one tenant may have.
    #[error(
        "{0} has as many entries on the suppression list as one tenant may have: take some off it"
    )]
    Quota(String),
}

/// Keeps the list. All calls may wait for a disk.
pub trait Suppressions: Send + Sync {
    /// How many more entries a tenant may have now.
    fn room_for(&self, _tenant: &str) -> Result<u64, SuppressionError> {
        Ok(u64::MAX)
    }

    /// Puts entries on the list, all or none, with a line of audit if one is
    /// given; with no entries, that line alone. What is there already stays as
    /// it is, but an entry that is held and put again by a person or a program,
    /// who is sure, is in force. What was learnt approves nothing.
    fn put(
        &self,
        entries: &[Suppression],
        audit: Option<Audit<'_>>,
    ) -> Result<Put, SuppressionError>;

    /// Changes up to [`PAGE_MAX`] entries that match: which, and since when they
    /// are there. Fewer means that there are no more.
    fn change(
        &self,
        filter: &SuppressionFilter,
        change: SuppressionChange,
    ) -> Result<Vec<(SuppressionKey, Wall)>, SuppressionError>;

    /// Entries that match, in the order of their keys, behind `after`.
    fn list(
        &self,
        filter: &SuppressionFilter,
        after: Option<&SuppressionKey>,
        max: usize,
    ) -> Result<Vec<Suppression>, SuppressionError>;

    /// How many entries match.
    fn count(&self, filter: &SuppressionFilter) -> Result<u64, SuppressionError>;

    /// All that is in force, in no order: tenant, recipient, reason, since.
    fn load(&self, each: &mut dyn FnMut(&str, &str, Reason, Wall)) -> Result<(), SuppressionError>;
}

/// What stops a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Why.
    pub reason: Reason,
    /// Since when.
    pub since: Wall,
}

/// A message whose recipient does not exist, says the far end.
#[derive(Clone, Debug)]
pub struct NoSuchRecipient {
    /// Its flow.
    pub key: Arc<FlowKey>,
    /// Which message.
    pub message: MessageId,
    /// Where its recipient is written.
    pub parcel: Option<ParcelRef>,
    /// What was said.
    pub error: LastError,
}

/// Looks at every message before it is sent. Calls must not wait.
pub trait Screen: Send + Sync + fmt::Debug {
    /// Another number whenever somebody more may be stopped than before.
    fn generation(&self) -> u64;

    /// What stops a message of this flow to this recipient, if anything does.
    fn stops(&self, key: &FlowKey, recipient: Recipient) -> Option<Stopped>;

    /// The far end says that a recipient does not exist.
    fn bounced(&self, bounced: NoSuchRecipient);
}
