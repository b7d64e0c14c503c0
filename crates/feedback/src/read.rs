//! Which form a mail has, and what it says.

use outflow_mail::structure::{MailPart, MailStructure};

use crate::feedback::{Feedback, Kind, Report};
use crate::fields::{Fields, header};
use crate::original::{Original, addresses};
use crate::{arf, dsn, plain};

/// No mail is looked at beyond this. Reports come first in a mail, and the
/// message that they speak of, however large, last.
pub const MAIL_BYTES_MAX: usize = 1 << 20;
/// No more parts are looked at.
const PARTS_MAX: usize = 32;

/// Where a report may say to which of our addresses it went.
const SENT_TO: [&str; 4] = ["Delivered-To", "X-Original-To", "Envelope-To", "To"];

/// What a mail reports; nothing if it reports nothing that we understand.
pub fn read(mail: &[u8]) -> Option<Report> {
    read_some(mail, usize::MAX)
}

/// The same, of the first recipient that it speaks of.
pub fn read_first(mail: &[u8]) -> Option<Report> {
    read_some(mail, 1)
}

fn read_some(mail: &[u8], most: usize) -> Option<Report> {
    let end = mail.len().min(MAIL_BYTES_MAX);
    let mail = mail.get(..end)?;
    let own = header(mail);
    let parts = Parts::of(mail);
    let feedback = feedback(&own, &parts, most);
    // All of it is about one message.
    let first = feedback.first()?;
    let ours = [first.signed.as_deref(), first.return_path.as_deref()];
    let fields = SENT_TO.iter().flat_map(|name| own.all(name));
    let addresses = addresses(ours.into_iter().flatten().chain(fields));
    Some(Report {
        feedback,
        addresses,
    })
}

fn feedback(own: &Fields, parts: &Parts, most: usize) -> Vec<Feedback> {
    let original = &parts.original;
    if let Some(report) = &parts.complaint {
        return arf::read(report, original, most);
    }
    if let Some(report) = &parts.status {
        let found = dsn::read(report, original, most);
        if !found.is_empty() {
            return found;
        }
    }
    if plain::is_auto_reply(own) {
        let mut feedback = Feedback::new(Kind::AutoReply);
        original.describe(&mut feedback);
        return vec![feedback];
    }
    if arf::is_marked(original) {
        return vec![arf::bare(original)];
    }
    plain::read(own, &parts.words, original, most)
}

/// The parts of a mail that matter here.
#[derive(Debug, Default)]
struct Parts {
    status: Option<Vec<u8>>,
    complaint: Option<Vec<u8>>,
    original: Original,
    words: Vec<u8>,
}

impl Parts {
    fn of(mail: &[u8]) -> Self {
        let mut parts = Self::default();
        let structure = MailStructure::of(mail);
        // What is inside a message that came back is not the report's.
        let own = structure.parts.iter();
        let own = own.filter(|part| part.messages_around == 0);
        for part in own.take(PARTS_MAX) {
            parts.take(part, mail);
        }
        parts
    }

    /// The first part of each kind counts.
    fn take(&mut self, part: &MailPart, mail: &[u8]) {
        let decoded = || part.decoded(mail);
        match (part.main_type.as_str(), part.sub_type.as_str()) {
            ("message", "delivery-status" | "global-delivery-status") => {
                self.status.get_or_insert_with(|| decoded().into_owned());
            }
            ("message", "feedback-report") => {
                self.complaint.get_or_insert_with(|| decoded().into_owned());
            }
            ("message", "rfc822" | "global" | "rfc822-headers" | "global-headers")
            | ("text", "rfc822-headers") => self.give_back(&decoded()),
            ("text", kind) if kind != "html" && self.words.is_empty() => {
                self.words = part.text(mail).into_owned();
            }
            _ => {}
        }
    }

    fn give_back(&mut self, bytes: &[u8]) {
        if self.original.is_empty() {
            self.original = Original::of(bytes);
        }
    }
}
