//! When the messages of a source arrive.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::random::Random;
use crate::units::{RateText, Span};

/// A pattern of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// All in the same instant.
    AtOnce {
        /// How many.
        count: u64,
    },
    /// Evenly over a time, then no more.
    Burst {
        /// How many.
        count: u64,
        /// In how long.
        over: Span,
    },
    /// Evenly for ever.
    Constant {
        /// How fast.
        rate: RateText,
        /// How many at most.
        count: Option<u64>,
    },
    /// Independent of one another, as people act.
    Poisson {
        /// How fast on average.
        rate: RateText,
        /// How many at most.
        count: Option<u64>,
    },
    /// Several in the same instant, again and again.
    Bursts {
        /// How many each time.
        count: u64,
        /// From one time to the next.
        every: Span,
    },
    /// Evenly for a while, silent for a while.
    OnOff {
        /// How fast while it is on.
        rate: RateText,
        /// How long it is on.
        on: Span,
        /// How long it is off.
        off: Span,
    },
}

/// A pattern with its place in it.
#[derive(Clone, Debug)]
pub struct Arrivals {
    pattern: Pattern,
    starts: Nanos,
    done: u64,
    last: Nanos,
}

impl Arrivals {
    /// A pattern that begins at `starts`.
    pub fn new(pattern: Pattern, starts: Nanos) -> Self {
        Self {
            pattern,
            starts,
            done: 0,
            last: starts,
        }
    }

    /// The next arrival; nothing when there are no more.
    pub fn next(&mut self, random: &mut Random) -> Option<Nanos> {
        let nth = self.done;
        let at = match self.pattern {
            Pattern::AtOnce { count } => (nth < count).then_some(self.starts)?,
            Pattern::Burst { count, over } => {
                (nth < count).then(|| self.starts + part(over.0, nth, count))?
            }
            Pattern::Constant { rate, count } => (nth < count.unwrap_or(u64::MAX))
                .then(|| self.starts + part(rate.rate.per, nth, u64::from(rate.rate.count)))?,
            Pattern::Poisson { rate, count } => {
                let mean = part(rate.rate.per, 1, u64::from(rate.rate.count));
                (nth < count.unwrap_or(u64::MAX)).then(|| self.last + random.exponential(mean))?
            }
            Pattern::Bursts { count, every } => self.starts + every.0.times(nth / count.max(1)),
            Pattern::OnOff { rate, on, off } => {
                let each = u64::from(rate.rate.count);
                let per_turn = (u128::from(on.0.0) * u128::from(each)
                    / u128::from(rate.rate.per.0.max(1)))
                .clamp(1, u128::from(u64::MAX)) as u64;
                let turn = (on.0 + off.0).times(nth / per_turn);
                self.starts + turn + part(rate.rate.per, nth % per_turn, each)
            }
        };
        self.done += 1;
        self.last = at;
        Some(at)
    }
}

impl Pattern {
    /// Why this pattern cannot be meant.
    pub fn problem(&self) -> Option<&'static str> {
        match self {
            Self::AtOnce { count } | Self::Burst { count, .. } if *count == 0 => {
                Some("count must be at least 1")
            }
            Self::Bursts { count, every } if *count == 0 || every.0 == Nanos::ZERO => {
                Some("count and every must be above 0")
            }
            Self::OnOff { on, .. } if on.0 == Nanos::ZERO => Some("on must be above 0"),
            _ => None,
        }
    }
}

/// The time of step `nth` when `whole` is cut into `steps`.
fn part(whole: Nanos, nth: u64, steps: u64) -> Nanos {
    let nanos = u128::from(whole.0) * u128::from(nth) / u128::from(steps.max(1));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
