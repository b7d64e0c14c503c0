//! What comes between DATA and its end.
//!
//! Only CRLF, a dot and CRLF end it. Servers that also take other line breaks
//! for an end see two messages where others see one: that is how mail is
//! smuggled (CVE-2023-51764 and its kin). So a line with nothing but a dot, set
//! off by a bare CR or LF on either side, is noted, and its message is refused.
//! Any other bare CR or LF becomes a line end. Dots that were put before dots
//! are taken off behind CRLF, and nowhere else.

use memchr::memchr2;

/// How the line before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    Crlf,
    /// With a CR or an LF alone.
    Bare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start(Break),
    /// Behind a dot that begins a line.
    Dot(Break),
    /// Behind such a dot and a CR.
    DotCr(Break),
    Text,
    /// Behind a CR.
    Cr,
}

/// Reads the data of one message.
#[derive(Debug)]
pub struct DataReader {
    at: At,
    is_smuggled: bool,
}

impl Default for DataReader {
    /// Behind the line end of the DATA command.
    fn default() -> Self {
        Self {
            at: At::Start(Break::Crlf),
            is_smuggled: false,
        }
    }
}

impl DataReader {
    /// Whether something looked like an end that was none.
    pub fn is_smuggled(&self) -> bool {
        self.is_smuggled
    }

    /// Reads on into `out`, which then has CRLF at every line end. Answers with
    /// what stands behind the end, once it was reached.
    pub fn read<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Option<&'b [u8]> {
        let mut rest = bytes;
        loop {
            if self.at == At::Text {
                rest = self.text(rest, out);
                if self.at == At::Text {
                    return None;
                }
            }
            let (&byte, after) = rest.split_first()?;
            match (self.at, byte) {
                (At::Start(how), b'.') => {
                    self.at = At::Dot(how);
                    rest = after;
                }
                (At::Start(_) | At::Text, _) => self.at = At::Text,
                (At::Dot(how), b'\r') => {
                    self.at = At::DotCr(how);
                    rest = after;
                }
                (At::Dot(_), b'\n') => {
                    self.smuggled(out);
                    rest = after;
                }
                (At::Dot(how), _) => {
                    if how == Break::Bare {
                        out.push(b'.');
                    }
                    self.at = At::Text;
                }
                (At::DotCr(Break::Crlf), b'\n') => return Some(after),
                (At::DotCr(Break::Bare), b'\n') => {
                    self.smuggled(out);
                    self.at = At::Start(Break::Crlf);
                    rest = after;
                }
                (At::DotCr(_), _) => self.smuggled(out),
                (At::Cr, b'\n') => {
                    out.extend_from_slice(b"\r\n");
                    self.at = At::Start(Break::Crlf);
                    rest = after;
                }
                (At::Cr, _) => {
                    out.extend_from_slice(b"\r\n");
                    self.at = At::Start(Break::Bare);
                }
            }
        }
    }

    /// Copies text up to a line break. Whole lines go in one piece.
    fn text<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
        let Some(at) = memchr2(b'\r', b'\n', bytes) else {
            out.extend_from_slice(bytes);
            return &[];
        };
        let (line, end) = bytes.split_at(at);
        match end {
            [b'\r', b'\n', after @ ..] => {
                out.extend_from_slice(bytes.get(..at + 2).unwrap_or_default());
                self.at = At::Start(Break::Crlf);
                after
            }
            [b'\r', after @ ..] => {
                out.extend_from_slice(line);
                self.at = At::Cr;
                after
            }
            [_, after @ ..] => {
                out.extend_from_slice(line);
                out.extend_from_slice(b"\r\n");
                self.at = At::Start(Break::Bare);
                after
            }
            [] => end,
        }
    }

    fn smuggled(&mut self, out: &mut Vec<u8>) {
        self.is_smuggled = true;
        out.extend_from_slice(b".\r\n");
        self.at = At::Start(Break::Bare);
    }
}
