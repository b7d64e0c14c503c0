//! What a reply means, by rules that are data.
//!
//! The first rule that matches speaks. Rules of a provider come before the
//! generic ones, and those are in the order in which a reply is best read: what
//! the transport saw, telling words, the enhanced code, the basic code, and at
//! last the stage alone. Rules rot unless they are run: each carries sample
//! replies, and a set in which any sample is won by another rule does not load.
//!
//! Reading order: `rule` (one rule), `pattern` (codes and words), `text` (what
//! rules see of a reply), `file` (rules as they are written).

mod file;
mod pattern;
mod rule;
pub(crate) mod text;

use std::sync::Arc;

pub use file::{RuleError, RuleProblem};

use crate::name::Name;
use crate::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};
use crate::reply::Reply;
use crate::time::Nanos;
use rule::{Case, Rule};

const GENERIC: &str = include_str!("../../data/replies/generic.toml");

/// The rules of one file, each shown to match what it should.
#[derive(Clone, Debug)]
pub struct RuleSet(Arc<[Rule]>);

impl RuleSet {
    /// Reads a file of rules and runs every sample in it.
    pub fn parse(toml: &str) -> Result<Self, RuleError> {
        file::parse(toml).map(|rules| Self(rules.into()))
    }

    /// The names of the rules, in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|rule| rule.id().as_str())
    }
}

/// All rules that apply to one destination.
#[derive(Clone, Debug)]
pub struct Rules {
    sets: Vec<RuleSet>,
    accepted: Outcome,
    uncertain: Outcome,
    unexpected: Outcome,
}

impl Rules {
    /// The rules that hold everywhere.
    pub fn generic() -> Self {
        let set = RuleSet::parse(GENERIC).expect("the generic rules pass their own samples");
        Self::of(vec![set])
    }

    /// These rules, with those of a provider before them.
    pub fn with(&self, first: RuleSet) -> Self {
        let mut sets = vec![first];
        sets.extend(self.sets.iter().cloned());
        Self::of(sets)
    }

    fn of(sets: Vec<RuleSet>) -> Self {
        let built_in =
            |verdict, class, id| Outcome::new(verdict, class, ReplyScope::Message, Name::from(id));
        Self {
            sets,
            accepted: built_in(Verdict::Delivered, ReplyClass::Accepted, "accepted"),
            uncertain: built_in(Verdict::Uncertain, ReplyClass::Network, "uncertain"),
            unexpected: built_in(Verdict::Retry, ReplyClass::Other, "unexpected"),
        }
    }

    /// What `reply` means for a message that has now been tried `attempts` times.
    pub fn classify(&self, reply: &Reply, attempts: u16) -> Outcome {
        if reply.is_accepted() {
            return self.accepted.clone();
        }
        if *reply == Reply::Uncertain {
            return self.uncertain.clone();
        }
        let words = text::words(reply);
        let case = Case::of(reply, &words, attempts);
        let mut outcome = self
            .sets
            .iter()
            .flat_map(|set| set.0.iter())
            .find(|rule| rule.matches(&case))
            .map_or(&self.unexpected, Rule::outcome)
            .clone();
        if let Some(asked) = asked_wait(reply) {
            outcome.retry_after = Some(asked);
        }
        outcome
    }
}

/// How long the far end asked us to wait. Asking for no wait is not asking:
/// the schedule then spares it a message that comes back in a loop.
fn asked_wait(reply: &Reply) -> Option<Nanos> {
    match reply {
        Reply::Said { retry_after, .. } => retry_after.filter(|wait| *wait > Nanos::ZERO),
        Reply::Network { .. } | Reply::Uncertain => None,
    }
}
