//! The fields of a policy, as they are written in the file and over the API.

use std::collections::BTreeMap;

use outflow_core::limit::parse;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text;
use crate::check;
use crate::form;
use crate::keys;
use crate::problem::{Invalid, Problems};
use crate::written::Written;

/// A policy as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawPolicy {
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<Written>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_away: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mitigation_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

impl RawPolicy {
    /// Reads a policy from JSON. All that does not fit is told, each with a
    /// pointer; whether it can be honoured is for `validate` to say.
    pub fn read(value: &Value) -> Result<Self, Invalid> {
        let mut problems = Problems::default();
        let raw = Self::read_what_fits(value.clone(), &mut problems);
        problems.or(raw)
    }

    pub(super) fn read_what_fits(mut value: Value, problems: &mut Problems) -> Self {
        check::table(&mut value, keys::POLICY, "", problems);
        serde_json::from_value(value).unwrap_or_else(|error| {
            problems.add("", error.to_string());
            Self::default()
        })
    }

    /// As JSON.
    pub fn shown(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The same policy about `matches`.
    #[must_use]
    pub fn about(mut self, matches: &Match) -> Self {
        self.matches = Some(terms(matches));
        self
    }

    /// This policy while `over` holds: what `over` says replaces what it says.
    /// A mitigation is kept beside the policy that it overrides, so that this
    /// one is there again afterwards.
    #[must_use]
    pub fn overridden_by(&self, over: &Self) -> Self {
        let over = over.clone();
        let mut merged = self.clone();
        if over.rate.is_some() {
            // These belong to the rate that they were written for. What is
            // learnt of it holds on, below the new one.
            merged.burst = None;
            let most = over.rate.as_ref().filter(|_| merged.max_rate.is_some());
            merged.max_rate = most.and_then(bare_rate);
        }
        merged.rate = over.rate.or(merged.rate);
        merged.max_rate = over.max_rate.or(merged.max_rate);
        merged.burst = over.burst.or(merged.burst);
        merged.limits = over.limits.or(merged.limits);
        merged.concurrency = over.concurrency.or(merged.concurrency);
        merged.weight = over.weight.or(merged.weight);
        merged.when_away = over.when_away.or(merged.when_away);
        merged.comment = over.comment.or(merged.comment);
        merged.mitigation_reason = over.mitigation_reason;
        merged.cooldown_until = over.cooldown_until;
        merged
    }
}

/// A policy in force, as it would be written.
impl From<&Policy> for RawPolicy {
    fn from(policy: &Policy) -> Self {
        let rate = policy.rate.map(|rate| {
            let text = match rate {
                RateOrShare::Rate(rate) => text::rate(rate),
                RateOrShare::Share { permille } => text::share(permille),
            };
            let spaced = if policy.spaced { " spaced" } else { "" };
            Written::from(format!("{text}{spaced}"))
        });
        let limits = policy
            .limits
            .iter()
            .map(|limit| Written::from(text::limit(limit)));
        let limits: Vec<Written> = limits.collect();
        Self {
            matches: Some(terms(&policy.matches)),
            rate,
            max_rate: policy.max_rate.map(|rate| Written::from(text::rate(rate))),
            burst: policy.burst,
            limits: (!limits.is_empty()).then_some(limits),
            concurrency: policy.concurrency,
            weight: policy.weight,
            when_away: policy.when_away.map(|word| word.as_str().to_owned()),
            comment: policy.comment.clone(),
            ..Self::default()
        }
    }
}

/// A rate without its spacing; none if it is a share.
fn bare_rate(written: &Written) -> Option<Written> {
    let text = written.text();
    let (rate, _) = form::rate(&text).ok()?;
    match rate {
        parse::RateOrShare::Rate(rate) => Some(Written::from(text::rate(rate))),
        parse::RateOrShare::Share { .. } => None,
    }
}

/// What a policy governs, as it would be written.
pub fn terms(matches: &Match) -> BTreeMap<String, String> {
    let terms = matches.terms().iter();
    terms
        .map(|(scope, pattern)| (scope.as_str().to_owned(), pattern.as_str().to_owned()))
        .collect()
}
