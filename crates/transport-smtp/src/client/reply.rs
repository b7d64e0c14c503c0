//! Replies, read line by line and within bounds.
//!
//! A server is a stranger: a line without end, a reply without end, other bytes
//! than digits where a code should be all end here, before they cost memory.
//!
//! The verdict is in the first line: all lines of a reply have the same code, and
//! a client may rely on any of them (RFC 5321, 4.2.1). So text that is more than
//! anybody reads is dropped, and the code stays. Lines that differ in the first
//! digit contradict one another: such a reply says nothing.
//!
//! The reader of `smtp-proto` is not used: it keeps the parts of an enhanced code
//! in bytes, so that 5.7.515 becomes another, and fails on EHLO lines that it
//! does not know. Its other half, the parser of commands, checks ours in tests.

use std::borrow::Cow;

use outflow_core::reply::{Reply, Stage};

/// The most bytes of a line that are kept.
const LINE_BYTES_KEPT: usize = 4_096;
/// The most lines of a reply that are kept.
const LINES_KEPT: usize = 100;
/// The most bytes of a reply that are kept.
const BYTES_KEPT: usize = 65_536;
/// The most lines of a reply that are read.
const LINES_MAX: usize = 10_000;
/// The most bytes of a reply that are read.
const BYTES_MAX: usize = 1 << 20;
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
    /// A reply without end.
    #[error("a reply has more than {LINES_MAX} lines or {BYTES_MAX} bytes")]
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
    /// Bytes of the next line that were dropped.
    dropped: usize,
    /// The code of the first line.
    code: Option<u16>,
    lines: Vec<String>,
    bytes_kept: usize,
    /// Lines and bytes of this reply so far.
    lines_read: usize,
    bytes_read: usize,
    /// Whether its lines contradict one another, or one is none.
    is_garbled: bool,
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
        self.start == self.buffer.len() && self.code.is_none()
    }

    /// The next whole reply.
    pub fn next_reply(&mut self) -> Result<Option<SmtpReply>, Garbled> {
        while let Some(line) = self.next_line()? {
            match self.take_line(&line) {
                Ok(None) => {}
                Ok(whole) => return Ok(whole),
                Err(garbled) => {
                    self.is_garbled = true;
                    return Err(garbled);
                }
            }
        }
        Ok(None)
    }

    /// The reply that has begun and did not end, with what is known of it: its
    /// code, which stands at the beginning of its first line.
    pub fn begun(&self) -> Option<SmtpReply> {
        if self.is_garbled {
            return None;
        }
        let unended = self.buffer.get(self.start..).unwrap_or_default();
        let Some(code) = self.code else {
            // The code alone may be the beginning of anything.
            let (code, text, _) = split(unended.get(..4).and(Some(unended))?).ok()?;
            let lines = vec![text];
            return Some(SmtpReply { code, lines });
        };
        match unended.first() {
            Some(digit @ b'2'..=b'5') if u16::from(digit - b'0') != code / 100 => None,
            _ => Some(SmtpReply {
                code,
                lines: self.lines.clone(),
            }),
        }
    }

    fn take_line(&mut self, line: &[u8]) -> Result<Option<SmtpReply>, Garbled> {
        let (code, text, is_last) = split(line)?;
        let first = *self.code.get_or_insert(code);
        if first / 100 != code / 100 {
            return Err(Garbled::TwoCodes(first, code));
        }
        if self.lines.len() < LINES_KEPT && self.bytes_kept + line.len() <= BYTES_KEPT {
            self.bytes_kept += line.len();
            self.lines.push(text);
        }
        if !is_last {
            return Ok(None);
        }
        let lines = std::mem::take(&mut self.lines);
        self.code = None;
        (self.bytes_kept, self.lines_read, self.bytes_read) = (0, 0, 0);
        Ok(Some(SmtpReply { code: first, lines }))
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Garbled> {
        let fresh = self.buffer.get(self.looked..).unwrap_or_default();
        let ended = fresh.iter().position(|byte| *byte == b'\n');
        let end = self.looked + ended.unwrap_or(fresh.len());
        // Counted with its CR: whoever sees only that much of it counts it too.
        let length = self.dropped + end - self.start;
        if self.bytes_read + length > BYTES_MAX {
            return Err(Garbled::LongReply);
        }
        let kept_end = end.min(self.start + LINE_BYTES_KEPT);
        if ended.is_none() {
            self.dropped += end - kept_end;
            self.buffer.truncate(kept_end);
            self.looked = kept_end;
            return Ok(None);
        }
        self.bytes_read += length;
        self.lines_read += 1;
        if self.lines_read > LINES_MAX {
            return Err(Garbled::LongReply);
        }
        let line = self.buffer.get(self.start..kept_end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        self.dropped = 0;
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
