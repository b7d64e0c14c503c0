//! The way in: messages on their way to the disk.
//!
//! API, SMTP submission and other sources hand submissions over here. The
//! answer comes when they are durable, on the node's thread: whoever gives a
//! callback keeps it short.

use std::sync::Arc;

use outflow_core::engine::admission::TooManyFlows;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Recipient, Seq};
use outflow_core::time::Wall;

/// What is called with an answer, once.
pub type Then<T> = Box<dyn FnOnce(T) + Send>;

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
    /// Whether the recipient reads what he gets, as far as the sender knows.
    pub engaged: Option<bool>,
    /// What belongs to this message alone.
    pub envelope: Arc<[u8]>,
    /// What is to be delivered. Messages of one batch that share it share its
    /// place on the disk.
    pub body: Arc<[u8]>,
}

/// What a submission became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The message's number.
    pub seq: Seq,
    /// When it was accepted.
    pub accepted_at: Wall,
    /// Its idempotency key was known: this is the message of then.
    pub known: bool,
}

/// A message that was taken in; or why this one was not, though others of its
/// batch may have been. Nothing is left of it.
pub type Taken = Result<Given, TooManyFlows>;

/// Why a batch was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many are on their way to the disk: try again soon.
    #[error("too many messages are on their way to the disk")]
    Busy,
    /// The node is shutting down.
    #[error("the server is shutting down")]
    Closing,
    /// The disk did not take them, as far as is known.
    #[error("the store cannot take messages now")]
    NotStored,
}

/// Takes messages in.
pub trait Intake: Send + Sync {
    /// Hands a batch over; `then` hears of it once it is durable, one entry
    /// per message, in order.
    fn submit(&self, batch: Vec<Submission>, then: Then<Result<Vec<Taken>, Refused>>);

    /// The same, for a caller that cannot say which messages of it were taken:
    /// all of them are, or none.
    fn submit_whole(&self, batch: Vec<Submission>, then: Then<Result<Vec<Taken>, Refused>>);
}
