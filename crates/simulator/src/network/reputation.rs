//! Reputation: the allowed rate follows the sender's conduct.
//!
//! A new address starts with a fraction of the full rate. What is accepted
//! earns, slowly; each refusal costs more than many acceptances earn.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::units::{Share, Span};

/// The numbers of a reputation.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReputationSpec {
    /// The share of the full rate that a new sender gets.
    pub starts: Share,
    /// In how long of clean sending it doubles at most.
    pub doubles_in: Span,
    /// The share that one refusal costs.
    pub refusal_costs: Share,
}

/// A sender's standing.
#[derive(Clone, Debug)]
pub struct Reputation {
    spec: ReputationSpec,
    standing: f64,
    earns_from: Nanos,
    clean: bool,
    used: bool,
}

impl Reputation {
    /// A sender nobody knows.
    pub fn new(spec: ReputationSpec) -> Self {
        Self {
            spec,
            standing: spec.starts.0,
            earns_from: Nanos::ZERO,
            clean: true,
            used: false,
        }
    }

    /// The share of the full rate that is allowed now. Standing is reviewed
    /// ten times per doubling, and grows only if it was used without refusal.
    pub fn factor(&mut self, now: Nanos) -> f64 {
        let review = Nanos(self.spec.doubles_in.0.0 / 10);
        if now.minus(self.earns_from) >= review {
            if self.clean && self.used {
                self.standing = (self.standing * 2_f64.powf(0.1)).min(1.0);
            }
            self.earns_from = now;
            self.clean = true;
            self.used = false;
        }
        self.standing
    }

    /// A message was taken or refused.
    pub fn saw(&mut self, taken: bool) {
        if taken {
            self.used = true;
        } else {
            self.clean = false;
            self.standing = (self.standing * (1.0 - self.spec.refusal_costs.0)).max(0.001);
        }
    }
}
