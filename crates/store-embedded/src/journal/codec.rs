//! Numbers and texts as bytes, and back. Reading never trusts a length.

/// Writes into a growing buffer.
pub struct Out<'a>(pub &'a mut Vec<u8>);

impl Out<'_> {
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A length and so many bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// A text or none.
    pub fn maybe_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.u8(1).text(text),
            None => self.u8(0),
        }
    }

    pub fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = u64>) -> &mut Self {
        self.u32(numbers.len() as u32);
        for number in numbers {
            self.u64(number);
        }
        self
    }
}

/// Reads from bytes; none where they do not go on as they should.
#[derive(Clone, Copy, Debug)]
pub struct In<'a>(pub &'a [u8]);

impl<'a> In<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    #[expect(clippy::option_option, reason = "not readable, or absent")]
    pub fn maybe_text(&mut self) -> Option<Option<&'a str>> {
        match self.u8()? {
            0 => Some(None),
            1 => Some(Some(self.text()?)),
            _ => None,
        }
    }

    pub fn numbers(&mut self) -> Option<Vec<u64>> {
        let count = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(count.checked_mul(8)?)?;
        self.0 = rest;
        let (numbers, _) = head.as_chunks::<8>();
        Some(numbers.iter().map(|it| u64::from_le_bytes(*it)).collect())
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
