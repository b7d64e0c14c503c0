//! Texts from outside that become names, labels or header fields: bounded, and
//! without anything that could start a new line.

/// Bytes of the name of a tenant, a campaign, a pool, an account.
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of a reason or comment.
pub const REASON_BYTES_MAX: usize = 1_000;
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

/// Whether a number can be where a page ended: the record counts in signed
/// numbers.
pub fn is_cursor(number: u64) -> bool {
    i64::try_from(number).is_ok()
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
