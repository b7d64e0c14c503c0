//! The four classes of urgency.

use std::fmt;
use std::str::FromStr;

/// How urgent a message is. Lower in this list gives way to higher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// One-time passwords, password resets: overtakes everything.
    Critical = 0,
    /// Receipts, alerts.
    High = 1,
    /// Everything that says nothing else.
    #[default]
    Normal = 2,
    /// Digests, promotions: the first to wait.
    Low = 3,
}

impl Class {
    /// All classes, most urgent first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];
    /// How many there are.
    pub const COUNT: usize = 4;

    /// The place of this class in [`Class::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The classes more urgent than this one.
    pub fn above(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().take(self.index())
    }

    /// The classes less urgent than this one.
    pub fn below(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().skip(self.index() + 1)
    }

    /// The word used in settings, the API and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A class that is not one of the four.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown class {0:?}: use critical, high, normal or low")]
pub struct UnknownClass(pub String);

impl FromStr for Class {
    type Err = UnknownClass;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|class| class.as_str() == text)
            .ok_or_else(|| UnknownClass(text.to_owned()))
    }
}
