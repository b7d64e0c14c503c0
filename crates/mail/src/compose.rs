//! From a letter, as it is stored, to a mail, as it goes over the wire.
//!
//! Text and HTML are encoded to 7 bits, so that any server takes them; only a
//! message that came whole can have 8-bit text, and it is brought down to 7 bits
//! if the server says that it [cannot](Can) take it. Whatever is wrong with a
//! letter is wrong for good: sending it again would not help.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_builder::MessageBuilder;
use mail_builder::headers::HeaderType;
use mail_builder::headers::address::Address as AddressField;
use mail_builder::headers::date::Date;
use mail_builder::headers::message_id::MessageId;
use mail_builder::headers::raw::Raw;
use mail_builder::headers::text::Text;
use mail_builder::headers::url::URL;
use mail_parser::HeaderValue as Parsed;
use mail_parser::parsers::MessageStream;
use outflow_ports::letter::{Content, Envelope};

use crate::address::{Address, AddressError, Mailbox};
use crate::header::{HeaderError, HeaderName, HeaderValue};
use crate::lines::{self, LINE_BYTES_MAX};
use crate::structure::{MailStructure, NESTING_MAX};
use crate::unsubscribe::{Unsubscribe, UnsubscribeError};
use crate::{mime, raw};

/// The most bytes of a mail. Servers take less: what they take is theirs to say.
const MAIL_BYTES_MAX: usize = 256 << 20;
/// The longest word of a field that is written as it is; longer ones become
/// encoded words, which can be folded.
const WORD_BYTES_MAX: usize = 900;

/// Fields that composition writes itself.
const OWN: [&str; 12] = [
    "From",
    "To",
    "Cc",
    "Bcc",
    "Reply-To",
    "Subject",
    "Date",
    "Message-ID",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
    "Content-Disposition",
];

/// What the server can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Can {
    /// 8-bit text in bodies (8BITMIME).
    pub eight_bit: bool,
}

/// Whether a mail needs SMTPUTF8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Utf8 {
    /// It does not.
    No,
    /// Its header has UTF-8, as it came: better with SMTPUTF8, but most servers
    /// take it without.
    Wanted,
    /// An address is in UTF-8: without SMTPUTF8 it cannot be said.
    Required,
}

/// A mail as it goes over the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// Where bounces go; none for a mail that must not bounce (`<>`).
    pub sender: Option<Address>,
    /// Whom it goes to.
    pub recipient: Address,
    /// The domain of its From field, which signatures should match.
    pub author_domain: String,
    /// Header and body, with CRLF; dots are not stuffed.
    pub bytes: Vec<u8>,
    /// Whether SMTPUTF8 is needed.
    pub utf8: Utf8,
    /// Whether a byte is above 127, so that 8BITMIME is needed.
    pub eight_bit: bool,
}

/// What is in it is nobody's business.
impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mail")
            .field("bytes", &self.bytes.len())
            .field("utf8", &self.utf8)
            .field("eight_bit", &self.eight_bit)
            .finish_non_exhaustive()
    }
}

/// Why a letter cannot become a mail. None of it passes with time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// The recipient of the envelope.
    #[error("the recipient cannot be written to: {0}")]
    Recipient(AddressError),
    /// The sender of the envelope.
    #[error("the sender cannot be used: {0}")]
    Sender(AddressError),
    /// An address of the header.
    #[error("the field {0} cannot be written: {1}")]
    Address(&'static str, AddressError),
    /// Another field.
    #[error("the field {0} cannot be written: {1}")]
    Field(String, HeaderError),
    /// A field that is written from elsewhere, or not at all.
    #[error("the field {0} is not for headers: it is written from the message itself")]
    Reserved(String),
    /// How to leave the list.
    #[error(transparent)]
    Unsubscribe(#[from] UnsubscribeError),
    /// A Message-ID that is none.
    #[error("the Message-ID is not of the form <left@right>")]
    MessageId,
    /// A file.
    #[error("the attachment {0} cannot be written: {1}")]
    Attachment(usize, &'static str),
    /// A message that came whole.
    #[error("raw is not base64")]
    Raw,
    /// A line that cannot be broken up.
    #[error("a line has {0} octets: mail has at most 998, and this one cannot be encoded")]
    LongLine(usize),
    /// All in all.
    #[error("the mail is too large: at most {MAIL_BYTES_MAX} bytes")]
    TooLarge,
    /// Messages in messages.
    #[error("multiparts and messages are nested more than {NESTING_MAX} deep")]
    TooDeep,
}

/// Makes a mail of a letter, for a server that `can` take so much.
pub fn compose(envelope: &Envelope, content: &Content, can: Can) -> Result<Mail, ComposeError> {
    let recipient = Address::parse(&envelope.to).map_err(ComposeError::Recipient)?;
    let sender = match envelope.return_path.as_deref() {
        Some("" | "<>") => None,
        Some(path) => Some(Address::parse(path).map_err(ComposeError::Sender)?),
        None => Some(Address::parse(&envelope.from).map_err(ComposeError::Sender)?),
    };
    let (bytes, author_domain) = match &content.raw {
        Some(text) => whole(text, content, can)?,
        None => composed(content)?,
    };
    let longest = lines::longest(&bytes);
    if longest > LINE_BYTES_MAX {
        return Err(ComposeError::LongLine(longest));
    }
    if bytes.len() > MAIL_BYTES_MAX {
        return Err(ComposeError::TooLarge);
    }
    let header = bytes.get(..lines::body_start(&bytes)).unwrap_or_default();
    let is_ascii = recipient.is_ascii() && sender.as_ref().is_none_or(Address::is_ascii);
    let utf8 = match (is_ascii, header.is_ascii()) {
        (true, true) => Utf8::No,
        (true, false) if content.raw.is_some() => Utf8::Wanted,
        (true, false) | (false, _) => Utf8::Required,
    };
    Ok(Mail {
        author_domain: author_domain.unwrap_or_else(|| {
            let sender = sender.as_ref().unwrap_or(&recipient);
            sender.domain().to_owned()
        }),
        sender,
        recipient,
        eight_bit: !bytes.is_ascii(),
        utf8,
        bytes,
    })
}

/// A message that came whole, and the domain of its author.
fn whole(
    text: &str,
    content: &Content,
    can: Can,
) -> Result<(Vec<u8>, Option<String>), ComposeError> {
    if text.len() / 4 * 3 > MAIL_BYTES_MAX {
        return Err(ComposeError::TooLarge);
    }
    let bytes = STANDARD.decode(text).map_err(|_| ComposeError::Raw)?;
    // One that was stored before this was refused must not go on to others.
    if MailStructure::of(&bytes).is_too_deep {
        return Err(ComposeError::TooDeep);
    }
    let bytes = raw::shaped(&bytes, content, can)?;
    let header = bytes.get(..lines::body_start(&bytes)).unwrap_or_default();
    let author_domain = author_domain(header);
    Ok((bytes, author_domain))
}

/// The domain of the first address of the From field; of the last one, if there
/// are several fields.
fn author_domain(header: &[u8]) -> Option<String> {
    let is_from =
        |field: &&[u8]| lines::name(field).is_some_and(|it| it.eq_ignore_ascii_case("From"));
    let field = lines::fields(header).filter(is_from).last()?;
    let colon = field.iter().position(|byte| *byte == b':')?;
    let value = field.get(colon + 1..)?;
    let Parsed::Address(list) = MessageStream::new(value).parse_address() else {
        return None;
    };
    let first = list.first()?.address.as_deref()?;
    Some(Address::parse(first).ok()?.domain().to_owned())
}

fn composed(content: &Content) -> Result<(Vec<u8>, Option<String>), ComposeError> {
    let mut fields: Vec<(&str, HeaderType<'_>)> = Vec::new();
    let from = mailbox("From", &content.from)?;
    let author_domain = from.address().domain().to_owned();
    fields.push(("Date", Date::new(content.date).into()));
    fields.push((
        "Message-ID",
        MessageId::new(message_id(&content.message_id)?).into(),
    ));
    fields.push(("From", address_field(&from).into()));
    match content.to.is_empty() && content.cc.is_empty() {
        true => fields.push(("To", Raw::new("undisclosed-recipients:;").into())),
        false => {
            fields.extend(list("To", &content.to)?);
            fields.extend(list("Cc", &content.cc)?);
        }
    }
    if let Some(reply_to) = &content.reply_to {
        let reply_to = mailbox("Reply-To", reply_to)?;
        fields.push(("Reply-To", address_field(&reply_to).into()));
    }
    if let Some(subject) = &content.subject {
        fields.push(("Subject", text_field("Subject", subject)?));
    }
    if let Some(said) = &content.unsubscribe {
        let said = Unsubscribe::new(said)?;
        let list: Vec<String> = said.list().map(str::to_owned).collect();
        fields.push(("List-Unsubscribe", URL::from(list).into()));
        if said.one_click() {
            let post = Raw::new("List-Unsubscribe=One-Click");
            fields.push(("List-Unsubscribe-Post", post.into()));
        }
    }
    for (name, value) in &content.headers {
        let known = HeaderName::new(name.as_str());
        let known = known.map_err(|wrong| ComposeError::Field(name.clone(), wrong))?;
        let is_taken = |own: &str| known.is(own);
        let is_said = fields.iter().any(|(field, _)| known.is(field));
        if is_said || OWN.iter().any(|own| is_taken(own)) {
            return Err(ComposeError::Reserved(name.clone()));
        }
        fields.push((name, text_field(name, value)?));
    }
    let mut message = MessageBuilder::new().body(mime::body(content)?);
    for (name, value) in fields {
        message = message.header(name, value);
    }
    let mut bytes = Vec::new();
    message.serialize(&mut bytes);
    if !bytes.ends_with(b"\r\n") {
        bytes.extend_from_slice(b"\r\n");
    }
    Ok((bytes, Some(author_domain)))
}

fn mailbox(field: &'static str, text: &str) -> Result<Mailbox, ComposeError> {
    Mailbox::parse(text).map_err(|wrong| ComposeError::Address(field, wrong))
}

fn address_field(mailbox: &Mailbox) -> AddressField<'static> {
    let display = mailbox.display().map(str::to_owned);
    AddressField::new_address(display, mailbox.address().as_str().to_owned())
}

fn list<'a>(
    field: &'static str,
    texts: &[String],
) -> Result<Option<(&'a str, HeaderType<'a>)>, ComposeError> {
    let mut addresses = Vec::with_capacity(texts.len());
    for text in texts {
        addresses.push(address_field(&mailbox(field, text)?));
    }
    let list = AddressField::new_list(addresses);
    Ok((!texts.is_empty()).then(|| (field, list.into())))
}

/// Text that may be structured is folded at its spaces and else left alone;
/// what is not ASCII, or cannot be folded, becomes encoded words.
fn text_field<'a>(name: &str, value: &str) -> Result<HeaderType<'a>, ComposeError> {
    let value = HeaderValue::new(value);
    let value = value.map_err(|wrong| ComposeError::Field(name.to_owned(), wrong))?;
    let text = value.as_str().to_owned();
    let is_plain = text.is_ascii() && value.longest_word() <= WORD_BYTES_MAX;
    Ok(match is_plain {
        true => Raw::new(text).into(),
        false => Text::new(text).into(),
    })
}

/// A Message-ID without its brackets.
pub(crate) fn message_id(text: &str) -> Result<&str, ComposeError> {
    let text = text.trim();
    let inside = text
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        .unwrap_or(text);
    let plain = |byte: u8| matches!(byte, b'!'..=b'~') && !b"<>".contains(&byte);
    let has_sides = inside
        .split_once('@')
        .is_some_and(|(left, right)| !left.is_empty() && !right.is_empty());
    let fits = has_sides && inside.len() <= WORD_BYTES_MAX && inside.bytes().all(plain);
    fits.then_some(inside).ok_or(ComposeError::MessageId)
}
