//! Messages as clients write them.

use std::io::Write as _;

/// What a message is made of.
#[derive(Clone, Copy)]
pub struct Letter {
    pub tenant: u64,
    pub class: &'static str,
    pub domain: u64,
    /// Makes it different from all others.
    pub no: u64,
    pub has_key: bool,
}

impl Letter {
    /// Appends it as JSON: a small mail, about 200 bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Self {
            tenant,
            class,
            domain,
            no,
            has_key,
        } = *self;
        let _ = write!(
            out,
            r#"{{"tenant":"t{tenant}","class":"{class}","from":"shop@example.com","to":"u{no}@d{domain}.example","subject":"Order {no}","text":"Thank you for your order {no}.""#,
        );
        if has_key {
            let _ = write!(out, r#","idempotency_key":"order-{no}""#);
        }
        out.push(b'}');
    }
}

/// Appends so many of them as a batch.
pub fn batch(out: &mut Vec<u8>, letters: impl Iterator<Item = Letter>) {
    out.extend_from_slice(br#"{"messages":["#);
    for (index, letter) in letters.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        letter.write(out);
    }
    out.extend_from_slice(b"]}");
}

/// Appends so many of them, a line each.
pub fn lines(out: &mut Vec<u8>, letters: impl Iterator<Item = Letter>) {
    for letter in letters {
        letter.write(out);
        out.push(b'\n');
    }
}
