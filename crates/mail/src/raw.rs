//! Messages that came whole: brought into the shape that the wire asks for, and
//! else left as they are.
//!
//! Line ends become CRLF, so that no server sees other lines than the next one
//! does. Fields that are not for readers (Bcc) go, and a missing Date or
//! Message-ID is the one that was fixed at acceptance. Parts with lines over 998
//! octets, and 8-bit parts for servers that take 7 bits, are encoded anew: a
//! signature over them would not survive the way in any case.

use mail_builder::encoders::base64::Base64Encoder;
use mail_builder::encoders::quoted_printable::QuotedPrintableEncoder;
use mail_builder::headers::Header;
use mail_builder::headers::date::Date;
use outflow_ports::letter::Content;

use crate::compose::{Can, ComposeError, message_id};
use crate::lines::{self, LINE_BYTES_MAX};
use crate::structure::{MailStructure, PartContent, TransferEncoding};

/// Fields that are for servers on the way in, or for nobody's eyes.
const DROPPED: [&str; 4] = ["Bcc", "Resent-Bcc", "Return-Path", "Content-Length"];

/// Whether a field of this name is not for readers.
pub(crate) fn is_dropped(name: &str) -> bool {
    let dropped = |dropped: &&str| name.eq_ignore_ascii_case(dropped);
    DROPPED.iter().any(dropped)
}

/// A whole message as it can be sent to a server that `can` take so much.
pub(crate) fn shaped(bytes: &[u8], content: &Content, can: Can) -> Result<Vec<u8>, ComposeError> {
    let bytes = with_header(&lines::with_crlf(bytes), content)?;
    let body = bytes.get(lines::body_start(&bytes)..).unwrap_or_default();
    Ok(match is_sendable(body, can) {
        true => bytes,
        false => encoded_anew(&bytes, can),
    })
}

/// Whether these lines can go over the wire as they are.
fn is_sendable(lines: &[u8], can: Can) -> bool {
    (can.eight_bit || lines.is_ascii())
        && !lines.contains(&0)
        && lines::longest(lines) <= LINE_BYTES_MAX
}

/// The message with its header put right.
fn with_header(bytes: &[u8], content: &Content) -> Result<Vec<u8>, ComposeError> {
    let mut rest = bytes;
    if rest.starts_with(b"From ") {
        // The first line of a mailbox file.
        let end = rest.iter().position(|byte| *byte == b'\n');
        rest = rest
            .get(end.map_or(rest.len(), |at| at + 1)..)
            .unwrap_or_default();
    }
    let mut header = Vec::with_capacity(rest.len() + 256);
    let (mut has_date, mut has_id) = (false, false);
    let mut taken = 0;
    for field in lines::fields(rest) {
        // What is no field is the body, whose empty line was forgotten.
        let Some(name) = lines::name(field) else {
            break;
        };
        taken += field.len();
        has_date |= name.eq_ignore_ascii_case("Date");
        has_id |= name.eq_ignore_ascii_case("Message-ID");
        if !is_dropped(name) {
            header.extend_from_slice(field);
        }
    }
    if !has_date && content.date != 0 {
        header.extend_from_slice(b"Date: ");
        Date::new(content.date).write_header(&mut header, 6);
    }
    if !has_id && !content.message_id.is_empty() {
        let id = message_id(&content.message_id)?;
        header.extend_from_slice(format!("Message-ID: <{id}>\r\n").as_bytes());
    }
    let body = rest.get(taken..).unwrap_or_default();
    header.extend_from_slice(b"\r\n");
    header.extend_from_slice(body.strip_prefix(b"\r\n").unwrap_or(body));
    Ok(header)
}

/// The message with those of its parts encoded that cannot go as they are.
fn encoded_anew(bytes: &[u8], can: Can) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 2);
    let mut copied = 0;
    for part in &MailStructure::of(bytes).parts {
        let is_text = match part.main_type.as_str() {
            // What nests too deep stays as it is.
            "message" | "multipart" => continue,
            main_type => main_type == "text",
        };
        let (head, end) = (part.header, part.end);
        let (Some(header), Some(inside)) = (bytes.get(head..part.body), bytes.get(part.body..end))
        else {
            continue;
        };
        let is_encoded = part.encoding != TransferEncoding::Identity;
        let is_container = part.content != PartContent::Leaf;
        if is_encoded || is_container || head < copied || is_sendable(inside, can) {
            continue;
        }
        out.extend_from_slice(bytes.get(copied..head).unwrap_or_default());
        for field in lines::fields(header) {
            let is_old = lines::name(field)
                .is_some_and(|name| name.eq_ignore_ascii_case("Content-Transfer-Encoding"));
            if !is_old {
                out.extend_from_slice(field);
            }
        }
        // Quoted-printable would leave a NUL as it is.
        if is_text && !inside.contains(&0) {
            out.extend_from_slice(b"Content-Transfer-Encoding: quoted-printable\r\n\r\n");
            let encoder = QuotedPrintableEncoder::new().preserve_line_breaks();
            encoder.encode_into(inside, &mut out);
        } else {
            out.extend_from_slice(b"Content-Transfer-Encoding: base64\r\n\r\n");
            Base64Encoder::new()
                .wrap_lines()
                .encode_into(inside, &mut out);
        }
        copied = end;
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out
}
