//! Spaced tokens over a fleet: gaps of at least `1 / rate`, whoever sends.
//!
//! Tokens are leased in runs. A run of `k` tokens debited at `d` is used in
//! `[d, d + R + (k - c) / rate]`, spaced inside by the node that has it: `R` is
//! the time for the answer to arrive, `c` the largest cost. The next run begins
//! `c / rate` after that, so `R` is the tolerance that is given up, once per
//! run. Runs grow while somebody was refused meanwhile, up to a second's worth,
//! so that a busy limit loses little and an idle one keeps nobody waiting. Those
//! who were refused come back in the order in which they were.
//!
//! Small buckets are leased this way too. Their burst allows two runs to
//! overlap by `(burst - c) / rate`: what is used in a time `T` is at most `c`
//! and `rate * T` of each, less the `c / rate` between them, which together is
//! `burst + rate * T`. An overlap of `R` and more costs nothing any more.
//!
//! A node can take a message that costs more than any that was asked for
//! before; the run after that one is early by the difference.

use outflow_core::engine::event::LeaseAnswer;
use outflow_core::limit::Rate;
use outflow_core::time::{Mono, Nanos};

use super::settings::{Settings, paid};

/// How runs follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spacing {
    pub rate: Rate,
    /// By how much a run may reach into the one before.
    pub overlap: Nanos,
}

/// The terms of a limit that is spaced to begin with.
pub(super) fn spacing(rate: Rate) -> Spacing {
    Spacing {
        rate,
        overlap: Nanos::ZERO,
    }
}

/// Runs of one limit, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub spacing: Spacing,
    /// The end of the last run's use.
    ends_at: Mono,
    /// The size of the last run.
    pub tokens: u32,
    /// How many were refused since it began.
    refused: u32,
}

impl Runs {
    /// Runs that begin after what was leased before can no longer be used.
    pub fn after(spacing: Spacing, ends_at: Mono) -> Self {
        Self {
            spacing,
            ends_at,
            tokens: 0,
            refused: 0,
        }
    }

    /// When the next run may begin.
    pub fn free_at(&self, cost: u32) -> Mono {
        if self.ends_at == Mono(0) {
            return self.ends_at;
        }
        let gap = self.spacing.rate.time_for(u64::from(cost));
        self.ends_at + gap - self.spacing.overlap
    }

    /// Leases the next run, if it is time. `cost` is the largest.
    pub fn ask(&mut self, settings: &Settings, now: Mono, wanted: u32, cost: u32) -> LeaseAnswer {
        let free_at = self.free_at(cost);
        if now < free_at {
            let after_others = Nanos(settings.round_trip.0 / 8).times(u64::from(self.refused));
            let retry_after = free_at.since(now) + after_others;
            self.refused += 1;
            return LeaseAnswer::Refused { retry_after };
        }
        let rate = self.spacing.rate;
        // The node that has the run spaces it on its own clock.
        let gap = paid(rate.time_for(1));
        let most = settings.run_max.0 / gap.0.max(1);
        let grown = if self.refused > 0 {
            self.tokens.saturating_mul(2)
        } else {
            0
        };
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let tokens = wanted.max(grown).min(most).max(cost);
        let life = settings.life_min() + gap.times(u64::from(tokens - cost));
        self.tokens = tokens;
        self.refused = 0;
        self.ends_at = now + paid(life);
        LeaseAnswer::Leased {
            tokens,
            life,
            wait: Nanos::ZERO,
            spacing: gap,
        }
    }
}
