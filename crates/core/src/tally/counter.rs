//! What is counted.

use std::fmt;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Messages handed to the far end.
    Attempts,
    /// It took them.
    Accepted,
    /// It bounced them for good.
    Bounced,
    /// Recipients complained.
    Complained,
    /// Recipients opened them, as far as is known.
    Opened,
    /// Recipients clicked, as far as is known.
    Clicked,
    /// It put them off.
    Deferred,
    /// It replied 4xx (429 is counted there too).
    Reply4xx,
    /// It replied 5xx.
    Reply5xx,
    /// It replied 429, or said by other words that we are too fast.
    Reply429,
}

impl Counter {
    /// All of them. Those that are counted over days stand first.
    pub const ALL: [Self; 10] = [
        Self::Attempts,
        Self::Accepted,
        Self::Bounced,
        Self::Complained,
        Self::Opened,
        Self::Clicked,
        Self::Deferred,
        Self::Reply4xx,
        Self::Reply5xx,
        Self::Reply429,
    ];

    /// How many of them are counted over hours and days too.
    pub(super) const LONG: usize = 6;

    /// The word used in rules, the API and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::Accepted => "accepted",
            Self::Bounced => "bounced",
            Self::Complained => "complained",
            Self::Opened => "opened",
            Self::Clicked => "clicked",
            Self::Deferred => "deferred",
            Self::Reply4xx => "4xx",
            Self::Reply5xx => "5xx",
            Self::Reply429 => "429",
        }
    }

    /// Its place in a slot.
    pub(super) const fn place(self) -> usize {
        self as usize
    }

    /// Whether it is counted over hours and days too.
    pub const fn is_long(self) -> bool {
        self.place() < Self::LONG
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
