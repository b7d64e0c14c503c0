//! New messages on their way to the disk.
//!
//! What is not yet durable is bounded: beyond that the caller hears "later"
//! instead of a promise that memory would have to keep.

use std::sync::Arc;

use outflow_core::flow::FlowKey;
use outflow_core::message::Recipient;
use outflow_core::time::Wall;

/// Messages that may be on their way to the disk at once.
pub(crate) const PENDING_MAX: usize = 100_000;

/// A message that somebody wants sent.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Which flow it belongs to.
    pub key: FlowKey,
    /// The same submission twice is one message.
    pub idempotency_key: Option<Arc<str>>,
    /// Not to be sent before this.
    pub not_before: Option<Wall>,
    /// Of no use from this on.
    pub expires_at: Wall,
    /// Whom it goes to.
    pub recipient: Recipient,
    /// What it takes from each limit.
    pub cost: u32,
    /// What is to be delivered.
    pub body: Arc<[u8]>,
}

/// Why a submission was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Too many are on their way to the disk: try again soon.
    Busy,
    /// The node is shutting down.
    Closing,
}
