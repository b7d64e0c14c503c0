//! Reference meters: what each limit allows, counted independently.
//!
//! They share no code with the engine. Each one holds the guarantee of its
//! algorithm over *every* interval of true time, in exact integers, and keeps
//! it through live changes: at most the largest burst in force plus the
//! integral of the rate.

pub mod bucket;
pub mod calendar;
pub mod concurrent;
pub mod sliding;
pub mod spaced;

use outflow_core::limit::spec::LimitSpec;
use outflow_core::time::{Nanos, Wall};

use bucket::Bucket;
use calendar::Calendar;
use concurrent::Concurrent;
use sliding::Sliding;
use spaced::Spaced;

/// How far the world's clocks may be off without blame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// How much too fast a node's monotonic clock runs, in millionths.
    pub drift_ppm: u32,
    /// How far a node's wall clock is off.
    pub wall_error: Nanos,
    /// What the wall clock reads at the start.
    pub wall_at_zero: Wall,
}

/// One limit, counted independently.
#[derive(Clone, Debug)]
pub enum Meter {
    /// Token bucket.
    Bucket(Bucket),
    /// Leaky bucket.
    Spaced(Spaced),
    /// Sliding window.
    Sliding(Sliding),
    /// Calendar window.
    Calendar(Calendar),
    /// In flight.
    Concurrent(Concurrent),
}

impl Meter {
    /// A meter that starts full at `at`.
    pub fn new(at: Nanos, spec: &LimitSpec, tolerance: Tolerance) -> Self {
        match spec {
            LimitSpec::TokenBucket { rate, burst } => {
                Self::Bucket(Bucket::new(at, *rate, *burst, tolerance.drift_ppm))
            }
            LimitSpec::LeakyBucket { rate } => {
                Self::Spaced(Spaced::new(at, *rate, tolerance.drift_ppm))
            }
            LimitSpec::SlidingWindow { count, window } => {
                Self::Sliding(Sliding::new(*count, *window, tolerance.drift_ppm))
            }
            LimitSpec::CalendarWindow {
                count,
                period,
                zone,
            } => Self::Calendar(Calendar::new(
                *count,
                *period,
                zone.rules.clone(),
                tolerance,
            )),
            LimitSpec::Concurrency { slots } => Self::Concurrent(Concurrent::new(*slots)),
        }
    }

    /// The limit has other numbers from `at` on. Another algorithm starts anew.
    pub fn change(&mut self, at: Nanos, spec: &LimitSpec, tolerance: Tolerance) {
        match (self, spec) {
            (Self::Bucket(meter), LimitSpec::TokenBucket { rate, burst }) => {
                meter.change(at, *rate, *burst);
            }
            (Self::Spaced(meter), LimitSpec::LeakyBucket { rate }) => meter.change(at, *rate),
            (Self::Sliding(meter), LimitSpec::SlidingWindow { count, window }) => {
                meter.change(at, *count, *window);
            }
            (Self::Calendar(meter), LimitSpec::CalendarWindow { count, period, .. })
                if meter.period() == *period =>
            {
                meter.change(*count);
            }
            (Self::Concurrent(meter), LimitSpec::Concurrency { slots }) => meter.change(*slots),
            (meter, spec) => *meter = Self::new(at, spec, tolerance),
        }
    }

    /// Takes `cost` at `at`. The excess in words if that was not allowed; it is
    /// counted all the same.
    pub fn take(&mut self, at: Nanos, cost: u32) -> Result<(), String> {
        match self {
            Self::Bucket(meter) => meter.take(at, cost),
            Self::Spaced(meter) => meter.take(at, cost),
            Self::Sliding(meter) => meter.take(at, cost),
            Self::Calendar(meter) => meter.take(at, cost),
            Self::Concurrent(meter) => meter.take(cost),
        }
    }

    /// Empties a bucket; nothing else is ever full.
    pub fn drain(&mut self, at: Nanos) {
        if let Self::Bucket(meter) = self {
            meter.drain(at);
        }
    }

    /// Gives back what was in flight. Only concurrency knows that.
    pub fn release(&mut self, cost: u32) {
        if let Self::Concurrent(meter) = self {
            meter.release(cost);
        }
    }

    /// Whether `cost` would be allowed at `at`.
    pub fn allows(&mut self, at: Nanos, cost: u32) -> bool {
        match self {
            Self::Bucket(meter) => meter.allows(at, cost),
            Self::Spaced(meter) => meter.allows(at),
            Self::Sliding(meter) => meter.allows(at, cost),
            Self::Calendar(meter) => meter.allows(at, cost),
            Self::Concurrent(meter) => meter.allows(cost),
        }
    }

    /// Since when the bucket is full at `at`; nothing if it is not, or is none.
    pub fn full_since(&mut self, at: Nanos) -> Option<Nanos> {
        match self {
            Self::Bucket(meter) => meter.full_since(at),
            _ => None,
        }
    }
}

/// A limit in a few words: `100/1.0s burst 20`.
pub fn describe(spec: &LimitSpec) -> String {
    match spec {
        LimitSpec::TokenBucket { rate, burst } => {
            format!("{} per {} burst {burst}", rate.count, rate.per)
        }
        LimitSpec::LeakyBucket { rate } => format!("{} per {} spaced", rate.count, rate.per),
        LimitSpec::SlidingWindow { count, window } => format!("{count} in any {window}"),
        LimitSpec::CalendarWindow {
            count,
            period,
            zone,
        } => format!("{count} per calendar {period:?} of {}", zone.name),
        LimitSpec::Concurrency { slots } => format!("{slots} in flight"),
    }
}

/// `count` scaled up by `ppm` millionths, with its denominator.
fn drifted(count: u32, ppm: u32) -> u128 {
    u128::from(count) * u128::from(1_000_000 + ppm)
}

#[cfg(test)]
mod tests;
