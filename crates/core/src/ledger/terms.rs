//! The terms on which a limit is leased, and the sizes that follow from them.

use super::settings::Settings;
use super::spaced::{self, Spacing};
use super::{bucket, calendar, window};
use crate::limit::{Headroom, LimitSpec};
use crate::time::Nanos;

/// When to ask again for what can never fit: the numbers may have changed.
pub const NEVER_PAUSE: Nanos = Nanos::from_secs(60);
/// Nobody is sent away for longer than this beyond the first lot: those before
/// him may not come.
pub const QUEUE_MAX: Nanos = Nanos::from_millis(300);
/// Who was refused returns when this part of a life's worth is there.
const LOTS: u64 = 8;

/// Leases that live for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leasing {
    /// The limit less what pays for the life.
    pub inner: LimitSpec,
    /// How long a lease lives.
    pub life: Nanos,
}

impl Leasing {
    /// How much of what is asked for is leased at most.
    pub fn wanted(&self, tokens: u32) -> u32 {
        match self.inner {
            // What is not used is lost for a whole window, so nothing is leased
            // in stock: a node asks for twice what it uses.
            LimitSpec::SlidingWindow { .. } | LimitSpec::CalendarWindow { .. } => {
                tokens.div_ceil(2)
            }
            _ => tokens,
        }
    }

    /// What is worth coming for: what accrues in a part of a life.
    pub fn lot(&self) -> u32 {
        match &self.inner {
            LimitSpec::TokenBucket { rate, .. } => {
                let lot = u128::from(self.life.0 / LOTS) * u128::from(rate.count);
                let lot = lot / u128::from(rate.per.0.max(1));
                u32::try_from(lot).unwrap_or(u32::MAX)
            }
            _ => 1,
        }
    }
}

/// How a limit is leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terms {
    /// In leases that live for a while.
    Leases(Leasing),
    /// In spaced runs.
    Runs(Spacing),
    /// The cost is above what the limit can ever hold.
    Never,
}

impl Terms {
    /// The terms of a limit whose largest cost is `cost`.
    pub fn of(settings: &Settings, spec: &LimitSpec, headroom: Headroom, cost: u32) -> Self {
        match spec {
            LimitSpec::TokenBucket { rate, burst } => {
                bucket::terms(settings, (*rate, *burst), headroom, cost)
            }
            LimitSpec::LeakyBucket { rate } if rate.count == 0 => Self::Never,
            LimitSpec::LeakyBucket { rate } => Self::Runs(spaced::spacing(*rate)),
            LimitSpec::SlidingWindow { count, window } => {
                window::terms(settings, *count, *window, cost)
            }
            spec @ LimitSpec::CalendarWindow { .. } => calendar::terms(settings, spec, cost),
            // What is in flight is counted where it flies.
            LimitSpec::Concurrency { .. } => Self::Never,
        }
    }
}
