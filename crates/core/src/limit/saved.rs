//! What a limit writes down so that it can go on after a restart.
//!
//! The monotonic clock does not survive a restart, so everything is relative
//! to the moment of saving, or on the wall clock where the calendar counts.
//! Where a figure must be rounded it is rounded to the side that sends less.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::spec::{LimitSpec, Period, Zone};
use crate::ledger::debits::{DebitPlace, RecalledDebits};
use crate::policy::key::LimitKey;
use crate::time::{Nanos, Wall};

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
    /// Of a window that a fleet shares: what its ledger knows of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedSaved>,
}

impl Saved {
    /// What the ledger of a fleet may have to be told, if it counts the limit:
    /// this was saved `downtime` ago, and so many were reserved since.
    pub fn recalled(
        &self,
        key: &LimitKey,
        reserved_since: u64,
        downtime: Nanos,
    ) -> Option<RecalledDebits> {
        let shared = self.shared.as_ref()?;
        let debits = match &self.memory {
            Memory::SlidingWindow { taken } => {
                let taken = taken.iter().map(|&(age, tokens)| {
                    (DebitPlace::Age(Nanos(age) + downtime), u64::from(tokens))
                });
                taken.collect()
            }
            Memory::CalendarWindow { spans } => {
                let spans = spans.iter().map(|&(start, end, used)| {
                    (DebitPlace::Span(Wall(start), Wall(end)), u64::from(used))
                });
                spans.collect()
            }
            _ => Vec::new(),
        };
        Some(RecalledDebits {
            key: Arc::new(key.clone()),
            spec: shared.window.spec()?,
            epoch: shared.epoch,
            debits,
            unspent: self.unspent.saturating_add(reserved_since),
        })
    }
}

/// What a fleet's ledger knows of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedSaved {
    /// The epoch of the ledger that knows of all that was used.
    pub epoch: u64,
    /// The window, without its count.
    pub window: SavedWindow,
}

/// A window that a fleet shares, without its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedWindow {
    /// A sliding window.
    Sliding {
        /// Its length in nanoseconds.
        window: u64,
    },
    /// A calendar window.
    Calendar {
        /// As people write a limit of one: `1/day@UTC`.
        limit: String,
    },
}

impl SavedWindow {
    /// A calendar window.
    pub fn calendar(period: Period, zone: &Zone) -> Self {
        let (count, zone) = (1, zone.clone());
        let spec = LimitSpec::CalendarWindow {
            count,
            period,
            zone,
        };
        Self::Calendar {
            limit: spec.to_string(),
        }
    }

    /// A limit with this window; none if its time zone is not known here.
    fn spec(&self) -> Option<LimitSpec> {
        match self {
            Self::Sliding { window } => Some(LimitSpec::SlidingWindow {
                count: 1,
                window: Nanos(*window),
            }),
            Self::Calendar { limit } => LimitSpec::parse(limit).ok(),
        }
    }
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
