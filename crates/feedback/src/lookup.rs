//! Finds a message by the Message-ID that we gave it.
//!
//! No index over Message-IDs is kept: each begins with the time at which it was
//! given, and receipts are in the order of time. So the time is searched for,
//! and there the recipient and the sending domain decide.

use outflow_core::message::Seq;
use outflow_ports::letter::Envelope;
use outflow_ports::receipts::{Receipt, ReceiptFilter, Receipts, ReceiptsError};

use crate::feedback::Feedback;

/// A Message-ID is given right before its message is accepted: most are found
/// within the first of these times.
const APART_MS: [i64; 3] = [200, 1_000, 5_000];
/// Receipts looked at in one go.
const PAGE: usize = 500;
/// Receipts looked at for all that one report speaks of.
pub const LOOKS_MAX: usize = 40_000;

/// The message of this tenant, if one is named, that a report is about, by its
/// Message-ID and recipient. Takes from the number of `looks` that are left.
pub fn by_message_id(
    receipts: &dyn Receipts,
    feedback: &Feedback,
    tenant: Option<&str>,
    looks: &mut usize,
) -> Result<Option<Receipt>, ReceiptsError> {
    let Some((given_ms, domain)) = feedback.message_id.as_deref().and_then(ours) else {
        return Ok(None);
    };
    let recipients = [&feedback.original_recipient, &feedback.recipient];
    let is_it = |receipt: &Receipt| {
        let key = &receipt.key;
        let sender = key.sender_domain.as_ref();
        let is_theirs = tenant.is_none_or(|tenant| key.tenant.as_str() == tenant)
            && sender.is_some_and(|sender| sender.as_str().eq_ignore_ascii_case(domain));
        if !is_theirs {
            return false;
        }
        let Ok(envelope) = Envelope::from_bytes(&receipt.envelope) else {
            return false;
        };
        recipients.iter().any(|recipient| {
            let recipient = recipient.as_deref();
            recipient.is_some_and(|it| it.eq_ignore_ascii_case(&envelope.to))
        })
    };
    let mut from_ms = given_ms;
    for apart_ms in APART_MS {
        let until_ms = given_ms.saturating_add(apart_ms);
        if let Some(found) = between(receipts, from_ms, until_ms, &is_it, looks)? {
            return Ok(Some(found));
        }
        from_ms = until_ms.saturating_add(1);
    }
    Ok(None)
}

/// The latest of the messages accepted between these times that `is_it`.
fn between(
    receipts: &dyn Receipts,
    from_ms: i64,
    until_ms: i64,
    is_it: &dyn Fn(&Receipt) -> bool,
    looks: &mut usize,
) -> Result<Option<Receipt>, ReceiptsError> {
    let all = ReceiptFilter::default();
    if *looks < PAGE {
        return Ok(None);
    }
    let mut before = first_after(receipts, until_ms)?;
    while *looks >= PAGE {
        *looks -= PAGE;
        let page = receipts.list(&all, before, PAGE)?;
        let Some(last) = page.last() else {
            return Ok(None);
        };
        let is_over = millis(last) < from_ms;
        before = Some(last.seq);
        let near = |receipt: &Receipt| millis(receipt) >= from_ms;
        if let Some(found) = page.into_iter().find(|it| near(it) && is_it(it)) {
            return Ok(Some(found));
        }
        if is_over {
            return Ok(None);
        }
    }
    Ok(None)
}

/// The time in milliseconds and the domain of a Message-ID that we gave.
fn ours(id: &str) -> Option<(i64, &str)> {
    let (left, domain) = id.trim_matches(['<', '>']).rsplit_once('@')?;
    let mut parts = left.split('.');
    let (time, process, count) = (parts.next()?, parts.next()?, parts.next()?);
    let is_ours = parts.next().is_none()
        && process.len() == 16
        && u64::from_str_radix(process, 16).is_ok()
        && u64::from_str_radix(count, 16).is_ok();
    let given_ms = i64::from_str_radix(time, 16).ok()?;
    is_ours.then_some((given_ms, domain))
}

fn millis(receipt: &Receipt) -> i64 {
    receipt.accepted_at.0.div_euclid(1_000_000)
}

/// The number of the first message that was accepted after this time; none if
/// there is none.
fn first_after(receipts: &dyn Receipts, at_ms: i64) -> Result<Option<Seq>, ReceiptsError> {
    let all = ReceiptFilter::default();
    let Some(newest) = receipts.list(&all, None, 1)?.pop() else {
        return Ok(None);
    };
    let (mut low, mut high) = (0, newest.seq.0 + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let below = receipts.list(&all, Some(Seq(middle + 1)), 1)?.pop();
        match below {
            Some(receipt) if millis(&receipt) > at_ms => high = receipt.seq.0,
            _ => low = middle + 1,
        }
    }
    Ok(Some(Seq(low)))
}
