//! What a reply says about whoever carried the message.

use crate::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};

/// What a reply says about the account and the way to the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The far end works: it took the message, or judged it.
    Fine,
    /// It does not: no answer, a broken connection, an error of its own.
    Failed,
    /// Nothing: it refused us for our rate, our name or our papers.
    Silent,
}

impl Signal {
    /// What an outcome says.
    pub fn of(outcome: &Outcome) -> Self {
        match (outcome.verdict, outcome.class, outcome.scope) {
            (Verdict::Delivered, _, _) => Self::Fine,
            (Verdict::Uncertain, _, _) => Self::Failed,
            (Verdict::Blocked | Verdict::Misconfigured, _, _) => Self::Silent,
            (_, ReplyClass::Rate | ReplyClass::Reputation | ReplyClass::Authentication, _) => {
                Self::Silent
            }
            (_, ReplyClass::Recipient | ReplyClass::Content | ReplyClass::Greylist, _)
            | (_, _, ReplyScope::Recipient | ReplyScope::Message) => Self::Fine,
            (Verdict::Bounced, ReplyClass::Other | ReplyClass::Accepted, _) => Self::Fine,
            (
                Verdict::Retry | Verdict::Bounced,
                ReplyClass::Network
                | ReplyClass::Capacity
                | ReplyClass::Other
                | ReplyClass::Accepted,
                _,
            ) => Self::Failed,
        }
    }
}

/// Whether an outcome is a refusal of us: for our rate or our name, or because
/// the far end is overloaded.
pub fn is_refusal(outcome: &Outcome) -> bool {
    let is_meant = matches!(
        outcome.class,
        ReplyClass::Rate | ReplyClass::Reputation | ReplyClass::Capacity
    );
    let is_his = matches!(outcome.scope, ReplyScope::Recipient | ReplyScope::Message);
    is_meant && !is_his && outcome.verdict != Verdict::Delivered
}
