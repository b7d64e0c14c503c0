//! What a limit writes down so that it can go on after a restart.
//!
//! The monotonic clock does not survive a restart, so everything is relative
//! to the moment of saving, or on the wall clock where the calendar counts.
//! Where a figure must be rounded it is rounded to the side that sends less.

use serde::{Deserialize, Serialize};

/// The state of a limit at the moment of saving.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// For how long it was still blocked, in nanoseconds.
    pub blocked_for: u64,
    /// Tokens reserved on disk and not used yet.
    pub unspent: u64,
    /// The largest cost it had to expect.
    pub largest_cost: u32,
    /// How long after a restart it can matter at most, in nanoseconds, if it is
    /// left alone: then a fresh limit knows as much.
    pub lasts_for: u64,
    /// What its algorithm remembered.
    pub memory: Memory,
}

/// What an algorithm remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// A token bucket.
    TokenBucket {
        /// Its level, in millionths of a token.
        level_micro: u64,
        /// Its rate: so many tokens ...
        count: u32,
        /// ... in so many nanoseconds.
        per: u64,
    },
    /// A leaky bucket.
    LeakyBucket {
        /// What must leak before the next take, in millionths of a token.
        owed_micro: u64,
        /// Its rate: so many tokens ...
        count: u32,
        /// ... in so many nanoseconds.
        per: u64,
    },
    /// A sliding window.
    SlidingWindow {
        /// Age in nanoseconds and tokens, oldest first.
        taken: Vec<(u64, u32)>,
    },
    /// A calendar window.
    CalendarWindow {
        /// Start, end and tokens used, on the wall clock, earliest first.
        spans: Vec<(i64, i64, u32)>,
    },
    /// Nothing that outlives a restart.
    Nothing,
}

impl Memory {
    /// Tokens that are known to be used, whatever the algorithm.
    pub fn used(&self) -> u64 {
        match self {
            Self::LeakyBucket { owed_micro, .. } => owed_micro.div_ceil(1_000_000),
            Self::SlidingWindow { taken } => {
                taken.iter().map(|(_, tokens)| u64::from(*tokens)).sum()
            }
            Self::CalendarWindow { spans } => {
                spans.iter().map(|(_, _, used)| u64::from(*used)).sum()
            }
            Self::TokenBucket { .. } | Self::Nothing => 0,
        }
    }
}
