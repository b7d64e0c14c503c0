//! What a reply says about the rate.
//!
//! Only replies about the rate and about our standing count as refusals. Who
//! was let through to be greylisted, bounced or told that the text is spam was
//! let through. What never reached the far end says nothing.

use crate::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};

/// What a refusal complained of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Too fast.
    Rate,
    /// It thinks ill of us.
    Reputation,
}

/// What a reply says about the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The message was let through, whatever became of it then.
    Passed,
    /// It was turned away for what we did, not for what it was.
    Refused {
        /// Why.
        cause: Cause,
        /// With which code, for people.
        code: u16,
    },
    /// Too many connections, or too many messages on one: the rate is not
    /// meant, see [`super::connections`].
    Crowded,
    /// Nothing: it never got there, or nobody knows.
    Silent,
}

impl Signal {
    /// What `outcome` says; `code` is the reply's.
    pub fn of(outcome: &Outcome, code: u16) -> Self {
        match outcome.class {
            ReplyClass::Rate => match outcome.scope {
                ReplyScope::Session => Self::Crowded,
                // A mailbox that gets too much says nothing about its server.
                ReplyScope::Recipient => Self::Passed,
                _ => Self::Refused {
                    cause: Cause::Rate,
                    code,
                },
            },
            ReplyClass::Reputation => Self::Refused {
                cause: Cause::Reputation,
                code,
            },
            ReplyClass::Accepted
            | ReplyClass::Content
            | ReplyClass::Recipient
            | ReplyClass::Greylist => Self::Passed,
            ReplyClass::Authentication
            | ReplyClass::Network
            | ReplyClass::Capacity
            | ReplyClass::Other => match outcome.verdict {
                Verdict::Delivered => Self::Passed,
                _ => Self::Silent,
            },
        }
    }
}

/// What a far end says outright about its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Explicit {
    /// Come back after so many nanoseconds (`Retry-After`).
    Wait(crate::time::Nanos),
    /// So many a second are allowed (a provider's quota, `RateLimit-Policy`).
    Rate(f64),
}
