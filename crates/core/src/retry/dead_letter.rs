//! What is kept of the last failure, and of a message that was given up.
//!
//! Dead letters are grouped by cause and replayed only after a person has
//! looked, so they carry what that person needs and nothing that grows: the
//! far end's text is cut.

use crate::classify::text::beginning;
use crate::message::Head;
use crate::name::Name;
use crate::outcome::{Outcome, ReplyClass};
use crate::reply::{Enhanced, Reply};
use crate::retry::schedule::DeathCause;
use crate::time::Wall;

/// The most bytes of the far end's text that are kept.
pub const TEXT_BYTES_MAX: usize = 512;

/// The last thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// The SMTP or HTTP status, where there was one.
    pub code: Option<u16>,
    /// The enhanced code, where there was one.
    pub enhanced: Option<Enhanced>,
    /// Why, in one word.
    pub class: ReplyClass,
    /// Which rule said so.
    pub rule: Name,
    /// What the far end said, at most [`TEXT_BYTES_MAX`] bytes of it.
    pub text: String,
}

impl LastError {
    /// What is kept of `reply`, which meant `outcome`.
    pub fn of(reply: &Reply, outcome: &Outcome) -> Self {
        let (code, enhanced, text) = match reply {
            Reply::Said {
                code,
                enhanced,
                text,
                ..
            } => (Some(*code), *enhanced, &**text),
            Reply::Network { text, .. } | Reply::Damaged { text } => (None, None, &**text),
            Reply::Uncertain => (None, None, "the answer was lost"),
        };
        Self {
            code,
            enhanced,
            class: outcome.class,
            rule: outcome.rule.clone(),
            text: beginning(text, TEXT_BYTES_MAX).to_owned(),
        }
    }
}

impl LastError {
    /// Says how many answers to this message were lost, which is why it is not
    /// tried again.
    pub fn note_lost(&mut self, times: u8) {
        let times = match times {
            0 | 1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        self.text = format!("the answer was lost {times}: it may have been delivered");
    }

    /// What is kept of a message whose content cannot be read any more.
    pub fn damaged(text: &str) -> Self {
        Self {
            code: None,
            enhanced: None,
            class: ReplyClass::Other,
            rule: Name::from("storage"),
            text: beginning(text, TEXT_BYTES_MAX).to_owned(),
        }
    }

    /// What is kept of a message that costs more than a limit ever admits.
    pub fn oversized(cost: u32) -> Self {
        Self {
            code: None,
            enhanced: None,
            class: ReplyClass::Other,
            rule: Name::from("cost"),
            text: format!("a cost of {cost} never fits a limit on its way"),
        }
    }
}

/// A message that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// When it was first tried.
    pub first_attempt_at: Wall,
    /// When it was last tried.
    pub last_attempt_at: Wall,
    /// How often it was tried.
    pub attempts: u16,
    /// Why it was given up.
    pub cause: DeathCause,
    /// What its last attempt ended with.
    pub error: LastError,
}

impl DeadLetter {
    /// What is kept of a message whose last attempt ended at `last_attempt_at`.
    pub fn new(head: &Head, last_attempt_at: Wall, cause: DeathCause, error: LastError) -> Self {
        Self {
            first_attempt_at: head.first_attempt_at.min(last_attempt_at),
            last_attempt_at,
            attempts: head.attempts,
            cause,
            error,
        }
    }
}
