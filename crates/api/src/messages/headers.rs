//! Header fields that a sender may add.
//!
//! Names are tokens and values one line, so that no value can begin a field of
//! its own. Fields that Outflow writes, or that say how a message is built, are
//! not for senders.

use crate::bounded;

/// Fields of one message.
pub const HEADERS_MAX: usize = 100;
const NAME_BYTES_MAX: usize = 76;
const VALUE_BYTES_MAX: usize = 8_000;

/// Fields that are said elsewhere, or are not for senders to say.
const RESERVED: [&str; 16] = [
    "from",
    "sender",
    "to",
    "cc",
    "bcc",
    "subject",
    "reply-to",
    "date",
    "message-id",
    "return-path",
    "received",
    "mime-version",
    "dkim-signature",
    "arc-seal",
    "arc-message-signature",
    "arc-authentication-results",
];
const RESERVED_STARTS: [&str; 3] = ["content-", "resent-", "x-outflow-"];

/// Why a field is not taken; none if it is.
pub fn objection(name: &str, value: &str) -> Option<String> {
    let is_token = |byte: u8| matches!(byte, 33..=126) && byte != b':';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_token) {
        return Some("is not the name of a header field".to_owned());
    }
    let lower = name.to_ascii_lowercase();
    let starts = RESERVED_STARTS.iter();
    if RESERVED.contains(&lower.as_str()) || starts.clone().any(|start| lower.starts_with(start)) {
        return Some(
            "is not for senders to set as a header: use the field of the message".to_owned(),
        );
    }
    let value = value.replace('\t', " ");
    let wrong = bounded::line(&value, VALUE_BYTES_MAX).err()?;
    Some(wrong.to_string())
}
