//! How long answers take.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::random::Random;
use crate::units::Span;

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Latency {
    /// Always the same.
    Constant {
        /// How long.
        is: Span,
    },
    /// Anything between two times.
    Uniform {
        /// At least this.
        from: Span,
        /// At most this.
        to: Span,
    },
    /// Mostly near the median, with a long tail.
    Lognormal {
        /// The median.
        p50: Span,
        /// What one in a hundred exceeds.
        p99: Span,
    },
}

/// Fifty milliseconds: a server on the same continent.
impl Default for Latency {
    fn default() -> Self {
        Self::constant(Nanos::from_millis(50))
    }
}

impl Latency {
    /// Always the same.
    pub fn constant(is: Nanos) -> Self {
        Self::Constant { is: Span(is) }
    }

    /// One time of this distribution, at most a thousand times its median.
    pub fn draw(&self, random: &mut Random) -> Nanos {
        match *self {
            Self::Constant { is } => is.0,
            Self::Uniform { from, to } => Nanos(random.between(from.0.0, to.0.0)),
            Self::Lognormal { p50, p99 } => random.lognormal(p50.0, p99.0).min(p50.0.times(1_000)),
        }
    }

    /// Whether the lower value is not above the higher one.
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Constant { .. } => true,
            Self::Uniform { from, to } => from <= to,
            Self::Lognormal { p50, p99 } => p50 <= p99,
        }
    }
}
