//! What the server says to a command: a code, its enhanced status, a text.

use std::borrow::Cow;

/// The most bytes of a text; with the codes a line stays below 512.
const TEXT_BYTES_MAX: usize = 400;

/// A reply of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    code: u16,
    status: &'static str,
    text: Cow<'static, str>,
}

impl Reply {
    /// A reply with its enhanced status code (RFC 3463).
    pub fn new(code: u16, status: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            status,
            text: text.into(),
        }
    }

    /// The code.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The enhanced status; empty if it has none.
    pub fn status(&self) -> &'static str {
        self.status
    }

    /// Writes the line. What could end it early becomes a space.
    pub fn write(&self, out: &mut Vec<u8>) {
        let cut = self.text.floor_char_boundary(TEXT_BYTES_MAX);
        let text = self.text.get(..cut).unwrap_or_default();
        let digit = |value: u16| b'0' + (value % 10) as u8;
        let code = self.code;
        out.extend([digit(code / 100), digit(code / 10), digit(code), b' ']);
        if !self.status.is_empty() {
            out.extend_from_slice(self.status.as_bytes());
            out.push(b' ');
        }
        let harmless = |byte: u8| match byte {
            0..=31 | 127 => b' ',
            byte => byte,
        };
        out.extend(text.bytes().map(harmless));
        out.extend_from_slice(b"\r\n");
    }
}
