//! What a reply means, by rules that are data.
//!
//! The first rule that matches speaks. The user's own rules come first, then
//! those of the provider that said it, then the generic ones, and those are in
//! the order in which a reply is best read: what the transport saw, telling
//! words, the enhanced code, the basic code, and at last the stage alone. Rules
//! rot unless they are run: each carries sample replies, and a file in which any
//! sample is won by another rule does not load.
//!
//! Reading order: `rule` (one rule), `pattern` (codes and words), `text` (what
//! rules see of a reply), `file` (rules as they are written), `sample` (what
//! shows that they match), `error`, `built_in` (the files that come with the
//! program).

mod built_in;
mod error;
mod file;
mod pattern;
mod rule;
mod sample;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use error::{RuleError, RuleProblem};

use crate::destination::Destination;
use crate::name::Name;
use crate::outcome::{Outcome, Reaction, ReplyClass, ReplyScope, Verdict};
use crate::reply::Reply;
use crate::time::Nanos;
use rule::{Case, Rule};

/// The rules of one file, each shown to match what it should.
#[derive(Clone, Debug)]
pub struct RuleSet(Arc<[Rule]>);

impl RuleSet {
    /// Reads a file of rules and runs every sample in it.
    pub fn parse(toml: &str) -> Result<Self, RuleError> {
        Self::after(&[], toml)
    }

    /// Reads a file that comes after others: a rule that they leave nothing to
    /// is an error.
    pub fn after(earlier: &[Self], toml: &str) -> Result<Self, RuleError> {
        let earlier: Vec<&Rule> = earlier.iter().flat_map(|set| set.0.iter()).collect();
        file::load(toml, &earlier).map(|rules| Self(rules.into()))
    }

    /// The names of the rules, in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|rule| rule.id().as_str())
    }

    /// For whom some rule of it holds, where it does not hold everywhere.
    fn destinations(&self) -> impl Iterator<Item = &Destination> {
        self.0.iter().flat_map(|rule| rule.destinations.iter())
    }
}

/// The destination that people mean by `google`, `gmail` or `isp:google`.
pub fn destination_named(text: &str) -> Option<Destination> {
    file::destination_written(text)
}

/// All rules, in the order in which they are asked.
#[derive(Clone, Debug)]
pub struct Rules {
    own: Vec<RuleSet>,
    providers: Arc<BTreeMap<Destination, RuleSet>>,
    generic: RuleSet,
    accepted: Outcome,
    uncertain: Outcome,
    unexpected: Outcome,
}

impl Rules {
    /// The rules that hold everywhere, and nobody's own.
    pub fn generic() -> Self {
        let generic = RuleSet::parse(built_in::GENERIC);
        let plain =
            |verdict, class, id| Outcome::new(verdict, class, ReplyScope::Message, Name::from(id));
        Self {
            own: Vec::new(),
            providers: Arc::default(),
            generic: generic.expect("the generic rules pass their own samples"),
            accepted: plain(Verdict::Delivered, ReplyClass::Accepted, "accepted"),
            uncertain: plain(Verdict::Uncertain, ReplyClass::Network, "uncertain"),
            unexpected: plain(Verdict::Retry, ReplyClass::Other, "unexpected"),
        }
    }

    /// All rules that come with the program.
    pub fn built_in() -> Self {
        let mut providers = BTreeMap::new();
        for (name, toml) in built_in::PROVIDERS {
            let set = RuleSet::parse(toml);
            let set = set.unwrap_or_else(|error| unreachable!("{name}.toml: {error}"));
            for destination in set.destinations() {
                providers.insert(destination.clone(), set.clone());
            }
        }
        Self {
            providers: Arc::new(providers),
            ..Self::generic()
        }
    }

    /// These rules, and `own` before those that come with the program. Files
    /// that were added earlier are asked earlier.
    #[must_use]
    pub fn with(mut self, own: RuleSet) -> Self {
        let rules = own.0.iter().cloned().map(Rule::owned);
        self.own.push(RuleSet(rules.collect()));
        self
    }

    /// The files that were added, in order.
    pub fn own(&self) -> &[RuleSet] {
        &self.own
    }

    /// Whether this destination has rules among those that come with the
    /// program.
    pub fn knows(&self, to: &Destination) -> bool {
        self.providers.contains_key(to)
    }

    /// What `reply` of `to` means for a message that has now been tried
    /// `attempts` times.
    pub fn classify(&self, to: Option<&Destination>, reply: &Reply, attempts: u16) -> Outcome {
        if reply.is_accepted() {
            return self.accepted.clone();
        }
        if *reply == Reply::Uncertain {
            return self.uncertain.clone();
        }
        let words = text::words(reply);
        let case = Case::of(to, reply, &words, attempts);
        let provider = to.and_then(|to| self.providers.get(to));
        let mut outcome = self
            .own
            .iter()
            .chain(provider)
            .chain([&self.generic])
            .flat_map(|set| set.0.iter())
            .find(|rule| rule.matches(&case))
            .map_or(&self.unexpected, Rule::outcome)
            .clone();
        if let Some(asked) = asked_wait(reply) {
            outcome.asked = Some(asked);
            outcome.retry_after = Some(asked);
            if outcome.action == Reaction::Pause {
                outcome.lasts = Some(asked);
            }
        }
        outcome
    }
}

/// How long the far end asked us to wait. Asking for no wait is not asking:
/// the schedule then spares it a message that comes back in a loop.
fn asked_wait(reply: &Reply) -> Option<Nanos> {
    match reply {
        Reply::Said { retry_after, .. } => retry_after.filter(|wait| *wait > Nanos::ZERO),
        Reply::Network { .. } | Reply::Uncertain | Reply::Damaged { .. } => None,
    }
}
