//! Standing: the share of the full rate that conduct has earned.
//!
//! It is reviewed from time to time. Who used it and was hardly refused gets
//! more; who was refused often gets less.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::units::{Share, Span};

/// The numbers of a standing.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingSpec {
    /// What a new sender gets.
    pub starts: Share,
    /// What nobody falls below.
    pub least: Share,
    /// How often it is reviewed.
    pub reviewed: Span,
    /// What a good review adds, relative to what there is.
    pub gains: Share,
    /// What a bad one takes.
    pub loses: Share,
    /// Refused up to this share is good.
    pub good: Share,
    /// Refused from this share on is bad.
    pub bad: Share,
}

/// A sender's standing.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    spec: StandingSpec,
    factor: f64,
    review_at: Nanos,
    accepted: u64,
    refused: u64,
}

impl Standing {
    /// A sender nobody knows.
    pub fn new(spec: StandingSpec) -> Self {
        Self {
            spec,
            factor: spec.starts.0,
            review_at: spec.reviewed.0,
            accepted: 0,
            refused: 0,
        }
    }

    /// The share of the full rate, at `now`. `full` is that rate.
    pub fn factor(&mut self, now: Nanos, full: f64) -> f64 {
        while now >= self.review_at {
            self.review(full);
            self.review_at = self.review_at + self.spec.reviewed.0;
        }
        self.factor
    }

    fn review(&mut self, full: f64) {
        let seen = (self.accepted + self.refused).max(1) as f64;
        let share = self.refused as f64 / seen;
        let expected = self.factor * full * self.spec.reviewed.0.as_secs_f64();
        let used = self.accepted as f64 >= 0.5 * expected;
        if share >= self.spec.bad.0 {
            self.factor = (self.factor * (1.0 - self.spec.loses.0)).max(self.spec.least.0);
        } else if share <= self.spec.good.0 && used {
            self.factor = (self.factor * (1.0 + self.spec.gains.0)).min(1.0);
        }
        self.accepted = 0;
        self.refused = 0;
    }

    /// A message was taken or refused.
    pub fn saw(&mut self, taken: bool) {
        if taken {
            self.accepted += 1;
        } else {
            self.refused += 1;
        }
    }
}
