//! What is carried: the content of one message, read where it is needed.
//!
//! The node passes on *where* a parcel lies; whoever carries it reads it, on a
//! thread that may wait for a disk.

use std::fmt;
use std::sync::Arc;

/// The content of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// What belongs to this message alone: addresses, tags.
    pub envelope: Arc<[u8]>,
    /// What is to be delivered, perhaps shared with other messages.
    pub body: Arc<[u8]>,
}

/// Why a parcel cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParcelError {
    /// Not now; perhaps later.
    #[error("the content of a message cannot be read: {0}")]
    Unread(String),
    /// What was stored does not hold, or is gone: never.
    #[error("the stored content of a message is damaged: {0}")]
    Damaged(String),
}

/// Reads parcels, from any thread.
pub trait ParcelSource: Send + Sync {
    /// The parcel whose envelope and body lie at these places.
    fn read(&self, envelope: u64, body: u64) -> Result<Parcel, ParcelError>;

    /// Only the envelope of that parcel; a source that can leaves the body
    /// where it is.
    fn read_envelope(&self, envelope: u64, body: u64) -> Result<Arc<[u8]>, ParcelError> {
        Ok(self.read(envelope, body)?.envelope)
    }

    /// The whole parcel, if it is small and can be had without waiting for a
    /// disk. None says nothing about it.
    fn read_now(&self, _envelope: u64, _body: u64) -> Option<Parcel> {
        None
    }
}

/// Where a parcel lies.
#[derive(Clone)]
pub struct ParcelRef {
    source: Arc<dyn ParcelSource>,
    envelope: u64,
    body: u64,
}

impl ParcelRef {
    /// A parcel at these places of `source`, which alone knows what they mean.
    pub fn new(source: Arc<dyn ParcelSource>, envelope: u64, body: u64) -> Self {
        Self {
            source,
            envelope,
            body,
        }
    }

    /// Reads it. May wait for a disk.
    pub fn read(&self) -> Result<Parcel, ParcelError> {
        self.source.read(self.envelope, self.body)
    }

    /// Reads it if it is small and no disk need be waited for.
    pub fn read_now(&self) -> Option<Parcel> {
        self.source.read_now(self.envelope, self.body)
    }

    /// Reads what belongs to the message alone. May wait for a disk.
    pub fn read_envelope(&self) -> Result<Arc<[u8]>, ParcelError> {
        self.source.read_envelope(self.envelope, self.body)
    }
}

impl fmt::Debug for ParcelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParcelRef({}, {})", self.envelope, self.body)
    }
}
