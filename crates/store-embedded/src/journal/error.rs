//! Why a journal cannot be read.

use std::io;

use super::segment::HeaderError;

/// What the system says of a disk that cannot read a block.
const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk.
    #[error("{name}: {error}")]
    Io {
        /// Which file.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// A segment has no header that holds.
    #[error("{name}: {error}")]
    Header {
        /// Which file.
        name: String,
        /// What is wrong with it.
        error: HeaderError,
    },
    /// A segment that the list has, or that others stand around, is not there.
    #[error("{0} is missing: it holds messages, or says what became of some")]
    Missing(String),
    /// A segment was cut.
    #[error("{name} has {bytes} bytes, it had {listed}: it was cut")]
    Cut {
        /// Which file.
        name: String,
        /// How long it is.
        bytes: u64,
        /// How long it was at least.
        listed: u64,
    },
    /// There are segments that a list belongs to.
    #[error("neither segments.list nor segments.copy can be read: {0}")]
    NoList(String),
    /// What was durable does not hold any more.
    #[error("{name} is damaged at byte {offset}: what was written there does not hold")]
    Damaged {
        /// Which file.
        name: String,
        /// Where.
        offset: u64,
    },
}

impl JournalError {
    /// Whether something that was stored is lost or damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Io { error, .. } => error.raw_os_error() == Some(EIO),
            Self::Header { error, .. } => *error == HeaderError::Damaged,
            Self::Missing(_) | Self::Cut { .. } | Self::NoList(_) | Self::Damaged { .. } => true,
        }
    }
}
