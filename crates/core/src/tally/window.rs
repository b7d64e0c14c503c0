//! Over how long is counted.

use std::fmt;

use crate::time::Nanos;

/// Over how long is counted: up to now, never more than its length, and at
/// most one slot less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Window {
    /// The last minute, in slots of 5 s.
    Minute,
    /// The last 5 minutes, in slots of 30 s.
    FiveMinutes,
    /// The last 15 minutes, in slots of 30 s.
    QuarterHour,
    /// The last hour, in slots of 2 min.
    Hour,
    /// The last 24 hours, in slots of 30 min.
    Day,
    /// The last 7 days, in slots of 6 h.
    Week,
}

impl Window {
    /// All of them, the shortest first.
    pub const ALL: [Self; 6] = [
        Self::Minute,
        Self::FiveMinutes,
        Self::QuarterHour,
        Self::Hour,
        Self::Day,
        Self::Week,
    ];

    /// The word used in rules, the API and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "1m",
            Self::FiveMinutes => "5m",
            Self::QuarterHour => "15m",
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    /// Its length.
    pub const fn length(self) -> Nanos {
        Nanos::from_secs(match self {
            Self::Minute => 60,
            Self::FiveMinutes => 300,
            Self::QuarterHour => 900,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 604_800,
        })
    }

    /// The length of its slots.
    pub const fn slot(self) -> Nanos {
        Nanos::from_secs(match self {
            Self::Minute => 5,
            Self::FiveMinutes | Self::QuarterHour => 30,
            Self::Hour => 120,
            Self::Day => 1_800,
            Self::Week => 21_600,
        })
    }

    /// Whether only those counters that are counted over days are counted.
    pub const fn is_long(self) -> bool {
        matches!(self, Self::Hour | Self::Day | Self::Week)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
