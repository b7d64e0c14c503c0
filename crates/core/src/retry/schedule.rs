//! Whether a message is tried again, when, and when it is given up.
//!
//! A wait that the far end asked for is kept exactly. Otherwise the back-off
//! decides, but not for a time at which all that could carry the message stands
//! still: a refusal that holds until a person has mended something is not tried
//! against message by message. A try that would come too late to be of use is not waited for. The
//! number of attempts bounds what happens to this message; refusals that are
//! about us (a rate, a block, a wrong password) do not use up a message, which
//! is then given up by age alone, so that ten bad minutes of an account do not
//! turn its queue into dead letters.
//!
//! A message whose answer was lost may be with its recipient already, and each
//! further try may be one more copy. So such answers are counted by message, over
//! restarts and whatever comes between them, and bounded.

use crate::class::Class;
use crate::entropy::Entropy;
use crate::message::{Channel, Head, State};
use crate::outcome::{Outcome, Verdict};
use crate::retry::backoff::{Backoff, Jitter};
use crate::time::{Nanos, Now, Wall};

/// What to do when nobody knows whether a message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUncertain {
    /// Try again, until so many answers were lost: better twice than never.
    Retry {
        /// How many, the last one included.
        lost_max: u8,
    },
    /// Give up: better never than twice.
    Dead,
}

impl OnUncertain {
    /// Whether a message with so many lost answers is given up.
    const fn gives_up(self, lost: u8) -> bool {
        match self {
            Self::Retry { lost_max } => lost >= lost_max,
            Self::Dead => true,
        }
    }
}

impl Default for OnUncertain {
    fn default() -> Self {
        Self::Retry { lost_max: 3 }
    }
}

/// Why a message was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeathCause {
    /// It was tried as often as its schedule allows.
    Attempts,
    /// Its next try would come later than its schedule allows.
    Age,
    /// It may have been taken, and the settings forbid to risk another copy.
    Uncertain,
    /// It costs more than one of its limits ever admits.
    TooLarge,
    /// What was stored of it is damaged or gone.
    StorageDamaged,
}

impl DeathCause {
    /// The word used in the API and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::Age => "age",
            Self::Uncertain => "uncertain",
            Self::TooLarge => "too_large",
            Self::StorageDamaged => "storage_damaged",
        }
    }
}

/// What becomes of a message after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is done with.
    Settle(State),
    /// It is tried again.
    RetryAt {
        /// Not before this.
        at: Wall,
        /// The same as a wait, which the next decision wants to know.
        delay: Nanos,
    },
    /// It becomes a dead letter.
    Dead(DeathCause),
}

/// How long and how often to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How long to wait between attempts.
    pub backoff: Backoff,
    /// How often to try, the first attempt included.
    pub attempts: Option<u16>,
    /// How long after the first attempt the last one may come.
    pub give_up_after: Option<Nanos>,
}

impl RetryPolicy {
    /// What becomes of a message whose latest attempt, already counted in
    /// `head.attempts` and `head.uncertain`, had this outcome.
    pub fn decide(
        &self,
        now: &Now,
        head: &Head,
        outcome: &Outcome,
        on_uncertain: OnUncertain,
    ) -> Next {
        match outcome.verdict {
            Verdict::Delivered => Next::Settle(State::Delivered),
            Verdict::Bounced => Next::Settle(State::Bounced),
            Verdict::Uncertain if on_uncertain.gives_up(head.uncertain) => {
                Next::Dead(DeathCause::Uncertain)
            }
            Verdict::Uncertain | Verdict::Retry | Verdict::Blocked | Verdict::Misconfigured => {
                self.next_try(now, head, outcome)
            }
        }
    }

    fn next_try(&self, now: &Now, head: &Head, outcome: &Outcome) -> Next {
        let ends_by_age_alone = outcome.is_about_us() && self.give_up_after.is_some();
        let is_last = self.attempts.is_some_and(|most| head.attempts >= most);
        if is_last && !ends_by_age_alone {
            return Next::Dead(DeathCause::Attempts);
        }

        let delay = outcome.retry_after.unwrap_or_else(|| {
            self.backoff
                .delay(head.attempts, head.last_delay, &mut jitter_bits(now, head))
                .max(outcome.held_for())
        });
        let at = now.wall + delay;
        let first_attempt_at = head.first_attempt_at.min(now.wall);
        let is_too_late = |longest| at.since(first_attempt_at) > longest;
        if self.give_up_after.is_some_and(is_too_late) {
            return Next::Dead(DeathCause::Age);
        }
        Next::RetryAt { at, delay }
    }
}

/// Replies of one step share its entropy; the message's number keeps their
/// waits apart.
fn jitter_bits(now: &Now, head: &Head) -> Entropy {
    let place = head.seq.0.wrapping_mul(0xd134_2543_de82_ef95);
    Entropy(now.entropy.0 ^ place ^ u64::from(head.attempts))
}

/// The retry policies of all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySchedules {
    /// Mail of all classes but critical.
    pub email: RetryPolicy,
    /// Critical mail.
    pub critical: RetryPolicy,
    /// Text messages and push notifications.
    pub api: RetryPolicy,
}

impl RetrySchedules {
    /// The policy for messages of this channel and class.
    pub const fn for_message(&self, channel: Channel, class: Class) -> &RetryPolicy {
        match (channel, class) {
            (Channel::Email, Class::Critical) => &self.critical,
            (Channel::Email, Class::High | Class::Normal | Class::Low) => &self.email,
            (Channel::Sms | Channel::Push, _) => &self.api,
        }
    }
}

impl Default for RetrySchedules {
    fn default() -> Self {
        let four_days = Some(Nanos::from_secs(4 * 86_400));
        let email = RetryPolicy {
            backoff: Backoff {
                first: Nanos::from_secs(300),
                factor_milli: 2_000,
                cap: Nanos::from_secs(4 * 3_600),
                jitter: Jitter::Equal,
            },
            attempts: None,
            give_up_after: four_days,
        };
        let critical = RetryPolicy {
            backoff: Backoff {
                first: Nanos::from_secs(30),
                cap: Nanos::from_secs(300),
                ..email.backoff
            },
            ..email
        };
        let api = RetryPolicy {
            backoff: Backoff {
                first: Nanos::from_secs(1),
                cap: Nanos::from_secs(300),
                jitter: Jitter::Full,
                ..email.backoff
            },
            attempts: Some(5),
            give_up_after: four_days,
        };
        Self {
            email,
            critical,
            api,
        }
    }
}
