//! Texts from outside that become names, keys or times: bounded, and without
//! anything that could start a new line. The same for every way in.

use jiff::Timestamp;
use outflow_core::time::Wall;

/// Bytes of the name of a tenant, a campaign, a pool, an account.
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of an idempotency key.
const KEY_BYTES_MAX: usize = 255;

/// Why a text is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing was written.
    #[error("must not be empty")]
    Empty,
    /// Too much was written.
    #[error("is too long: at most {0} bytes")]
    TooLong(usize),
    /// A line break, a NUL or another control character.
    #[error("has a control character in it, such as a line break")]
    Control,
    /// A name that means each of them.
    #[error("must be one name, not *")]
    Any,
    /// A space before or after it.
    #[error("must not begin or end with a space")]
    Space,
    /// A character that is not printable ASCII.
    #[error("must be of printable ASCII characters")]
    NotAscii,
}

/// A text that is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a time as in 2026-01-31T12:00:00Z, between the years 1970 and 2262")]
pub struct NotATime;

/// Text of one line.
pub fn line(text: &str, bytes_max: usize) -> Result<(), TextError> {
    if text.len() > bytes_max {
        return Err(TextError::TooLong(bytes_max));
    }
    match text.chars().any(char::is_control) {
        true => Err(TextError::Control),
        false => Ok(()),
    }
}

/// The name of a tenant, a campaign, a pool, an account.
pub fn name(text: &str) -> Result<(), TextError> {
    line(text, NAME_BYTES_MAX)?;
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.trim() != text {
        return Err(TextError::Space);
    }
    match text {
        "*" => Err(TextError::Any),
        _ => Ok(()),
    }
}

/// An idempotency key.
pub fn idempotency_key(text: &str) -> Result<(), TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.len() > KEY_BYTES_MAX {
        return Err(TextError::TooLong(KEY_BYTES_MAX));
    }
    match text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        true => Ok(()),
        false => Err(TextError::NotAscii),
    }
}

/// A time in RFC 3339.
pub fn time(text: &str) -> Result<Wall, NotATime> {
    let stamp: Timestamp = text.parse().map_err(|_| NotATime)?;
    let nanos = i64::try_from(stamp.as_nanosecond()).map_err(|_| NotATime)?;
    (0..i64::MAX)
        .contains(&nanos)
        .then_some(Wall(nanos))
        .ok_or(NotATime)
}
