//! Reports of complaints (ARF, RFC 5965), and the older form in which some
//! providers just give the message back.

use crate::feedback::{Feedback, Kind};
use crate::fields::{Fields, blocks, flat, typed};
use crate::original::Original;

/// No report speaks of more recipients that count.
const RECIPIENTS_MAX: usize = 100;

/// What a `message/feedback-report` part says, one for each recipient.
pub(crate) fn read(part: &[u8], original: &Original, most: usize) -> Vec<Feedback> {
    let blocks = blocks(part);
    let empty = Fields::default();
    let fields = blocks.first().unwrap_or(&empty);
    let word = fields.get("Feedback-Type");
    let mut feedback = Feedback {
        source_ip: fields.get("Source-IP"),
        envelope_id: fields.get("Original-Envelope-Id"),
        reporting_mta: fields.get("Reporting-MTA").and_then(|mta| typed(&mta)),
        return_path: fields.get("Original-Mail-From").and_then(|it| address(&it)),
        ..Feedback::new(kind(word.as_deref()))
    };
    feedback.feedback_type = word;
    original.describe(&mut feedback);
    let named = fields.all("Original-Rcpt-To").filter_map(address);
    let mut found: Vec<Feedback> = named
        .take(most.min(RECIPIENTS_MAX))
        .map(|recipient| Feedback {
            recipient: Some(recipient),
            ..feedback.clone()
        })
        .collect();
    if found.is_empty() {
        feedback.recipient = recipient_of(original);
        found.push(feedback);
    }
    found
}

/// A complaint that is nothing but the message itself, attached.
pub(crate) fn bare(original: &Original) -> Feedback {
    let mut feedback = Feedback::new(Kind::Complaint);
    original.describe(&mut feedback);
    feedback.recipient = recipient_of(original);
    feedback
}

/// Microsoft writes the recipient into the message that it gives back.
fn recipient_of(original: &Original) -> Option<String> {
    address(&original.get("X-HmXmrOriginalRecipient")?)
}

/// Whether Microsoft's mark of a complaint is in the message.
pub(crate) fn is_marked(original: &Original) -> bool {
    original.get("X-HmXmrOriginalRecipient").is_some()
}

fn kind(word: Option<&str>) -> Kind {
    match word.unwrap_or_default().to_ascii_lowercase().as_str() {
        "abuse" | "fraud" | "virus" | "" => Kind::Complaint,
        "opt-out" | "opt-out-list" => Kind::OptOut,
        "not-spam" => Kind::NotSpam,
        "auth-failure" => Kind::AuthenticationFailure,
        _ => Kind::Other,
    }
}

/// An address that was not blacked out.
fn address(text: &str) -> Option<String> {
    let address = typed(&flat(text))?;
    let (left, right) = address.rsplit_once('@')?;
    let is_whole = !left.is_empty() && !right.is_empty() && !left.contains("redacted");
    is_whole.then_some(address)
}
