//! The hidden rate: a token bucket at the far end that the sender never sees.
//!
//! Its numbers may move from message to message (time of day, reputation), so
//! it counts in floating point; it is the world's, not ours, and need not be
//! exact, only the same in every run.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::units::{RateText, Span};

/// The numbers of a hidden rate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HiddenRateSpec {
    /// How fast tokens accrue.
    pub rate: RateText,
    /// How many are saved up.
    pub burst: u32,
    /// What the `Retry-After` of a refusal says, if it has one.
    pub retry_after: Option<Span>,
}

/// A hidden rate at work.
#[derive(Clone, Debug)]
pub struct HiddenRate {
    spec: HiddenRateSpec,
    level: f64,
    at: Nanos,
}

impl HiddenRate {
    /// A full bucket.
    pub fn new(spec: HiddenRateSpec) -> Self {
        Self {
            spec,
            level: f64::from(spec.burst),
            at: Nanos::ZERO,
        }
    }

    /// Takes `cost` if it fits; `factor` scales the rate and the burst.
    pub fn take(&mut self, now: Nanos, cost: u32, factor: f64) -> bool {
        let accrued = now.minus(self.at).as_secs_f64() * self.spec.rate.per_second() * factor;
        let most = (f64::from(self.spec.burst) * factor).max(1.0);
        self.level = (self.level + accrued).min(most);
        self.at = now;
        // A sender that is exact to the nanosecond must not be refused for a
        // rounding error of ours.
        let fits = self.level + 1e-6 >= f64::from(cost);
        if fits {
            self.level -= f64::from(cost);
        }
        fits
    }
}
