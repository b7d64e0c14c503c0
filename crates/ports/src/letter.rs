//! What a parcel says, for those who write and those who carry it.
//!
//! The store keeps bytes. Whoever takes a message in writes an [`Envelope`] and
//! a [`Content`]; whoever carries it reads them. Both are JSON on the disk, so
//! that fields can be added and an operator can read a stored message.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::parcel::Parcel;

/// The header field of outgoing mail by which reports are matched to their
/// message, whatever its Message-ID and its return address are: its value is an
/// address that we signed.
pub const RETURN_FIELD: &str = "X-Outflow";

/// What belongs to one message alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Whom it goes to: an address, a number, a device token.
    pub to: String,
    /// Who sends it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Where bounces go, if not to the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_path: Option<String>,
    /// Its subject, for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The sender's own labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// A digest of all that was submitted, by which a repeated idempotency key
    /// with other content is noticed.
    #[serde(default)]
    pub digest: u64,
}

/// What is to be delivered, the same for all recipients of one submission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Content {
    /// The Message-ID, fixed at acceptance.
    pub message_id: String,
    /// The Date, in seconds since the epoch, fixed at acceptance.
    pub date: i64,
    /// The From field as written.
    pub from: String,
    /// The To field: all primary recipients.
    pub to: Vec<String>,
    /// The Cc field.
    pub cc: Vec<String>,
    /// The Reply-To field.
    pub reply_to: Option<String>,
    /// The Subject field.
    pub subject: Option<String>,
    /// Plain text.
    pub text: Option<String>,
    /// HTML.
    pub html: Option<String>,
    /// Further header fields, checked at acceptance.
    pub headers: BTreeMap<String, String>,
    /// Files.
    pub attachments: Vec<Attachment>,
    /// How a recipient takes himself off the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsubscribe: Option<Unsubscribe>,
    /// A whole message as it goes over the wire, in base64; then nothing else
    /// of this is used.
    pub raw: Option<String>,
}

/// A file beside the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name.
    pub filename: String,
    /// Its media type.
    pub content_type: String,
    /// Its bytes in base64.
    pub content: String,
    /// Under which the HTML shows it (`cid:`); it then belongs to the HTML and
    /// is no file for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
}

/// How a recipient takes himself off a list (RFC 2369, RFC 8058).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unsubscribe {
    /// A page, by `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// An address that takes his wish by mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mailto: Option<String>,
    /// Whether a `POST` to the page is enough, without a question.
    pub one_click: bool,
}

/// A parcel that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("a stored message cannot be read: {0}")]
pub struct Unreadable(#[from] serde_json::Error);

impl Envelope {
    /// As it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers become JSON")
    }

    /// As it was stored.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unreadable> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

impl Content {
    /// As it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers become JSON")
    }

    /// As it was stored.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unreadable> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

impl Parcel {
    /// What it says.
    pub fn open(&self) -> Result<(Envelope, Content), Unreadable> {
        let envelope = Envelope::from_bytes(&self.envelope)?;
        Ok((envelope, Content::from_bytes(&self.body)?))
    }
}
