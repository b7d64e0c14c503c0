//! A change to some fields of a policy.

use super::policy::{Policy, RateOrShare, WhenAway};
use crate::limit::spec::LimitSpec;

/// What becomes of one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Edit<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It says nothing any more.
    Clear,
    /// It says this.
    Set(T),
}

impl<T> Edit<T> {
    fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }
}

/// A change to some fields of a policy; the default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// How fast. Clearing it clears `spaced` too.
    pub rate: Edit<RateOrShare>,
    /// How many at once.
    pub burst: Edit<u32>,
    /// Whether the rate is kept evenly spaced.
    pub spaced: Option<bool>,
    /// Further limits, replaced as a whole.
    pub limits: Edit<Vec<LimitSpec>>,
    /// How many in flight.
    pub concurrency: Edit<u32>,
    /// The weight of a tenant's turns.
    pub weight: Edit<u32>,
    /// What becomes of its limits while the ledger is away.
    pub when_away: Edit<WhenAway>,
    /// Why, in somebody's words.
    pub comment: Edit<String>,
}

impl Patch {
    /// Makes the change.
    pub fn apply(self, policy: &mut Policy) {
        if self.rate == Edit::Clear {
            policy.spaced = false;
        }
        self.rate.apply(&mut policy.rate);
        self.burst.apply(&mut policy.burst);
        policy.spaced = self.spaced.unwrap_or(policy.spaced);
        match self.limits {
            Edit::Keep => {}
            Edit::Clear => policy.limits.clear(),
            Edit::Set(limits) => policy.limits = limits,
        }
        self.concurrency.apply(&mut policy.concurrency);
        self.weight.apply(&mut policy.weight);
        self.when_away.apply(&mut policy.when_away);
        self.comment.apply(&mut policy.comment);
    }
}
