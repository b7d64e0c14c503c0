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
    /// What a document makes of the policy of the file.
    pub fn of(file: Option<&RawPolicy>, stored: StoredPolicy, version: u64) -> Option<Self> {
        let origin = match stored.base {
            Some(_) => Origin::Api,
            None if file.is_some() => Origin::File,
            None => Origin::Api,
        };
        let base = stored.base.or_else(|| file.cloned());
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

/// The policy of the file about exactly this.
pub fn of_file<'a>(start: &'a StartValues, matches: &Match) -> Option<&'a RawPolicy> {
    let mut policies = start.policies.iter();
    policies.find(|raw| match_of(raw).as_ref() == Some(matches))
}

fn match_of(raw: &RawPolicy) -> Option<Match> {
    let pairs = raw.matches.iter().flatten();
    Match::from_pairs(pairs.map(|(word, name)| (word.as_str(), name.as_str()))).ok()
}

/// Policies of the file, under those of the registry.
pub fn in_force(start: &StartValues, documents: &[Document]) -> BTreeMap<Match, Arc<PolicyEntry>> {
    let from_file = start.policies.iter().filter_map(|raw| {
        let entry = PolicyEntry {
            base: Some(raw.clone()),
            origin: Origin::File,
            over: None,
            version: 0,
        };
        Some((match_of(raw)?, Arc::new(entry)))
    });
    let mut policies: BTreeMap<Match, Arc<PolicyEntry>> = from_file.collect();
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
        let file = of_file(start, &matches);
        match PolicyEntry::of(file, stored, document.version) {
            Some(entry) => policies.insert(matches, Arc::new(entry)),
            None => policies.remove(&matches),
        };
    }
    policies
}
