//! The parts of a composed mail.
//!
//! Text and HTML are alternatives; images that the HTML shows are related to it;
//! files stand beside both. So: `mixed(alternative(text, related(html, images)),
//! files)`, with every layer left out that would hold a single part.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_builder::encoders::base64::Base64Encoder;
use mail_builder::headers::content_type::ContentType;
use mail_builder::mime::{BodyPart, MimePart};
use outflow_ports::letter::{Attachment, Content};

use crate::compose::{ComposeError, message_id};
use crate::header::HeaderValue;
use crate::lines;

/// The body of a letter.
pub(crate) fn body(content: &Content) -> Result<MimePart<'static>, ComposeError> {
    let mut images = Vec::new();
    let mut files = Vec::new();
    for (at, file) in content.attachments.iter().enumerate() {
        let part = attachment(at, file)?;
        match file.content_id.is_some() && content.html.is_some() {
            true => images.push(part),
            false => files.push(part),
        }
    }
    let text = content.text.as_deref().map(|text| leaf("text/plain", text));
    let html = content.html.as_deref().map(|html| leaf("text/html", html));
    let html = html.map(|html| around("multipart/related", html, images));
    let main = match (text, html) {
        (Some(text), Some(html)) => Some(MimePart::new("multipart/alternative", vec![text, html])),
        (main, None) | (None, main) => main,
    };
    Ok(match main {
        Some(main) => around("multipart/mixed", main, files),
        None if files.is_empty() => leaf("text/plain", ""),
        None => MimePart::new("multipart/mixed", files),
    })
}

fn around(
    kind: &'static str,
    first: MimePart<'static>,
    others: Vec<MimePart<'static>>,
) -> MimePart<'static> {
    if others.is_empty() {
        return first;
    }
    let mut parts = vec![first];
    parts.extend(others);
    MimePart::new(kind, parts)
}

/// Text, in whatever encoding is shortest.
fn leaf(kind: &'static str, text: &str) -> MimePart<'static> {
    let bytes = lines::with_crlf(text.as_bytes());
    // Only line ends changed, and they are ASCII.
    let text = String::from_utf8(bytes).unwrap_or_default();
    // Looks at all bytes whatever it finds, since that is many at a time.
    let is_odd = |byte: u8| byte.is_ascii_control() && !matches!(byte, b'\r' | b'\n' | b'\t');
    if text.bytes().fold(false, |any, byte| any | is_odd(byte)) {
        // NUL must not be on the wire, and others are better not.
        let kind = ContentType::new(kind).attribute("charset", "utf-8");
        return encoded(kind, text.as_bytes());
    }
    MimePart::new(kind, BodyPart::Text(text.into()))
}

/// A part in base64.
fn encoded(kind: ContentType<'static>, bytes: &[u8]) -> MimePart<'static> {
    let mut text = Vec::with_capacity(bytes.len() / 2 * 3);
    Base64Encoder::new()
        .wrap_lines()
        .encode_into(bytes, &mut text);
    MimePart::new(kind, BodyPart::Binary(text.into())).transfer_encoding("base64")
}

fn attachment(at: usize, file: &Attachment) -> Result<MimePart<'static>, ComposeError> {
    let wrong = |what| ComposeError::Attachment(at, what);
    let bytes = STANDARD.decode(&file.content);
    let bytes = bytes.map_err(|_| wrong("its content is not base64"))?;
    let name = HeaderValue::new(file.filename.as_str());
    let name = name.map_err(|_| wrong("its name has a control character or is too long"))?;
    if !is_media_type(&file.content_type) {
        return Err(wrong("its type is not written as in image/png"));
    }
    // Messages and multiparts must not be in base64 (RFC 2046): as plain bytes
    // they may.
    let kind = file.content_type.to_ascii_lowercase();
    let kind = match kind.split_once('/') {
        Some(("message" | "multipart", _)) => "application/octet-stream".to_owned(),
        _ => kind,
    };
    let (mut kind, mut disposition) = match file.content_id {
        Some(_) => (ContentType::new(kind), ContentType::new("inline")),
        None => (ContentType::new(kind), ContentType::new("attachment")),
    };
    if !name.as_str().is_empty() {
        // Old readers know the name from the type alone.
        kind = kind.attribute("name", name.as_str().to_owned());
        disposition = disposition.attribute("filename", name.as_str().to_owned());
    }
    let mut part = encoded(kind, &bytes).header("Content-Disposition", disposition);
    if let Some(id) = &file.content_id {
        let id = content_id(id).ok_or(wrong("its content_id is not printable ASCII"))?;
        part = part.cid(id);
    }
    Ok(part)
}

/// The id of a part without its brackets, if it is one. Unlike a Message-ID it
/// often has no @.
pub fn content_id(text: &str) -> Option<String> {
    if let Ok(id) = message_id(text) {
        return Some(id.to_owned());
    }
    let plain = |byte: u8| matches!(byte, b'!'..=b'~') && !b"<>".contains(&byte);
    let fits = !text.is_empty() && text.len() <= 256 && text.bytes().all(plain);
    fits.then(|| text.to_owned())
}

/// `type/subtype`, without parameters.
fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        (1..=127).contains(&part.len()) && part.bytes().all(letter)
    };
    text.split_once('/')
        .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}
