//! Header fields, by type: a name is a token and a value is one line, so that no
//! value can begin a field, or a body, of its own.

use std::fmt;

const NAME_BYTES_MAX: usize = 76;
const VALUE_BYTES_MAX: usize = 16_000;

/// The name of a header field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeaderName(String);

/// What a header field says, before folding and encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderValue(String);

/// Why a text is no part of a header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Not made of printable ASCII without a colon, or too long.
    #[error("the name of a header field is at most 76 printable ASCII letters without a colon")]
    Name,
    /// A line break, a NUL or another control character.
    #[error("a header field is one line, without control characters")]
    Control,
    /// Too long.
    #[error("a header field has at most 16000 bytes")]
    TooLong,
}

impl HeaderName {
    /// Takes a name.
    pub fn new(name: impl Into<String>) -> Result<Self, HeaderError> {
        let name = name.into();
        let is_token = |byte: u8| matches!(byte, 33..=126) && byte != b':';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_token) {
            return Err(HeaderError::Name);
        }
        Ok(Self(name))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is this name, in whatever case.
    pub fn is(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

impl HeaderValue {
    /// Takes a value. A tab becomes a space; any other control character, line
    /// breaks above all, is refused.
    pub fn new(value: impl Into<String>) -> Result<Self, HeaderError> {
        let value = value.into();
        if value.len() > VALUE_BYTES_MAX {
            return Err(HeaderError::TooLong);
        }
        let forbidden = |letter: char| letter.is_control() && letter != '\t';
        if value.contains(forbidden) {
            return Err(HeaderError::Control);
        }
        Ok(Self(value.replace('\t', " ").trim().to_owned()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The longest run of bytes without a space: a line cannot be folded inside
    /// it.
    pub(crate) fn longest_word(&self) -> usize {
        self.0.split(' ').map(str::len).max().unwrap_or(0)
    }
}

impl fmt::Display for HeaderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
