//! Replies, read line by line and within bounds.
//!
//! A server is a stranger: a line without end, a reply without end, other bytes
//! than digits where a code should be all end here, before they cost memory.
//!
//! The reader of `smtp-proto` is not used: it keeps the parts of an enhanced code
//! in bytes, so that 5.7.515 becomes another, and fails on EHLO lines that it
//! does not know. Its other half, the parser of commands, checks ours in tests.

use std::borrow::Cow;

use outflow_core::reply::{Reply, Stage};

/// The most bytes of a line, up to its LF.
const LINE_BYTES_MAX: usize = 4_096;
/// The most lines of a reply.
const LINES_MAX: usize = 100;
/// The most bytes of a reply.
const REPLY_BYTES_MAX: usize = 65_536;
/// The most bytes of a reply that are told.
const TEXT_BYTES_MAX: usize = 2_000;

/// What the server said, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtpReply {
    /// The code, 200 to 599.
    pub code: u16,
    lines: Vec<String>,
}

impl SmtpReply {
    /// What follows the code, line by line.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// As the answer to a delivery.
    pub fn said(&self, stage: Stage) -> Reply {
        let mut text = self.lines.join("\n");
        if text.len() > TEXT_BYTES_MAX {
            let cut = (0..=TEXT_BYTES_MAX)
                .rev()
                .find(|at| text.is_char_boundary(*at));
            text.truncate(cut.unwrap_or(0));
        }
        Reply::said(stage, self.code, &text)
    }
}

/// Why bytes are no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Garbled {
    /// A line without end.
    #[error("a line has more than {LINE_BYTES_MAX} bytes")]
    LongLine,
    /// A reply without end.
    #[error("a reply has more than {LINES_MAX} lines or {REPLY_BYTES_MAX} bytes")]
    LongReply,
    /// No code.
    #[error("{0:?} is no SMTP reply")]
    NoCode(String),
    /// One reply with two codes.
    #[error("one reply has the codes {0} and {1}")]
    TwoCodes(u16, u16),
}

/// Puts replies together.
#[derive(Debug, Default)]
pub struct ReplyReader {
    buffer: Vec<u8>,
    /// Where the next line begins, and how far its end was looked for.
    start: usize,
    looked: usize,
    code: Option<u16>,
    lines: Vec<String>,
    bytes: usize,
}

impl ReplyReader {
    /// Bytes came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.looked -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether nothing is left that was not read.
    pub fn is_empty(&self) -> bool {
        self.start == self.buffer.len() && self.lines.is_empty()
    }

    /// The next whole reply.
    pub fn next_reply(&mut self) -> Result<Option<SmtpReply>, Garbled> {
        while let Some(line) = self.next_line()? {
            let (code, text, is_last) = split(&line)?;
            if let Some(first) = self.code
                && first != code
            {
                return Err(Garbled::TwoCodes(first, code));
            }
            self.code = Some(code);
            self.bytes += line.len();
            self.lines.push(text);
            if self.lines.len() > LINES_MAX || self.bytes > REPLY_BYTES_MAX {
                return Err(Garbled::LongReply);
            }
            if is_last {
                self.code = None;
                self.bytes = 0;
                let lines = std::mem::take(&mut self.lines);
                return Ok(Some(SmtpReply { code, lines }));
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Garbled> {
        let fresh = self.buffer.get(self.looked..).unwrap_or_default();
        let Some(at) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.looked = self.buffer.len();
            let begun = self.looked - self.start;
            return match begun > LINE_BYTES_MAX {
                true => Err(Garbled::LongLine),
                false => Ok(None),
            };
        };
        let end = self.looked + at;
        let line = self.buffer.get(self.start..end).unwrap_or_default();
        // Counted with its CR: whoever sees only that much of it counts it too.
        if line.len() > LINE_BYTES_MAX {
            return Err(Garbled::LongLine);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        self.start = end + 1;
        self.looked = self.start;
        Ok(Some(line))
    }
}

/// The code of a line, its text, and whether it is the last of its reply.
fn split(line: &[u8]) -> Result<(u16, String, bool), Garbled> {
    let garbled = || Garbled::NoCode(readable(line.get(..40).unwrap_or(line)).into_owned());
    let (code, rest) = match line {
        [a @ b'2'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..] => {
            let digit = |byte: &u8| u16::from(byte - b'0');
            (digit(a) * 100 + digit(b) * 10 + digit(c), rest)
        }
        _ => return Err(garbled()),
    };
    let (is_last, text) = match rest {
        [] => (true, rest),
        [b' ', text @ ..] => (true, text),
        [b'-', text @ ..] => (false, text),
        _ => return Err(garbled()),
    };
    Ok((code, readable(text).into_owned(), is_last))
}

/// Text that does no harm in a log.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    match text.contains(char::is_control) {
        true => Cow::Owned(text.replace(char::is_control, " ")),
        false => text,
    }
}
