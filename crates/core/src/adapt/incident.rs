//! The plain rule for incidents.
//!
//! Halve at once, add nothing for 30 minutes, then a tenth of the policy's rate
//! each 10 minutes. It finds no hidden limit; it is what an operator or a
//! runbook reaches for, because everybody can tell what it will do.

use super::{At, Controller, MINUTE, Mode};

const COOLDOWN: u64 = 30 * MINUTE;
const RAISE_EACH: u64 = 10 * MINUTE;

/// When it goes up again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Incident {
    pub(super) raise_at: u64,
}

impl Default for Incident {
    fn default() -> Self {
        Self { raise_at: u64::MAX }
    }
}

impl Controller {
    pub(super) fn incident_cut(&mut self, at: At) {
        self.incident.raise_at = at.tick + COOLDOWN;
        self.bad = self.rate;
        let rate = 0.5 * self.rate;
        self.change(at, rate, Mode::Prove);
    }

    pub(super) fn incident_turn(&mut self, at: At) {
        while at.tick >= self.incident.raise_at {
            let cap = self.settings.cap();
            let due = self.incident.raise_at;
            let rate = self.rate + 0.1 * cap;
            let whole = rate >= cap;
            self.incident.raise_at = if whole { u64::MAX } else { due + RAISE_EACH };
            let mode = if whole { Mode::Cruise } else { Mode::Prove };
            self.change(at, rate, mode);
        }
    }

    pub(super) const fn incident_wake(&self) -> u64 {
        self.incident.raise_at
    }
}
