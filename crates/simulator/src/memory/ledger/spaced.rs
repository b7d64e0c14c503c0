//! Runs of spaced tokens, one after the other. How long they are and how they
//! follow each other is decided in [`outflow_core::ledger::spaced`].

use outflow_core::engine::action::Receipt;
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::{Settings, Spacing, paid};
use outflow_core::time::{Mono, Nanos};

/// Runs of one limit, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub spacing: Spacing,
    /// The end of the last run's use.
    ends_at: Mono,
    /// The next may not begin before this: the numbers changed in the pause.
    not_before: Mono,
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
            not_before: Mono(0),
            tokens: 0,
            refused: 0,
        }
    }

    /// Goes on under other terms.
    pub fn change(&mut self, now: Mono, spacing: Spacing, cost: u32) {
        let left = self.free_at(cost).since(now);
        if spacing != self.spacing && left > Nanos::ZERO {
            self.not_before = now + spacing.left_of(&self.spacing, left);
        }
        self.spacing = spacing;
    }

    /// When the next run may begin.
    pub fn free_at(&self, cost: u32) -> Mono {
        if self.ends_at == Mono(0) {
            return self.ends_at;
        }
        let free_at = self.ends_at + self.spacing.pause(cost) - self.spacing.overlap;
        free_at.max(self.not_before)
    }

    /// Leases the next run, if it is time. `cost` is the largest.
    pub fn ask(&mut self, settings: &Settings, now: Mono, wanted: u32, cost: u32) -> LeaseAnswer {
        let free_at = self.free_at(cost);
        if now < free_at {
            let retry_after = free_at.since(now) + Spacing::after_others(settings, self.refused);
            self.refused += 1;
            return LeaseAnswer::Refused { retry_after };
        }
        let grown = if self.refused > 0 {
            self.tokens.saturating_mul(2)
        } else {
            0
        };
        let most = self.spacing.run_max(settings);
        let tokens = wanted.max(grown).min(most).max(cost);
        let life = self.spacing.life(settings, tokens, cost);
        self.tokens = tokens;
        self.refused = 0;
        self.ends_at = now + paid(life);
        self.not_before = Mono(0);
        LeaseAnswer::Leased {
            tokens,
            life,
            wait: Nanos::ZERO,
            spacing: self.spacing.gap(),
            receipt: Receipt::default(),
        }
    }
}
