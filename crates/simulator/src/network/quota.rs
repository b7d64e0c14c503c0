//! A quota that starts anew with the hour or the day.

use outflow_core::time::{NANOS_PER_SECOND, Wall};
use serde::Deserialize;

/// The numbers of a quota.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaSpec {
    /// How many.
    pub count: u64,
    /// From when to when.
    pub per: QuotaPeriod,
    /// How many hours the far end's midnight lies after midnight UTC.
    #[serde(default)]
    pub midnight_utc: u8,
}

/// From when to when a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuotaPeriod {
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
}

/// What was used of a quota.
#[derive(Clone, Debug)]
pub struct Quota {
    spec: QuotaSpec,
    window: i64,
    used: u64,
}

impl Quota {
    /// A quota of which nothing is used.
    pub fn new(spec: QuotaSpec) -> Self {
        Self {
            spec,
            window: i64::MIN,
            used: 0,
        }
    }

    /// Takes `cost` if it is left.
    pub fn take(&mut self, wall: Wall, cost: u32) -> bool {
        let hour = wall.0.div_euclid(3_600 * NANOS_PER_SECOND as i64);
        let window = match self.spec.per {
            QuotaPeriod::Hour => hour,
            QuotaPeriod::Day => (hour - i64::from(self.spec.midnight_utc)).div_euclid(24),
        };
        if window != self.window {
            self.window = window;
            self.used = 0;
        }
        let used = self.used.saturating_add(u64::from(cost));
        let fits = used <= self.spec.count;
        if fits {
            self.used = used;
        }
        fits
    }

    /// Gives back what another rule refused after all.
    pub fn give_back(&mut self, cost: u32) {
        self.used = self.used.saturating_sub(u64::from(cost));
    }
}
