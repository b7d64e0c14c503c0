//! A whole message as it comes in: its header is read once and put right, for
//! good, so that a message sent twice is the same message.
//!
//! A missing From, Date or Message-ID is added, and a Received field, by which
//! loops are noticed. Fields for nobody's eyes (Bcc) and those that speak to us
//! (they begin with a prefix) are taken out. What cannot be sent later is
//! refused now.

use std::borrow::Cow;

use mail_builder::headers::Header;
use mail_builder::headers::date::Date;
use mail_parser::HeaderValue as Parsed;
use mail_parser::parsers::MessageStream;

use crate::address::{Address, AddressError};
use crate::lines::{self, LINE_BYTES_MAX};
use crate::raw;
use crate::structure::{MailStructure, NESTING_MAX};

/// The most bytes of a header.
const HEADER_BYTES_MAX: usize = 256 << 10;
/// The most fields of a header.
const FIELDS_MAX: usize = 1_000;
/// The most servers that a message may have passed.
const HOPS_MAX: usize = 50;
/// The most mailboxes of a From field.
const AUTHORS_MAX: usize = 100;
/// The most bytes of a subject that are told; all of them are sent.
const SUBJECT_BYTES_MAX: usize = 2_000;

/// How a message came in.
#[derive(Clone, Copy, Debug)]
pub struct Reception<'a> {
    /// Its sender by the envelope, who is its author if it names none.
    pub sender: Option<&'a Address>,
    /// What the Received field says before the time: `by mail.example.com with
    /// ESMTPSA`.
    pub trace: &'a str,
    /// When, in seconds since the epoch.
    pub date: i64,
    /// Fields whose names begin like this speak to us.
    pub prefix: &'a str,
}

/// A message that came in.
#[derive(Clone, PartialEq, Eq)]
pub struct Received {
    /// Header and body with CRLF, as they are to be kept.
    pub bytes: Vec<u8>,
    /// Who wrote it; at least one.
    pub authors: Vec<Address>,
    /// Its subject, decoded, for lists.
    pub subject: Option<String>,
    /// Its Message-ID, as it stands in its field.
    pub message_id: String,
    /// The fields that spoke to us: the name behind the prefix, in lower case,
    /// and the value, decoded.
    pub told: Vec<(String, String)>,
}

/// What is in it is nobody's business.
impl std::fmt::Debug for Received {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Received")
            .field("bytes", &self.bytes.len())
            .field("message_id", &self.message_id)
            .finish_non_exhaustive()
    }
}

/// Why a message is not taken. None of it passes with time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// There is nothing in it.
    #[error("the message is empty")]
    Empty,
    /// Its header is too long.
    #[error("the header has more than {HEADER_BYTES_MAX} bytes or {FIELDS_MAX} fields")]
    LongHeader,
    /// A line of its header is too long to be sent.
    #[error("a line of the header has {0} octets: at most {LINE_BYTES_MAX}")]
    LongLine(usize),
    /// It goes in circles.
    #[error("the message passed more than {HOPS_MAX} servers: it goes in circles")]
    Loop,
    /// It nests too deep.
    #[error("multiparts and messages are nested more than {NESTING_MAX} deep")]
    TooDeep,
    /// Nobody wrote it, or too many did.
    #[error("the message needs one From field, with an address")]
    NoAuthor,
    /// Whoever wrote it has no address.
    #[error("the From field cannot be used: {0}")]
    Author(AddressError),
}

/// Brings a message that came in into the shape in which it is kept. A missing
/// Message-ID is what `name_it` makes of the author's domain.
pub fn receive(
    bytes: &[u8],
    reception: &Reception<'_>,
    name_it: impl FnOnce(&str) -> String,
) -> Result<Received, ReceiveError> {
    let bytes: Cow<'_, [u8]> = match lines::has_crlf(bytes) {
        true => Cow::Borrowed(bytes),
        false => Cow::Owned(lines::with_crlf(bytes)),
    };
    if bytes.is_empty() {
        return Err(ReceiveError::Empty);
    }
    if MailStructure::of(&bytes).is_too_deep {
        return Err(ReceiveError::TooDeep);
    }
    let mut out = Vec::with_capacity(bytes.len() + 512);
    out.extend_from_slice(b"Received: ");
    out.extend_from_slice(reception.trace.as_bytes());
    out.extend_from_slice(b";\r\n ");
    Date::new(reception.date).write_header(&mut out, 1);
    let read = Head::read(&bytes, reception.prefix, &mut out)?;
    let authors = match read.authors {
        Some(authors) => authors?,
        None => {
            let sender = reception.sender.ok_or(ReceiveError::NoAuthor)?;
            out.extend_from_slice(format!("From: <{sender}>\r\n").as_bytes());
            vec![sender.clone()]
        }
    };
    let author = authors.first().ok_or(ReceiveError::NoAuthor)?;
    if !read.has_date {
        out.extend_from_slice(b"Date: ");
        Date::new(reception.date).write_header(&mut out, 6);
    }
    let message_id = match read.message_id {
        Some(id) => id,
        None => {
            let id = name_it(author.domain());
            out.extend_from_slice(format!("Message-ID: {id}\r\n").as_bytes());
            id
        }
    };
    let body = bytes.get(read.bytes..).unwrap_or_default();
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.strip_prefix(b"\r\n").unwrap_or(body));
    Ok(Received {
        bytes: out,
        authors,
        subject: read.subject,
        message_id,
        told: read.told,
    })
}

/// Everybody whom a whole message names as its author or sender, for a check of
/// who may be named: the fields are read as they will be sent, with every kind of
/// line break.
pub fn named_senders(bytes: &[u8]) -> Result<Vec<Address>, ReceiveError> {
    let bytes = lines::with_crlf(bytes);
    let mut named = Vec::new();
    let mut has_author = false;
    for (count, field) in lines::fields(&bytes).enumerate() {
        let Some(name) = lines::name(field) else {
            break;
        };
        if count >= FIELDS_MAX {
            return Err(ReceiveError::LongHeader);
        }
        let is_author = name.eq_ignore_ascii_case("From");
        if is_author && std::mem::replace(&mut has_author, true) {
            return Err(ReceiveError::NoAuthor);
        }
        let resent = ["Sender", "Resent-From", "Resent-Sender"];
        if is_author || resent.iter().any(|it| name.eq_ignore_ascii_case(it)) {
            named.extend(authors(value(field))?);
        }
    }
    match has_author {
        true => Ok(named),
        false => Err(ReceiveError::NoAuthor),
    }
}

/// What a header says to us.
#[derive(Default)]
struct Head {
    bytes: usize,
    authors: Option<Result<Vec<Address>, ReceiveError>>,
    subject: Option<String>,
    message_id: Option<String>,
    has_date: bool,
    told: Vec<(String, String)>,
}

impl Head {
    /// Reads the header of a message and copies what stays of it.
    fn read(bytes: &[u8], prefix: &str, out: &mut Vec<u8>) -> Result<Self, ReceiveError> {
        let mut header = Self::default();
        let (mut count, mut hops) = (0, 0);
        for field in lines::fields(bytes) {
            // What is no field is the body, whose empty line was forgotten.
            let Some(name) = lines::name(field) else {
                break;
            };
            header.bytes += field.len();
            count += 1;
            if header.bytes > HEADER_BYTES_MAX || count > FIELDS_MAX {
                return Err(ReceiveError::LongHeader);
            }
            let start = name.get(..prefix.len());
            if start.is_some_and(|start| start.eq_ignore_ascii_case(prefix)) {
                let name = name.get(prefix.len()..).unwrap_or_default();
                let value = text(value(field)).unwrap_or_default();
                header.told.push((name.to_ascii_lowercase(), value));
                continue;
            }
            if raw::is_dropped(name) {
                continue;
            }
            let longest = lines::longest(field);
            if longest > LINE_BYTES_MAX {
                return Err(ReceiveError::LongLine(longest));
            }
            if name.eq_ignore_ascii_case("From") {
                let twice = header.authors.is_some();
                let authors = match twice {
                    true => Err(ReceiveError::NoAuthor),
                    false => authors(value(field)),
                };
                header.authors = Some(authors);
            } else if name.eq_ignore_ascii_case("Subject") {
                header.subject = text(value(field)).map(shortened);
            } else if name.eq_ignore_ascii_case("Message-ID") {
                let id = String::from_utf8_lossy(value(field).trim_ascii()).into_owned();
                header.message_id = Some(id);
            } else if name.eq_ignore_ascii_case("Date") {
                header.has_date = true;
            } else if name.eq_ignore_ascii_case("Received") {
                hops += 1;
            }
            out.extend_from_slice(field);
            if !field.ends_with(b"\r\n") {
                out.extend_from_slice(b"\r\n");
            }
        }
        match hops > HOPS_MAX {
            true => Err(ReceiveError::Loop),
            false => Ok(header),
        }
    }
}

/// What stands behind the colon, with the line end.
fn value(field: &[u8]) -> &[u8] {
    let colon = field.iter().position(|byte| *byte == b':');
    colon
        .and_then(|colon| field.get(colon + 1..))
        .unwrap_or_default()
}

/// Text of one line, decoded.
fn text(value: &[u8]) -> Option<String> {
    match MessageStream::new(value).parse_unstructured() {
        Parsed::Text(text) => {
            let text = text.trim();
            Some(match text.contains(char::is_control) {
                true => text.replace(char::is_control, " "),
                false => text.to_owned(),
            })
        }
        _ => None,
    }
}

fn shortened(mut text: String) -> String {
    let cut = text.floor_char_boundary(SUBJECT_BYTES_MAX.min(text.len()));
    text.truncate(cut);
    text
}

/// The addresses of a From field: all of them, since any could be shown.
fn authors(value: &[u8]) -> Result<Vec<Address>, ReceiveError> {
    let Parsed::Address(list) = MessageStream::new(value).parse_address() else {
        return Err(ReceiveError::NoAuthor);
    };
    let mut authors = Vec::with_capacity(1);
    for mailbox in list.iter() {
        let text = mailbox.address.as_deref().ok_or(ReceiveError::NoAuthor)?;
        authors.push(Address::parse(text).map_err(ReceiveError::Author)?);
    }
    match authors.len() {
        1..=AUTHORS_MAX => Ok(authors),
        _ => Err(ReceiveError::NoAuthor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(text: &str) -> Result<Received, ReceiveError> {
        let sender = Address::parse("bounces@example.com").unwrap();
        let reception = Reception {
            sender: Some(&sender),
            trace: "by mail.example.com with ESMTPSA",
            date: 1_700_000_000,
            prefix: "X-Ours-",
        };
        receive(text.as_bytes(), &reception, |domain| {
            format!("<1@{domain}>")
        })
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_not_for_readers_goes() {
        let bare = received("Subject: Hi\r\n\r\nBody\r\n").unwrap();
        let text = String::from_utf8(bare.bytes).unwrap();
        assert_eq!(
            text,
            "Received: by mail.example.com with ESMTPSA;\r\n \
             Tue, 14 Nov 2023 22:13:20 +0000\r\n\
             Subject: Hi\r\nFrom: <bounces@example.com>\r\n\
             Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n\
             Message-ID: <1@example.com>\r\n\r\nBody\r\n"
        );
        let full = "Date: Mon, 1 Jan 2024 00:00:00 +0000\r\nMessage-Id: <a@b>\r\n\
             From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nBCC: x@example.net\r\n\
             Subject: =?utf-8?q?gr=C3=BCn?=\r\n  und blau\r\nx-ours-Campaign: Mai\r\n\r\n";
        let full = received(full).unwrap();
        assert_eq!(full.subject.as_deref(), Some("grün und blau"));
        assert_eq!(full.message_id, "<a@b>");
        assert_eq!(full.authors[0].as_str(), "j@example.org");
        assert_eq!(full.told, [("campaign".to_owned(), "Mai".to_owned())]);
        let text = String::from_utf8(full.bytes).unwrap().to_lowercase();
        assert!(!text.contains("bcc") && !text.contains("x-ours"), "{text}");
        assert_eq!(text.matches("date:").count(), 1);
    }

    #[test]
    fn every_author_counts_and_there_is_one_from_field() {
        let two = received("From: a@one.example, B <b@two.example>\r\n\r\n").unwrap();
        let domains: Vec<&str> = two.authors.iter().map(Address::domain).collect();
        assert_eq!(domains, ["one.example", "two.example"]);
        let wrong = [
            "From: a@one.example\r\nFROM : b@two.example\r\n\r\n",
            "From: nobody\r\n\r\n",
            "From:\r\n\r\n",
            "From: a@one.example, nobody\r\n\r\n",
        ];
        for text in wrong {
            let refused = received(text).unwrap_err();
            let is_about = matches!(refused, ReceiveError::NoAuthor | ReceiveError::Author(_));
            assert!(is_about, "{text:?}: {refused}");
        }
    }

    #[test]
    fn what_could_not_be_sent_is_refused() {
        assert_eq!(received(""), Err(ReceiveError::Empty));
        let long = format!("X-Long: {}\r\n\r\n", "x".repeat(2_000));
        assert_eq!(received(&long), Err(ReceiveError::LongLine(2_008)));
        let circles = "Received: by somebody\r\n".repeat(60);
        assert_eq!(received(&circles), Err(ReceiveError::Loop));
        let deep = "Content-Type: message/rfc822\r\n\r\n".repeat(60_000);
        assert_eq!(received(&deep), Err(ReceiveError::TooDeep));
        let many = "X: y\r\n".repeat(2_000);
        assert_eq!(received(&many), Err(ReceiveError::LongHeader));
    }

    #[test]
    fn everybody_who_is_named_is_found() {
        let named = |text: &str| named_senders(text.as_bytes());
        let all = named("From: a@one.example\nSender: b@two.example\n\nFrom: c@x.example");
        let all = all.unwrap();
        let all: Vec<&str> = all.iter().map(Address::as_str).collect();
        assert_eq!(all, ["a@one.example", "b@two.example"]);
        let bare = named("From: a@one.example\rResent-From: b@two.example\r\r").unwrap();
        assert_eq!(bare.len(), 2, "a bare CR ends a line, too");
        let unclear = [
            "Subject: nobody\r\n\r\n",
            "From a@one.example\r\nFrom: b@two.example\r\n\r\n",
            "From: a@one.example\r\nfrom: b@two.example\r\n\r\n",
        ];
        for text in unclear {
            assert_eq!(named(text), Err(ReceiveError::NoAuthor), "{text}");
        }
    }

    #[test]
    fn bare_line_breaks_become_lines() {
        let bare = received("From: a@b.example\nSubject: x\n\nbody\n.\nmore\r").unwrap();
        let text = String::from_utf8(bare.bytes).unwrap();
        assert!(text.ends_with("\r\n\r\nbody\r\n.\r\nmore\r\n"), "{text:?}");
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
    }
}
