//! New messages on their way to the disk.
//!
//! What is not yet durable is bounded: beyond that the caller hears "later"
//! instead of a promise that memory would have to keep.

/// Messages that may be on their way to the disk at once.
pub(crate) const PENDING_MAX: usize = 100_000;
