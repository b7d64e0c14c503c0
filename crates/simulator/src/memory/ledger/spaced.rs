//! Runs of spaced tokens, one after the other. How long they are and how they
//! follow each other is decided in [`outflow_core::ledger::spaced`].

use outflow_core::engine::action::Receipt;
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::{Settings, Spacing, paid};
use outflow_core::time::{Mono, Nanos};

use super::counter::Due;

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

    /// Leases the next run, if it is time. `cost` is the largest. Those to whom
    /// something is owed come first, for as long as a lease lives at least.
    pub fn ask(
        &mut self,
        settings: &Settings,
        now: Mono,
        (wanted, cost): (u32, u32),
        due: Due,
    ) -> LeaseAnswer {
        let is_due = due.mine >= cost;
        let free_at = match !is_due && due.others >= cost {
            true => self.free_at(cost) + settings.life_min(),
            false => self.free_at(cost),
        };
        if now < free_at && is_due {
            let retry_after = free_at.since(now);
            return LeaseAnswer::Refused { retry_after };
        }
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
        let tokens = match is_due {
            true => wanted.min(due.mine).max(cost),
            false => wanted.max(grown).min(most).max(cost),
        };
        let life = self.spacing.life(settings, tokens, cost);
        // What is paid back in between does not make the others' runs shorter.
        self.tokens = tokens.max(if is_due { self.tokens } else { 0 });
        self.refused = 0;
        self.ends_at = now + paid(life);
        self.not_before = Mono(0);
        LeaseAnswer::Leased {
            tokens,
            life,
            wait: Nanos::ZERO,
            spacing: self.spacing.gap(),
            receipt: Receipt::default(),
            owed: Default::default(),
        }
    }
}
