//! A message as somebody writes it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::fields::{
    Base64Text, ChannelWord, ClassWord, KeyText, LineText, MailboxText, NameText, Recipients,
    TagMap,
};
use crate::object::{objects, some_object};

/// A message to be sent. `tenant`, `class` and `pool` default to `default`,
/// `normal` and `default`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = NewMessage)]
#[serde(deny_unknown_fields)]
pub struct MessageForm {
    /// How it travels: `email`.
    #[schema(value_type = Option<ChannelWord>)]
    pub channel: Option<String>,
    /// Whose it is. A token that is bound to a tenant overrides it.
    #[schema(value_type = Option<NameText>)]
    pub tenant: Option<String>,
    /// How urgent it is: `critical`, `high`, `normal` or `low`.
    #[schema(value_type = Option<ClassWord>)]
    pub class: Option<String>,
    /// What it belongs to.
    #[schema(value_type = Option<NameText>)]
    pub campaign: Option<String>,
    /// Which accounts may send it.
    #[schema(value_type = Option<NameText>)]
    pub pool: Option<String>,
    /// Who sends it: `user@example.com` or `A Person <user@example.com>`.
    #[schema(value_type = MailboxText, required = true)]
    pub from: Option<String>,
    /// Whom it goes to: one address, or several, which fan out into one
    /// message each.
    #[serde(default)]
    #[schema(value_type = Recipients, required = true)]
    pub to: OneOrMany,
    /// Further recipients, named in the Cc field.
    #[serde(default)]
    #[schema(value_type = Vec<MailboxText>, max_items = 1000)]
    pub cc: Vec<String>,
    /// Further recipients, named nowhere.
    #[serde(default)]
    #[schema(value_type = Vec<MailboxText>, max_items = 1000)]
    pub bcc: Vec<String>,
    /// Where answers go.
    #[schema(value_type = Option<MailboxText>)]
    pub reply_to: Option<String>,
    /// Where bounces go, if not to the sender.
    pub return_path: Option<String>,
    /// The subject.
    #[schema(value_type = Option<LineText>)]
    pub subject: Option<String>,
    /// Plain text.
    pub text: Option<String>,
    /// HTML.
    pub html: Option<String>,
    /// Further header fields.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Files.
    #[serde(default, deserialize_with = "objects")]
    #[schema(max_items = 100)]
    pub attachments: Vec<AttachmentForm>,
    /// How a recipient takes himself off the list: the `List-Unsubscribe`
    /// fields.
    #[serde(default, deserialize_with = "some_object")]
    pub unsubscribe: Option<UnsubscribeForm>,
    /// A whole RFC 5322 message in base64, instead of all of the above but
    /// `from` and `to`.
    #[schema(value_type = Option<Base64Text>)]
    pub raw: Option<String>,
    /// Not to be sent before this, in RFC 3339.
    #[schema(format = DateTime)]
    pub not_before: Option<String>,
    /// Of no use from this on, in RFC 3339.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Whether the recipient reads what he gets, as far as the sender knows: a
    /// hint. While an account is being warmed up, messages with `false` go
    /// behind others.
    pub engaged: Option<bool>,
    /// The sender's own labels.
    #[serde(default)]
    #[schema(value_type = TagMap)]
    pub tags: BTreeMap<String, String>,
    /// The same key twice is one message.
    #[schema(value_type = Option<KeyText>)]
    pub idempotency_key: Option<String>,
}

/// A file.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewAttachment)]
#[serde(deny_unknown_fields)]
pub struct AttachmentForm {
    /// Its name.
    #[schema(max_length = 255, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")]
    pub filename: String,
    /// Its media type.
    #[schema(pattern = r"^[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}$")]
    pub content_type: String,
    /// Its bytes in base64.
    #[schema(value_type = Base64Text)]
    pub content: String,
    /// Under which the HTML shows it, as in `<img src="cid:logo">`. It then
    /// belongs to the HTML and is no file for the reader.
    #[schema(min_length = 1, max_length = 256, pattern = r"^[!-;=?-~]+$")]
    pub content_id: Option<String>,
}

/// How a recipient takes himself off a list: a page, an address, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewUnsubscribe)]
#[serde(deny_unknown_fields)]
pub struct UnsubscribeForm {
    /// A page, by `https`.
    #[schema(max_length = 900, pattern = r"^https://[!-;=?-~]+$")]
    pub url: Option<String>,
    /// An address that takes his wish by mail.
    #[schema(max_length = 900)]
    pub mailto: Option<String>,
    /// Whether a `POST` to the page is enough, without a question (RFC 8058).
    #[serde(default)]
    pub one_click: bool,
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

/// Several messages, each accepted or rejected by itself.
#[derive(Debug, ToSchema)]
#[schema(as = NewMessages)]
#[serde(deny_unknown_fields)]
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
