//! Texts from outside that become names, labels or header fields: bounded, and
//! without anything that could start a new line.

pub use outflow_ports::bounded::{NAME_BYTES_MAX, TextError, idempotency_key, line, name};

/// Bytes of a reason or comment.
pub const REASON_BYTES_MAX: usize = 1_000;

/// Whether a number can be where a page ended: the record counts in signed
/// numbers.
pub fn is_cursor(number: u64) -> bool {
    i64::try_from(number).is_ok()
}
