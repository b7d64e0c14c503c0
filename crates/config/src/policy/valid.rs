//! A policy that can be enforced.
//!
//! `rate` is the rate in force, or with `max_rate` where learning begins. A
//! mitigation is kept beside it: it says how the rate may change later, and by
//! whom, not what it is now.

use outflow_core::limit::parse;
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::time::Wall;

use super::raw::{RawPolicy, terms};
use crate::form;
use crate::problem::{Invalid, Problems};
use crate::written::Written;

/// A policy that can be enforced, and how it may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidPolicy {
    /// What is enforced now.
    pub policy: Policy,
    /// Why it overrides another for a while, if it does.
    pub mitigation: Option<Mitigation>,
}

/// A temporary override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mitigation {
    /// In somebody's words.
    pub reason: String,
    /// When it ends; without it, when somebody ends it.
    pub until: Option<Wall>,
}

impl Mitigation {
    /// Whether it holds.
    pub fn holds_at(&self, now: Wall) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl RawPolicy {
    /// The policy that this describes, or all that is wrong with it.
    pub fn validate(&self) -> Result<Policy, Invalid> {
        self.validate_whole().map(|valid| valid.policy)
    }

    /// The same, about what a URL names. A match in the body must agree.
    pub fn validate_about(&self, matches: &Match) -> Result<ValidPolicy, Invalid> {
        let mut problems = Problems::default();
        if let Some(own) = &self.matches {
            let pairs = own
                .iter()
                .map(|(scope, name)| (scope.as_str(), name.as_str()));
            if Match::from_pairs(pairs).is_ok_and(|own| own != *matches) {
                problems.add(
                    "/match",
                    format!("the address is about {matches}: leave match out"),
                );
            }
        }
        let about = Self {
            matches: Some(terms(matches)),
            ..self.clone()
        };
        match about.validate_whole() {
            Ok(valid) => problems.or(valid),
            Err(invalid) => {
                problems.extend("", invalid);
                problems.or(()).and(Err(Invalid::whole("not a policy")))
            }
        }
    }

    /// The policy and how it may change, or all that is wrong with it.
    pub fn validate_whole(&self) -> Result<ValidPolicy, Invalid> {
        let mut problems = Problems::default();
        let raw = Self::read_what_fits(self.shown(), &mut problems);
        let matches = matches(&raw, &mut problems);
        let (rate, spaced) = match raw.rate.as_ref().and_then(read_rate) {
            Some((rate, spaced)) => (Some(rate), spaced),
            None => (None, false),
        };
        let limits = raw.limits.iter().flatten();
        let policy = Policy {
            matches,
            rate,
            max_rate: None,
            burst: raw.burst,
            spaced,
            limits: limits
                .filter_map(|limit| LimitSpec::parse(&limit.text()).ok())
                .collect(),
            concurrency: raw.concurrency,
            weight: raw.weight,
            when_away: raw.when_away.as_deref().and_then(|word| word.parse().ok()),
            comment: raw.comment.clone(),
        };
        if problems.is_empty()
            && let Err(error) = policy.check()
        {
            problems.add(place_of(&error), error.to_string());
        }
        let mut policy = policy;
        policy.max_rate = max_rate(&raw, rate, &mut problems);
        let valid = ValidPolicy {
            mitigation: mitigation(&raw, &mut problems),
            policy,
        };
        problems.or(valid)
    }
}

fn matches(raw: &RawPolicy, problems: &mut Problems) -> Match {
    let pairs = raw.matches.iter().flatten();
    let pairs = pairs.map(|(scope, name)| (scope.as_str(), name.as_str()));
    Match::from_pairs(pairs).unwrap_or_else(|error| {
        problems.add("/match", error.to_string());
        Match::everything()
    })
}

fn read_rate(written: &Written) -> Option<(RateOrShare, bool)> {
    let (rate, spaced) = form::rate(&written.text()).ok()?;
    let rate = match rate {
        parse::RateOrShare::Rate(rate) => RateOrShare::Rate(rate),
        parse::RateOrShare::Share { permille } => RateOrShare::Share { permille },
    };
    Some((rate, spaced))
}

fn max_rate(raw: &RawPolicy, rate: Option<RateOrShare>, problems: &mut Problems) -> Option<Rate> {
    let most = Rate::parse(&raw.max_rate.as_ref()?.text()).ok()?;
    match rate {
        Some(RateOrShare::Rate(rate)) if rate.slower(most) == rate => {}
        Some(RateOrShare::Rate(_)) => {
            problems.add(
                "/max_rate",
                "must not be below rate: it is learnt up from there",
            );
        }
        Some(RateOrShare::Share { .. }) => {
            problems.add(
                "/max_rate",
                "a share follows its account: leave max_rate out",
            );
        }
        None => problems.add("/max_rate", "write rate beside it: where learning begins"),
    }
    Some(most)
}

fn mitigation(raw: &RawPolicy, problems: &mut Problems) -> Option<Mitigation> {
    let until = raw.cooldown_until.as_deref().and_then(form::time).map(Wall);
    let Some(reason) = raw.mitigation_reason.clone() else {
        if until.is_some() {
            problems.add(
                "/cooldown_until",
                "says how long a mitigation lasts: write mitigation_reason beside it",
            );
        }
        return None;
    };
    Some(Mitigation { reason, until })
}

/// The field that a refusal speaks of.
fn place_of(error: &outflow_core::policy::error::PolicyError) -> &'static str {
    use outflow_core::policy::error::PolicyError as Error;
    match error {
        Error::NotTogether { .. } | Error::ExactRecipient(_) => "/match",
        Error::Zero("burst") => "/burst",
        Error::Zero("concurrency") | Error::RecipientConcurrency => "/concurrency",
        Error::Zero("weight") | Error::Weight(_) => "/weight",
        Error::Zero("rate") | Error::Share { .. } | Error::ShareOf(_) => "/rate",
        Error::Zero(_) => "/limits",
        Error::SpacedNothing => "/rate",
        Error::SpacedBurst => "/burst",
    }
}
