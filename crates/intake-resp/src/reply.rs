//! Answers, as they are written.

use std::io::Write;

/// Which version of the protocol a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// As it always was.
    #[default]
    Two,
    /// With maps, after `HELLO 3`.
    Three,
}

/// Writes answers to the end of a buffer.
pub struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> Out<'a> {
    /// Writes in this version.
    pub fn new(bytes: &'a mut Vec<u8>, version: Version) -> Self {
        Self { bytes, version }
    }

    /// Goes on in another version.
    pub fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// A whole number, behind a mark.
    fn marked(&mut self, mark: u8, number: i64) {
        self.bytes.push(mark);
        if let Ok(digit @ 0..=9) = u8::try_from(number) {
            self.bytes.push(b'0' + digit);
        } else {
            // A vector takes everything.
            let _ = write!(self.bytes, "{number}");
        }
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A word that needs no length.
    pub fn simple(&mut self, text: &str) {
        self.bytes.push(b'+');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// An error. What it quotes must not begin a new line.
    pub fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        let clean = text.bytes().map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            other => other,
        });
        self.bytes.extend(clean);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A whole number.
    pub fn integer(&mut self, number: i64) {
        self.marked(b':', number);
    }

    /// A text of any bytes.
    pub fn bulk(&mut self, text: &[u8]) {
        self.marked(b'$', i64::try_from(text.len()).unwrap_or(0));
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// The beginning of a list of so many.
    pub fn array(&mut self, count: usize) {
        self.marked(b'*', i64::try_from(count).unwrap_or(0));
    }

    /// The beginning of so many pairs.
    pub fn map(&mut self, pairs: usize) {
        let pairs = i64::try_from(pairs).unwrap_or(0);
        match self.version {
            Version::Two => self.marked(b'*', pairs * 2),
            Version::Three => self.marked(b'%', pairs),
        }
    }
}
