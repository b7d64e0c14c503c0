//! A block that grows while one keeps pushing.
//!
//! The first refusal blocks for a while. Each attempt during a block starts it
//! anew, and every `pushes` of them multiply its length. A sender that stays
//! away long enough afterwards starts with a clean slate.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::units::Span;

/// The numbers of a growing block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PenaltySpec {
    /// How long the first block lasts.
    pub first: Span,
    /// How long the longest lasts.
    pub longest: Span,
    /// By how much each further block is longer.
    #[serde(default = "twice")]
    pub factor: u32,
    /// How many attempts during a block make it longer; 0 for none.
    #[serde(default = "one")]
    pub pushes: u32,
    /// After how long without a block it is forgiven.
    pub forgives: Span,
}

fn twice() -> u32 {
    2
}

fn one() -> u32 {
    1
}

/// A sender's blocks.
#[derive(Clone, Debug)]
pub struct Penalty {
    spec: PenaltySpec,
    length: Nanos,
    until: Nanos,
    pushed: u32,
}

impl Penalty {
    /// A sender in good standing.
    pub fn new(spec: PenaltySpec) -> Self {
        Self {
            spec,
            length: Nanos::ZERO,
            until: Nanos::ZERO,
            pushed: 0,
        }
    }

    /// The sender was refused for its rate: a block starts.
    pub fn start(&mut self, now: Nanos) {
        let forgiven = now.minus(self.until) >= self.spec.forgives.0;
        self.length = if forgiven || self.length == Nanos::ZERO {
            self.spec.first.0
        } else {
            self.grown()
        };
        self.until = now + self.length;
        self.pushed = 0;
    }

    /// The sender tries. Whether it is blocked; if so, trying makes it worse.
    pub fn pushes(&mut self, now: Nanos) -> bool {
        if now >= self.until {
            return false;
        }
        self.pushed += 1;
        if self.spec.pushes > 0 && self.pushed >= self.spec.pushes {
            self.pushed = 0;
            self.length = self.grown();
            self.until = now + self.length;
        }
        true
    }

    fn grown(&self) -> Nanos {
        self.length
            .times(u64::from(self.spec.factor))
            .min(self.spec.longest.0)
    }
}
