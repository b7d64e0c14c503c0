//! A message as somebody writes it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

/// A message to be sent. `tenant`, `class` and `pool` default to `default`,
/// `normal` and `default`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = NewMessage)]
#[serde(deny_unknown_fields)]
pub struct MessageForm {
    /// How it travels: `email`.
    pub channel: Option<String>,
    /// Whose it is. A token that is bound to a tenant overrides it.
    pub tenant: Option<String>,
    /// How urgent it is: `critical`, `high`, `normal` or `low`.
    pub class: Option<String>,
    /// What it belongs to.
    pub campaign: Option<String>,
    /// Which accounts may send it.
    pub pool: Option<String>,
    /// Who sends it: `user@example.com` or `A Person <user@example.com>`.
    #[schema(value_type = String, required = true)]
    pub from: Option<String>,
    /// Whom it goes to: one address, or several, which fan out into one
    /// message each.
    #[serde(default)]
    #[schema(value_type = Recipients, required = true)]
    pub to: OneOrMany,
    /// Further recipients, named in the Cc field.
    #[serde(default)]
    pub cc: Vec<String>,
    /// Further recipients, named nowhere.
    #[serde(default)]
    pub bcc: Vec<String>,
    /// Where answers go.
    pub reply_to: Option<String>,
    /// Where bounces go, if not to the sender.
    pub return_path: Option<String>,
    /// The subject.
    pub subject: Option<String>,
    /// Plain text.
    pub text: Option<String>,
    /// HTML.
    pub html: Option<String>,
    /// Further header fields.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Files.
    #[serde(default)]
    pub attachments: Vec<AttachmentForm>,
    /// A whole RFC 5322 message in base64, instead of all of the above but
    /// `from` and `to`.
    pub raw: Option<String>,
    /// Not to be sent before this, in RFC 3339.
    #[schema(format = DateTime)]
    pub not_before: Option<String>,
    /// Of no use from this on, in RFC 3339.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// The sender's own labels.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The same key twice is one message.
    pub idempotency_key: Option<String>,
}

/// A file.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewAttachment)]
#[serde(deny_unknown_fields)]
pub struct AttachmentForm {
    /// Its name.
    pub filename: String,
    /// Its media type.
    pub content_type: String,
    /// Its bytes in base64.
    pub content: String,
}

/// One address, or several.
#[derive(Debug, Default)]
pub enum OneOrMany {
    /// None was written.
    #[default]
    None,
    /// One.
    One(String),
    /// Several, or a list of one.
    Many(Vec<String>),
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address or a list of addresses")
            }

            fn visit_str<E>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany, A::Error> {
                let mut many = Vec::new();
                while let Some(text) = list.next_element()? {
                    many.push(text);
                }
                Ok(OneOrMany::Many(many))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// One address, or several.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "says in the OpenAPI document what `to` can be")]
enum Recipients {
    One(String),
    Many(Vec<String>),
}

/// Several messages, each accepted or rejected by itself.
#[derive(Debug, ToSchema)]
#[schema(as = NewMessages)]
#[expect(dead_code, reason = "says in the OpenAPI document what a batch is")]
pub struct BatchForm {
    /// At most 10,000.
    #[schema(max_items = 10000)]
    messages: Vec<MessageForm>,
}

/// One message, or several.
#[derive(Debug, ToSchema)]
#[schema(as = Submission)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "never built: it describes what can be submitted"
)]
pub enum SubmitForm {
    /// One.
    One(MessageForm),
    /// Several.
    Batch(BatchForm),
}
