//! What is in force of policies: a base, and perhaps a mitigation over it.
//!
//! A mitigation overrides the base until its cooldown is over; then the base
//! holds again, at once. (Ramping back is not built yet.)

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_config::{RawPolicy, ValidPolicy};
use outflow_core::policy::matcher::Match;
use outflow_core::time::Wall;
use outflow_ports::registry::Document;
use serde::{Deserialize, Serialize};

use super::{Origin, StartValues};

/// A policy as it is stored. One that says nothing leaves the file's in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredPolicy {
    /// What holds; the file's if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<RawPolicy>,
    /// What overrides it for a while.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub over: Option<RawPolicy>,
}

/// A policy in force.
#[derive(Clone, Debug)]
pub struct PolicyEntry {
    /// What holds without a mitigation.
    pub base: Option<RawPolicy>,
    /// Where that came from.
    pub origin: Origin,
    /// What overrides it.
    pub over: Option<RawPolicy>,
    /// How often it was changed over the API.
    pub version: u64,
}

impl PolicyEntry {
    /// What a document makes of the policy below it, of the file or built in.
    pub fn of(below: Option<Below<'_>>, stored: StoredPolicy, version: u64) -> Option<Self> {
        let origin = match (&stored.base, below) {
            (None, Some((_, origin))) => origin,
            (Some(_), _) | (None, None) => Origin::Api,
        };
        let base = stored.base.or_else(|| below.map(|(raw, _)| raw.clone()));
        let says_something = base.is_some() || stored.over.is_some();
        says_something.then_some(Self {
            base,
            origin,
            over: stored.over,
            version,
        })
    }

    /// As it was written, with the override if it still holds.
    pub fn raw_at(&self, matches: &Match, now: Wall) -> Option<RawPolicy> {
        match &self.over {
            Some(over) if holds(over, matches, now) => {
                let base = self.base.clone().unwrap_or_default();
                Some(base.overridden_by(over))
            }
            _ => self.base.clone(),
        }
    }

    /// What is enforced at this time.
    pub fn at(&self, matches: &Match, now: Wall) -> Option<ValidPolicy> {
        let raw = self.raw_at(matches, now)?;
        raw.validate_about(matches).ok()
    }

    /// The same without an override that has ended.
    #[must_use]
    pub fn without_ended(&self, matches: &Match, now: Wall) -> Self {
        let mut entry = self.clone();
        if self.is_over(matches, now) {
            entry.over = None;
        }
        entry
    }

    /// Whether the override has ended.
    pub fn is_over(&self, matches: &Match, now: Wall) -> bool {
        let over = self.over.as_ref();
        over.is_some_and(|over| !holds(over, matches, now))
    }
}

/// Whether an override holds. Fields that go together are checked elsewhere.
fn holds(over: &RawPolicy, matches: &Match, now: Wall) -> bool {
    let bare = RawPolicy {
        mitigation_reason: over.mitigation_reason.clone(),
        cooldown_until: over.cooldown_until.clone(),
        ..RawPolicy::default()
    };
    let valid = bare.validate_about(matches).ok();
    let mitigation = valid.and_then(|valid| valid.mitigation);
    mitigation.is_some_and(|mitigation| mitigation.holds_at(now))
}

/// A policy that nobody wrote over the API, and where it came from.
pub type Below<'a> = (&'a RawPolicy, Origin);

/// The policy of the file about exactly this, else the one that is built in.
pub fn below<'a>(start: &'a StartValues, matches: &Match) -> Option<Below<'a>> {
    let find = |policies: &'a [RawPolicy], origin| {
        let mut policies = policies.iter();
        let found = policies.find(|raw| match_of(raw).as_ref() == Some(matches))?;
        Some((found, origin))
    };
    find(&start.policies, Origin::File).or_else(|| find(&start.built_in, Origin::BuiltIn))
}

fn match_of(raw: &RawPolicy) -> Option<Match> {
    let pairs = raw.matches.iter().flatten();
    Match::from_pairs(pairs.map(|(word, name)| (word.as_str(), name.as_str()))).ok()
}

/// Policies that are built in, under those of the file, under those of the
/// registry.
pub fn in_force(start: &StartValues, documents: &[Document]) -> BTreeMap<Match, Arc<PolicyEntry>> {
    let built_in = start.built_in.iter().map(|raw| (raw, Origin::BuiltIn));
    let of_file = start.policies.iter().map(|raw| (raw, Origin::File));
    let from_start = built_in.chain(of_file).filter_map(|(raw, origin)| {
        let entry = PolicyEntry {
            base: Some(raw.clone()),
            origin,
            over: None,
            version: 0,
        };
        Some((match_of(raw)?, Arc::new(entry)))
    });
    let mut policies: BTreeMap<Match, Arc<PolicyEntry>> = from_start.collect();
    for document in documents {
        let Ok(matches) = document.id.parse::<Match>() else {
            continue;
        };
        let stored = match document.value.as_deref() {
            None => {
                policies.remove(&matches);
                continue;
            }
            Some(value) => serde_json::from_str::<StoredPolicy>(value).unwrap_or_default(),
        };
        let below = below(start, &matches);
        match PolicyEntry::of(below, stored, document.version) {
            Some(entry) => policies.insert(matches, Arc::new(entry)),
            None => policies.remove(&matches),
        };
    }
    policies
}
