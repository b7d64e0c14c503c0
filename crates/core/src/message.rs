//! What the engine knows of a message, and the states it passes through.
//!
//! The body, the addresses and the headers stay in the store. The engine holds
//! a [`Head`] for the first few messages of each flow and nothing for the rest.

use std::fmt;

use crate::time::{Nanos, Wall};

/// A message's place in the journal: the handle by which engine and store
/// speak of it. Public ids carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// A recipient, as a key that the store made from the address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recipient(pub u64);

/// How a message travels. Decides the retry schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Mail.
    #[default]
    Email,
    /// Text messages.
    Sms,
    /// Push notifications.
    Push,
}

impl Channel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Email, Self::Sms, Self::Push];

    /// The word used in settings, the API and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Sms => "sms",
            Self::Push => "push",
        }
    }
}

/// All that a decision needs to know of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which message.
    pub seq: Seq,
    /// When it was accepted.
    pub accepted_at: Wall,
    /// From when on it is of no use; [`Wall::NEVER`] if always.
    pub expires_at: Wall,
    /// When it was first tried; [`Wall::NEVER`] if it was not.
    pub first_attempt_at: Wall,
    /// The wait before this attempt, which decorrelated jitter builds on.
    pub last_delay: Nanos,
    /// Whom it goes to.
    pub recipient: Recipient,
    /// What it takes from each limit: segments, recipients, bytes.
    pub cost: u32,
    /// How often it was tried. Refusals by our own limits do not count.
    pub attempts: u16,
    /// After how many of these nobody knew whether it was taken.
    pub uncertain: u8,
}

impl Head {
    /// A message that was never tried and never expires.
    pub fn new(seq: Seq, accepted_at: Wall) -> Self {
        Self {
            seq,
            accepted_at,
            expires_at: Wall::NEVER,
            first_attempt_at: Wall::NEVER,
            last_delay: Nanos::ZERO,
            recipient: Recipient(0),
            cost: 1,
            attempts: 0,
            uncertain: 0,
        }
    }
}

/// The states of a message.
///
/// ```text
/// queued -> sending -> delivered | bounced | expired | cancelled | suppressed | dead
///    ^         |
///    +- deferred (a retry time), spilled (cold storage)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waits for its turn.
    Queued,
    /// Handed to a transport, no reply yet.
    Sending,
    /// Waits for its retry time.
    Deferred,
    /// In cold storage.
    Spilled,
    /// Accepted by the far end.
    Delivered,
    /// Refused for good by the far end.
    Bounced,
    /// Could no longer be useful.
    Expired,
    /// Withdrawn by a person or a program.
    Cancelled,
    /// Not sent because the recipient is suppressed.
    Suppressed,
    /// Given up: a dead letter.
    Dead,
}

impl State {
    /// Whether a message in this state is done with.
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Delivered
                | Self::Bounced
                | Self::Expired
                | Self::Cancelled
                | Self::Suppressed
                | Self::Dead
        )
    }

    /// The word used in the API and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Deferred => "deferred",
            Self::Spilled => "spilled",
            Self::Delivered => "delivered",
            Self::Bounced => "bounced",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Suppressed => "suppressed",
            Self::Dead => "dead",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
