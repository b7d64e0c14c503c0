//! The parts of a mail, found line by line.
//!
//! Mail from outside may nest as deep as it likes: tens of thousands of
//! messages, each the only part of the one around it, fit into a megabyte. So
//! nothing here recurses. The depth and the number of parts are bounded; what is
//! deeper, or comes later, is content of the part around it and is not looked
//! into. [`is_too_deep`](MailStructure::is_too_deep) lets an intake refuse such
//! a mail; whoever reads a stored one again is safe either way.

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::parsers::MessageStream;
use mail_parser::{ContentType, HeaderValue as Parsed};
use std::borrow::Cow;

use crate::lines;

/// Multiparts and messages inside one another, at most.
pub const NESTING_MAX: usize = 50;
/// Parts of a mail that are found, at most.
pub const PARTS_MAX: usize = 10_000;
/// Bytes of one field that are read, at most.
const FIELD_BYTES_MAX: usize = 4_096;

/// How the content of a part is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferEncoding {
    /// Not at all: 7bit, 8bit, binary, or something unknown.
    Identity,
    /// Base64.
    Base64,
    /// Quoted-printable.
    QuotedPrintable,
}

/// What a part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartContent {
    /// Further parts, between delimiter lines.
    Multipart,
    /// A message with a header of its own.
    Message,
    /// Content.
    Leaf,
}

/// One part: its header is `header..body`, its content `body..end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailPart {
    /// Where its header begins.
    pub header: usize,
    /// Where its content begins.
    pub body: usize,
    /// Where its content ends, before the line break of the next delimiter.
    pub end: usize,
    /// What it holds.
    pub content: PartContent,
    /// Its type in lower case: `text`.
    pub main_type: String,
    /// Its subtype in lower case: `plain`.
    pub sub_type: String,
    /// The character set that it names.
    pub charset: Option<String>,
    /// How its content is encoded.
    pub encoding: TransferEncoding,
    /// How many messages it is nested in; 0 for parts of the mail itself.
    pub messages_around: usize,
}

impl MailPart {
    /// Its content, decoded. What cannot be decoded is returned as it stands.
    pub fn decoded<'a>(&self, mail: &'a [u8]) -> Cow<'a, [u8]> {
        let bytes = mail.get(self.body..self.end).unwrap_or_default();
        let decoded = match self.encoding {
            TransferEncoding::Identity => None,
            TransferEncoding::Base64 => base64_decode(bytes),
            TransferEncoding::QuotedPrintable => quoted_printable_decode(bytes),
        };
        decoded.map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    /// Its content as UTF-8 text, by the character set that it names.
    pub fn text<'a>(&self, mail: &'a [u8]) -> Cow<'a, [u8]> {
        let bytes = self.decoded(mail);
        let decoder = self
            .charset
            .as_deref()
            .and_then(|name| charset_decoder(name.as_bytes()));
        match decoder {
            Some(decode) => Cow::Owned(decode(&bytes).into_bytes()),
            None => bytes,
        }
    }
}

/// The parts of a mail in the order of their headers. The first is the mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailStructure {
    /// The parts.
    pub parts: Vec<MailPart>,
    /// Whether something nests deeper than [`NESTING_MAX`].
    pub is_too_deep: bool,
    /// Whether there are more than [`PARTS_MAX`] parts.
    pub is_cut: bool,
}

impl MailStructure {
    /// Finds the parts of a mail.
    pub fn of(mail: &[u8]) -> Self {
        let mut walk = Walk {
            mail,
            open: Vec::new(),
            leaf: None,
            found: Self::default(),
        };
        walk.run();
        walk.found
    }
}

/// A part that is not over yet and holds others.
struct OpenPart {
    part: usize,
    /// Of a multipart.
    boundary: Option<Vec<u8>>,
    is_digest: bool,
}

struct Walk<'a> {
    mail: &'a [u8],
    open: Vec<OpenPart>,
    /// The part whose content is being passed.
    leaf: Option<usize>,
    found: MailStructure,
}

/// A line that belongs to an open multipart.
struct Delimiter {
    /// Which of the open parts.
    open: usize,
    is_last: bool,
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut at = self.begin(0);
        // Without an open multipart no line can be a delimiter.
        while at < self.mail.len() && !self.open.is_empty() {
            let next = self.line_end(at);
            let Some(delimiter) = self.delimiter(at, next) else {
                at = next;
                continue;
            };
            let keep = delimiter.open + usize::from(!delimiter.is_last);
            self.end_parts(at, keep);
            if delimiter.is_last {
                at = next;
            } else if self.found.parts.len() < PARTS_MAX {
                at = self.begin(next);
            } else {
                self.found.is_cut = true;
                return;
            }
        }
    }

    /// Ends the content that is being passed, and all open parts but the outer
    /// `keep`, before the line break in front of the line at `at`.
    fn end_parts(&mut self, at: usize, keep: usize) {
        let mut end = at;
        for byte in [b'\n', b'\r'] {
            if end > 0 && self.mail.get(end - 1) == Some(&byte) {
                end -= 1;
            }
        }
        let above = self.open.drain(keep.min(self.open.len())..);
        let ended = above.map(|open| open.part).chain(self.leaf.take());
        for part in ended {
            if let Some(part) = self.found.parts.get_mut(part) {
                part.end = end.max(part.body);
            }
        }
    }

    /// Reads the header of a part, and of the messages that begin with it. Where
    /// the next line to look at begins.
    fn begin(&mut self, mut at: usize) -> usize {
        loop {
            let body = self.header_end(at);
            let header = self.mail.get(at..body).unwrap_or_default();
            let number = self.found.parts.len();
            let is_in_digest = self.open.last().is_some_and(|open| open.is_digest);
            let (mut part, boundary) = described(header, is_in_digest);
            let messages = self.open.iter().filter(|open| open.boundary.is_none());
            part.messages_around = messages.count();
            (part.header, part.body, part.end) = (at, body, self.mail.len());
            let is_digest = part.sub_type == "digest";
            if part.content != PartContent::Leaf && self.open.len() >= NESTING_MAX {
                self.found.is_too_deep = true;
                part.content = PartContent::Leaf;
            }
            let content = part.content;
            self.found.parts.push(part);
            if content == PartContent::Leaf {
                self.leaf = Some(number);
                return body;
            }
            self.open.push(OpenPart {
                part: number,
                is_digest: is_digest && boundary.is_some(),
                boundary,
            });
            if content == PartContent::Multipart {
                return body;
            }
            at = body;
        }
    }

    /// Where the line at `at` ends, behind its line break.
    fn line_end(&self, at: usize) -> usize {
        let rest = self.mail.get(at..).unwrap_or_default();
        memchr::memchr(b'\n', rest).map_or(self.mail.len(), |end| at + end + 1)
    }

    /// Where the content behind the header at `at` begins: behind an empty line,
    /// or with the delimiter that ends a part without one.
    fn header_end(&self, mut at: usize) -> usize {
        while at < self.mail.len() {
            let next = self.line_end(at);
            let line = self.mail.get(at..next).unwrap_or_default();
            if line.trim_ascii().is_empty() && !line.starts_with(b" ") && !line.starts_with(b"\t") {
                return next;
            }
            if self.delimiter(at, next).is_some() {
                return at;
            }
            at = next;
        }
        at
    }

    /// Whether the line `at..next` is a delimiter of an open multipart; of the
    /// innermost one that has this boundary.
    fn delimiter(&self, at: usize, next: usize) -> Option<Delimiter> {
        let line = self.mail.get(at..next)?.strip_prefix(b"--")?;
        let line = line.trim_ascii_end();
        let open = self.open.iter().enumerate().rev();
        let mut found = open.filter_map(|(open, it)| {
            let rest = line.strip_prefix(it.boundary.as_deref()?)?;
            let is_last = match rest {
                b"" => false,
                b"--" => true,
                _ => return None,
            };
            Some(Delimiter { open, is_last })
        });
        found.next()
    }
}

/// What the header of a part says of it, and the boundary of a multipart.
fn described(header: &[u8], is_in_digest: bool) -> (MailPart, Option<Vec<u8>>) {
    let mut part = MailPart {
        header: 0,
        body: 0,
        end: 0,
        content: PartContent::Leaf,
        main_type: "text".to_owned(),
        sub_type: "plain".to_owned(),
        charset: None,
        encoding: TransferEncoding::Identity,
        messages_around: 0,
    };
    if is_in_digest {
        (part.main_type, part.sub_type) = ("message".to_owned(), "rfc822".to_owned());
    }
    let mut boundary = None;
    for field in lines::fields(header) {
        let Some(name) = lines::name(field) else {
            continue;
        };
        let value = field.get(name.len()..).unwrap_or_default();
        let value = value.trim_ascii_start().strip_prefix(b":").unwrap_or(value);
        let value = value.get(..FIELD_BYTES_MAX).unwrap_or(value);
        if name.eq_ignore_ascii_case("Content-Type") {
            if let Parsed::ContentType(kind) = MessageStream::new(value).parse_content_type() {
                boundary = typed(&mut part, &kind);
            }
        } else if name.eq_ignore_ascii_case("Content-Transfer-Encoding") {
            let value = value.trim_ascii();
            part.encoding = if value.eq_ignore_ascii_case(b"base64") {
                TransferEncoding::Base64
            } else if value.eq_ignore_ascii_case(b"quoted-printable") {
                TransferEncoding::QuotedPrintable
            } else {
                TransferEncoding::Identity
            };
        }
    }
    part.content = match (part.main_type.as_str(), part.sub_type.as_str()) {
        ("multipart", _) if boundary.is_some() => PartContent::Multipart,
        // An encoded message is content: nobody may encode one (RFC 2046, 5.2.1).
        ("message", "rfc822" | "global") if part.encoding == TransferEncoding::Identity => {
            PartContent::Message
        }
        _ => PartContent::Leaf,
    };
    if part.content != PartContent::Multipart {
        boundary = None;
    }
    (part, boundary)
}

/// Takes over a type; the boundary that it names.
fn typed(part: &mut MailPart, kind: &ContentType<'_>) -> Option<Vec<u8>> {
    part.main_type = kind.ctype().to_ascii_lowercase();
    let sub_type = kind.subtype().map(str::to_ascii_lowercase);
    part.sub_type = sub_type.unwrap_or_default();
    part.charset = kind.attribute("charset").map(str::to_owned);
    let boundary = kind.attribute("boundary").unwrap_or_default();
    let boundary = boundary.as_bytes().trim_ascii_end();
    (!boundary.is_empty()).then(|| boundary.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mail: &str) -> Vec<(String, usize, String)> {
        let structure = MailStructure::of(mail.as_bytes());
        assert!(!structure.is_too_deep && !structure.is_cut);
        let parts = structure.parts.iter().map(|part| {
            let text = String::from_utf8(part.text(mail.as_bytes()).into_owned()).unwrap();
            let kind = format!("{}/{}", part.main_type, part.sub_type);
            (kind, part.messages_around, text)
        });
        parts.collect()
    }

    fn leaf(kind: &str, messages_around: usize, text: &str) -> (String, usize, String) {
        (kind.to_owned(), messages_around, text.to_owned())
    }

    #[test]
    fn parts_are_found_with_their_content() {
        let mail = "Content-Type: multipart/mixed;\r\n boundary=\"a b\"\r\n\r\npreamble\r\n\
            --a b\r\n\r\nplain\r\n--a b \r\n\
            Content-Type: text/html; charset=iso-8859-1\r\n\
            Content-Transfer-Encoding: Quoted-Printable\r\n\r\ngr=FCn\r\n--a bc\r\n\
            --a b\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\ninner\r\n\
            --a b--\r\nepilogue\r\n";
        let parts = found(mail);
        let inner = "Subject: x\r\n\r\ninner";
        assert_eq!(parts.len(), 5, "{parts:?}");
        assert_eq!(parts[0].0, "multipart/mixed");
        assert_eq!(parts[1], leaf("text/plain", 0, "plain"));
        assert_eq!(parts[2], leaf("text/html", 0, "grün\r\n--a bc"));
        assert_eq!(parts[3], leaf("message/rfc822", 0, inner));
        assert_eq!(parts[4], leaf("text/plain", 1, "inner"));
    }

    #[test]
    fn a_delimiter_of_an_outer_multipart_ends_all_inside() {
        let mail = "Content-Type: multipart/mixed; boundary=o\n\n--o\n\
            Content-Type: multipart/digest; boundary=i\n\n--i\n\nSubject: x\n\none\n\
            --o\nContent-Type: text/csv\n\ntwo";
        let parts = found(mail);
        let kinds: Vec<&str> = parts.iter().map(|(kind, ..)| kind.as_str()).collect();
        let expected = [
            "multipart/mixed",
            "multipart/digest",
            "message/rfc822",
            "text/plain",
            "text/csv",
        ];
        assert_eq!(kinds, expected);
        assert_eq!(parts[3], leaf("text/plain", 1, "one"));
        assert_eq!(parts[4], leaf("text/csv", 0, "two"));
    }

    #[test]
    fn nesting_is_bounded_however_deep_it_is() {
        let messages = "Content-Type: message/rfc822\r\n\r\n".repeat(1_000_000);
        let structure = MailStructure::of(messages.as_bytes());
        assert!(structure.is_too_deep);
        assert_eq!(structure.parts.len(), NESTING_MAX + 1);
        let multiparts: String = (0..100_000)
            .map(|no| format!("Content-Type: multipart/mixed; boundary=b{no}\r\n\r\n--b{no}\r\n"))
            .collect();
        let structure = MailStructure::of(multiparts.as_bytes());
        assert!(structure.is_too_deep);
        assert_eq!(structure.parts.len(), NESTING_MAX + 1);
        let allowed = "Content-Type: message/rfc822\r\n\r\n".repeat(NESTING_MAX);
        assert!(!MailStructure::of(allowed.as_bytes()).is_too_deep);
    }

    #[test]
    fn the_number_of_parts_is_bounded() {
        let many = "--b\r\n\r\n".repeat(PARTS_MAX * 2);
        let mail = format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{many}");
        let structure = MailStructure::of(mail.as_bytes());
        assert!(structure.is_cut && structure.parts.len() <= PARTS_MAX);
    }
}
