//! What operators set, as documents: accounts, policies, pauses, tokens,
//! reviews of dead letters; what the program keeps beside them (incidents,
//! warm-ups); and the audit of every change to them.
//!
//! Calls wait for the disk: a change is durable, together with its line of
//! audit, when the call returns. Values are JSON that the caller understands.

use std::ops::Range;

use outflow_core::time::Wall;

/// What a document is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An account.
    Account,
    /// A policy.
    Policy,
    /// A pause.
    Pause,
    /// An access token, hashed.
    Token,
    /// A review of dead letters.
    Review,
    /// An incident at a destination.
    Incident,
    /// A sender that is being warmed up.
    WarmUp,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Account,
        Self::Policy,
        Self::Pause,
        Self::Token,
        Self::Review,
        Self::Incident,
        Self::WarmUp,
    ];

    /// The word used in tables and the audit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Policy => "policy",
            Self::Pause => "pause",
            Self::Token => "token",
            Self::Review => "review",
            Self::Incident => "incident",
            Self::WarmUp => "warm_up",
        }
    }
}

/// One document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What it is about.
    pub kind: Kind,
    /// Its name among its kind.
    pub id: String,
    /// JSON. None if it was taken away: a start value from the settings file
    /// does not come back then.
    pub value: Option<String>,
    /// How often it changed.
    pub version: u64,
    /// When it last changed.
    pub changed_at: Wall,
}

/// Who changed what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number, by which lists go on.
    pub no: u64,
    /// When.
    pub at: Wall,
    /// The name of the token, or of the part of the server, that did it.
    pub actor: String,
    /// What was done: `account.set`, `messages.cancel`.
    pub action: String,
    /// To what.
    pub target: String,
    /// JSON: what it was and what it is now, without secrets.
    pub detail: String,
}

/// A change to be made.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// What it is about.
    pub kind: Kind,
    /// Its name among its kind.
    pub id: &'a str,
    /// The new JSON; none takes the document away.
    pub value: Option<&'a str>,
    /// Only if it has this version still; 0 if it must be new.
    pub expected: Option<u64>,
}

/// What is written into the audit.
#[derive(Clone, Debug)]
pub struct Audit<'a> {
    /// When.
    pub at: Wall,
    /// Who.
    pub actor: &'a str,
    /// What was done.
    pub action: &'a str,
    /// To what.
    pub target: &'a str,
    /// JSON, without secrets.
    pub detail: &'a str,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Somebody else changed it meanwhile.
    #[error("{kind} {id} has changed meanwhile: it is at version {version} now")]
    Conflict {
        /// What it is about.
        kind: &'static str,
        /// Its name.
        id: String,
        /// Its version now.
        version: u64,
    },
    /// The disk, or what manages it.
    #[error("the registry cannot be read or written: {0}")]
    Storage(String),
}

/// Keeps what operators set.
pub trait Registry: Send + Sync {
    /// All documents of a kind, those taken away as well, by id.
    fn list(&self, kind: Kind) -> Result<Vec<Document>, RegistryError>;

    /// One document, also if it was taken away.
    fn get(&self, kind: Kind, id: &str) -> Result<Option<Document>, RegistryError>;

    /// Makes a change and writes it into the audit, both or neither. The new
    /// version.
    fn change(&self, change: Change<'_>, audit: Audit<'_>) -> Result<u64, RegistryError>;

    /// Makes a change that nobody need be told of: what the program itself
    /// counts or remembers. The new version.
    fn keep(&self, change: Change<'_>, at: Wall) -> Result<u64, RegistryError>;

    /// Writes an action that changed no document into the audit.
    fn audit(&self, audit: Audit<'_>) -> Result<(), RegistryError>;

    /// Entries of the audit of a time, newest first, before entry `before`.
    fn audit_entries(
        &self,
        times: Range<Wall>,
        before: Option<u64>,
        max: usize,
    ) -> Result<Vec<AuditEntry>, RegistryError>;
}
