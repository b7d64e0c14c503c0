//! The message that a report speaks of, as far as it came back, and addresses.

use outflow_ports::letter::RETURN_FIELD;

use crate::feedback::Feedback;
use crate::fields::{Fields, flat, header};

/// No more addresses are looked at.
const ADDRESSES_MAX: usize = 16;
/// No address is longer (RFC 5321: 64 + 1 + 255).
const ADDRESS_BYTES_MAX: usize = 320;

/// What came back of the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Original {
    header: Fields,
}

impl Original {
    /// What is known from its bytes, or from its header alone.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            header: header(bytes),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.header.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.header.get(name)
    }

    pub(crate) fn return_path(&self) -> Option<String> {
        let path = self.header.lines("Return-Path")?;
        addresses([path].into_iter()).into_iter().next()
    }

    /// Tells `feedback` what it is about.
    pub(crate) fn describe(&self, feedback: &mut Feedback) {
        let id = self.header.get("Message-ID");
        let id = id.map(|id| id.trim_matches(['<', '>']).to_owned());
        feedback.message_id = id.filter(|id| !id.is_empty());
        let own = feedback.return_path.take();
        feedback.return_path = own.or_else(|| self.return_path());
        feedback.signed = self.header.get(RETURN_FIELD);
    }
}

/// The addresses in these fields, as many as are looked at.
pub(crate) fn addresses<'a>(fields: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    for field in fields.take(ADDRESSES_MAX) {
        let field = flat(field);
        for word in field.split([',', ' ', ';']) {
            let word = word.rsplit('<').next().unwrap_or(word);
            let word = word.trim_end_matches('>').trim_matches('"');
            let is_address = word.contains('@') && word.len() <= ADDRESS_BYTES_MAX;
            if is_address && found.len() < ADDRESSES_MAX && !found.iter().any(|it| it == word) {
                found.push(word.to_owned());
            }
        }
    }
    found
}
