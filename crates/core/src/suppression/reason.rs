//! Why a recipient is suppressed, and what that stops.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::class::Class;
use crate::name::Name;
use crate::outcome::ReplyClass;
use crate::retry::dead_letter::LastError;
use crate::time::Wall;

/// Why a recipient is suppressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// His provider said that there is no such mailbox.
    HardBounce = 0,
    /// He, or his provider, complained.
    Complaint = 1,
    /// He wants no more mail of this tenant.
    OptOut = 2,
    /// A person or a program put him on the list.
    Manual = 3,
}

impl Reason {
    /// All of them, the first to be named first.
    pub const ALL: [Self; 4] = [
        Self::HardBounce,
        Self::OptOut,
        Self::Manual,
        Self::Complaint,
    ];

    /// The word used in the API, tables and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HardBounce => "hard_bounce",
            Self::Complaint => "complaint",
            Self::OptOut => "opt_out",
            Self::Manual => "manual",
        }
    }

    /// What it says to people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::HardBounce => "an earlier message bounced: there is no such mailbox",
            Self::Complaint => "the recipient complained of an earlier message",
            Self::OptOut => "the recipient wants no more mail of this tenant",
            Self::Manual => "the recipient was put on the suppression list",
        }
    }

    /// Whether messages of this class are stopped.
    pub const fn stops(self, class: Class) -> bool {
        match self {
            Self::HardBounce | Self::OptOut | Self::Manual => true,
            Self::Complaint => matches!(class, Class::Normal | Class::Low),
        }
    }

    /// What is kept of a message that it stopped.
    pub fn error(self, since: Wall) -> LastError {
        let since = Timestamp::from_second(since.0.div_euclid(1_000_000_000));
        let since = since.unwrap_or(Timestamp::UNIX_EPOCH);
        LastError {
            code: None,
            enhanced: None,
            class: ReplyClass::Recipient,
            rule: Name::from("suppressed"),
            text: format!("suppressed ({self}, since {since}): {}", self.words()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reason that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown reason {0:?}: use hard_bounce, complaint, opt_out or manual")]
pub struct UnknownReason(pub String);

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        let mut all = Self::ALL.into_iter();
        all.find(|reason| reason.as_str() == text)
            .ok_or_else(|| UnknownReason(text.chars().take(64).collect()))
    }
}
