//! All reasons that are in force for one recipient, in one byte.

use super::reason::Reason;
use crate::class::Class;

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons(u8);

impl Reasons {
    /// One reason.
    pub const fn of(reason: Reason) -> Self {
        Self(1 << reason as u8)
    }

    /// These, and one more.
    #[must_use]
    pub const fn with(self, reason: Reason) -> Self {
        Self(self.0 | Self::of(reason).0)
    }

    /// These, but for one.
    #[must_use]
    pub const fn without(self, reason: Reason) -> Self {
        Self(self.0 & !Self::of(reason).0)
    }

    /// Whether this is one of them.
    pub const fn has(self, reason: Reason) -> bool {
        self.0 & Self::of(reason).0 != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The reason that stops messages of this class, if one does.
    pub fn stopping(self, class: Class) -> Option<Reason> {
        let mut all = Reason::ALL.into_iter();
        all.find(|reason| self.has(*reason) && reason.stops(class))
    }
}
