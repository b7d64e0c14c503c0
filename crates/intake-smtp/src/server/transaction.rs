//! One message on its way in: its envelope, and as much of it as has come.

use outflow_mail::Address;

/// A message that came whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Handed {
    /// Where bounces go; none if it must not bounce (`<>`).
    pub sender: Option<Address>,
    /// Whom it goes to, as they were named; at least one.
    pub recipients: Vec<Address>,
    /// Header and body, with dots taken off.
    pub bytes: Vec<u8>,
    /// Whether it came over TLS.
    pub is_protected: bool,
    /// Whether it is a report, to one of our return addresses, by somebody
    /// without a token.
    pub is_report: bool,
}

/// What is in it is nobody's business.
impl std::fmt::Debug for Handed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handed")
            .field("recipients", &self.recipients.len())
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// What is kept of a report by somebody without a token. What it says stands at
/// its beginning; behind that is the mail that it is about.
const REPORT_BYTES_MAX: usize = 1 << 20;

/// From MAIL to the end of the data.
#[derive(Debug)]
pub(super) struct Transaction {
    pub sender: Option<Address>,
    pub recipients: Vec<Address>,
    pub bytes: Vec<u8>,
    /// Bytes of it that came, kept or not.
    pub came: usize,
    /// Whether it comes in chunks.
    pub is_chunked: bool,
    /// Whether a chunk was refused: the rest is of no use.
    pub is_spoilt: bool,
    /// Whether its bytes were let go for want of memory.
    pub is_shed: bool,
    /// Whether it is a report: nobody showed a token.
    pub is_report: bool,
}

impl Transaction {
    pub fn new(sender: Option<Address>, is_report: bool) -> Self {
        Self {
            sender,
            recipients: Vec::new(),
            bytes: Vec::new(),
            came: 0,
            is_chunked: false,
            is_spoilt: false,
            is_shed: false,
            is_report,
        }
    }

    /// Notes that so many bytes came. Those of a message that will not be taken
    /// are not kept.
    pub fn note(&mut self, came: usize, bytes_max: usize) {
        self.came += came;
        if self.is_shed || self.is_spoilt || self.came > bytes_max {
            self.bytes = Vec::new();
        }
        if self.is_report && self.bytes.len() > REPORT_BYTES_MAX {
            self.bytes.truncate(REPORT_BYTES_MAX);
            self.bytes.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_report_without_a_token_the_beginning_is_kept() {
        for (is_report, kept) in [(true, REPORT_BYTES_MAX), (false, 3 << 20)] {
            let mut transaction = Transaction::new(None, is_report);
            for _ in 0..48 {
                transaction.bytes.extend_from_slice(&[b'x'; 64 << 10]);
                transaction.note(64 << 10, 25 << 20);
            }
            assert_eq!((transaction.came, transaction.bytes.len()), (3 << 20, kept));
        }
    }
}
