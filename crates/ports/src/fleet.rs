//! What nodes of a fleet share besides counts: the policies that were set at run
//! time.
//!
//! A change is written here first, where it gets the next version, and is then
//! in force on every node that follows.

use crate::intake::Then;

/// A policy as the fleet keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDocument {
    /// What it is about.
    pub id: String,
    /// JSON; none if it was taken away.
    pub value: Option<String>,
    /// With which version it was written.
    pub version: u64,
}

/// All that a fleet shares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// The version of the last change.
    pub version: u64,
    /// Every document that was ever shared.
    pub documents: Vec<SharedDocument>,
}

/// The keeper of what is shared cannot be reached; nothing was changed, as far
/// as is known. The text has no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ledger cannot be reached: {0}")]
pub struct FleetAway(pub String);

/// Shares policies with other nodes.
pub trait Fleet: Send + Sync {
    /// Writes a document, or takes it away. Its version.
    fn publish(&self, id: String, value: Option<String>, then: Then<Result<u64, FleetAway>>);

    /// All that is shared.
    fn read(&self, then: Then<Result<Shared, FleetAway>>);

    /// The last version that was heard of. Whoever has an older one reads.
    fn latest(&self) -> u64;
}
