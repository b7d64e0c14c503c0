//! Delivery status notifications (RFC 3464).

use outflow_core::reply::Enhanced;

use crate::feedback::{Feedback, Kind};
use crate::fields::{Fields, blocks, typed};
use crate::original::Original;

/// No report speaks of more recipients that count.
const RECIPIENTS_MAX: usize = 100;

/// What a `message/delivery-status` part says, one for each recipient.
pub(crate) fn read(part: &[u8], original: &Original, most: usize) -> Vec<Feedback> {
    let blocks = blocks(part);
    // Some leave the block of the message out, or put it together with that of
    // the recipient: what speaks of a recipient is told by its fields.
    let of_message: Vec<&Fields> = blocks.iter().filter(|it| !is_recipient(it)).collect();
    let about = |name: &str| {
        let mut all = of_message.iter().copied().chain(&blocks);
        all.find_map(|block| block.get(name))
    };
    let reporting_mta = about("Reporting-MTA").and_then(|mta| typed(&mta));
    let envelope_id = about("Original-Envelope-Id");
    let mut found = Vec::new();
    let recipients = blocks.iter().filter(|it| is_recipient(it));
    for block in recipients.take(most.min(RECIPIENTS_MAX)) {
        let mut feedback = recipient(block);
        feedback.reporting_mta.clone_from(&reporting_mta);
        feedback.envelope_id.clone_from(&envelope_id);
        original.describe(&mut feedback);
        found.push(feedback);
    }
    found
}

fn is_recipient(block: &Fields) -> bool {
    ["Final-Recipient", "Original-Recipient", "Action"]
        .iter()
        .any(|name| block.has(name))
}

fn recipient(block: &Fields) -> Feedback {
    let status = block.get("Status").and_then(|text| status(&text));
    let action = block.get("Action").unwrap_or_default();
    let kind = match action.to_ascii_lowercase().split(' ').next() {
        Some("failed") => Kind::Bounce,
        Some("delayed") => Kind::Delay,
        Some("delivered" | "relayed" | "expanded") => Kind::Delivered,
        // It says no word that we know: its digits may.
        _ => match status {
            Some(Enhanced(5, ..)) => Kind::Bounce,
            Some(Enhanced(4, ..)) => Kind::Delay,
            Some(Enhanced(2, ..)) => Kind::Delivered,
            _ => Kind::Other,
        },
    };
    let named = |name: &str| block.get(name).and_then(|value| typed(&value));
    let last = named("Final-Recipient");
    let first = named("Original-Recipient");
    Feedback {
        original_recipient: first.clone().filter(|first| Some(first) != last.as_ref()),
        recipient: last.or(first),
        status,
        diagnostic: block.lines("Diagnostic-Code").and_then(diagnostic),
        remote_mta: named("Remote-MTA"),
        ..Feedback::new(kind)
    }
}

/// Reads `5.1.1`, also with words behind it.
pub(crate) fn status(text: &str) -> Option<Enhanced> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    Enhanced::split(text.get(..end.unwrap_or(text.len()))?).0
}

/// What stands behind `smtp;`.
fn diagnostic(lines: &str) -> Option<String> {
    let text = match lines.split_once(';') {
        Some((kind, rest)) if is_word(kind.trim()) => rest.trim(),
        _ => lines.trim(),
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn is_word(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
