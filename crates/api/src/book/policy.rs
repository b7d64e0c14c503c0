//! What is in force of policies: a base, and perhaps a mitigation over it.
//!
//! A mitigation overrides the base until its cooldown is over; then the rate
//! ramps back up to it, by the time alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_config::policy::text;
use outflow_config::{Mitigation, RawPolicy, ValidPolicy};
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::RateOrShare;
use outflow_core::policy::ramp::{Phase, Ramp};
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
    /// Up to which step the audit has told how the override is taken back.
    #[serde(skip_serializing_if = "is_zero")]
    pub step: u32,
}

const fn is_zero(step: &u32) -> bool {
    *step == 0
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
    /// Up to which step the audit has told how the override is taken back.
    pub step: u32,
    /// How the override is taken back.
    pub ramp: Ramp,
    /// How often it was changed over the API.
    pub version: u64,
}

impl PolicyEntry {
    /// What a document makes of the policy below it, of the file or built in.
    pub fn of(
        start: &StartValues,
        matches: &Match,
        stored: StoredPolicy,
        version: u64,
    ) -> Option<Self> {
        let below = below(start, matches);
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
            step: stored.step,
            ramp: start.runbook.ramp,
            version,
        })
    }

    /// What to store of it.
    pub fn stored(&self) -> StoredPolicy {
        StoredPolicy {
            base: self.own_base(),
            over: self.over.clone(),
            step: self.step,
        }
    }

    /// The base, if it was set over the API.
    pub fn own_base(&self) -> Option<RawPolicy> {
        self.base.clone().filter(|_| self.origin == Origin::Api)
    }

    /// Where the override stands; over if there is none.
    pub fn phase(&self, matches: &Match, now: Wall) -> Phase {
        let over = self.over.as_ref();
        let mitigation = over.and_then(|over| mitigation(over, matches));
        let (Some(over), Some(mitigation)) = (over, mitigation) else {
            return Phase::Over;
        };
        let base = self.base.as_ref().and_then(|base| rate(base, matches));
        self.ramp
            .at(base, rate(over, matches), mitigation.until, now)
    }

    /// As it was written, with the override as far as it still holds.
    pub fn raw_at(&self, matches: &Match, now: Wall) -> Option<RawPolicy> {
        let (Some(over), phase) = (&self.over, self.phase(matches, now)) else {
            return self.base.clone();
        };
        let mut over = over.clone();
        match phase {
            Phase::Holds => {}
            Phase::Ramping(ramping) => {
                let is_spaced = over.rate.as_ref().is_some_and(|rate| {
                    let text = rate.text();
                    text.trim_end().ends_with("spaced")
                });
                let most = self.most_at(matches, ramping.rate, now);
                over.rate = Some(written(ramping.rate, is_spaced).into());
                over.max_rate = most.map(|most| written(most, false).into());
            }
            Phase::Over => return self.base.clone(),
        }
        let base = self.base.clone().unwrap_or_default();
        Some(base.overridden_by(&over))
    }

    /// What was in force when the audit was last told of the override: as it was
    /// written, or at the step of that time.
    pub fn raw_told(&self, matches: &Match) -> Option<RawPolicy> {
        let over = self.over.as_ref();
        let mitigation = over.and_then(|over| mitigation(over, matches));
        let Some(until) = mitigation.and_then(|it| it.until) else {
            return self.over.clone();
        };
        let told_at = match self.step.checked_sub(1) {
            None => Wall(until.0.saturating_sub(1)),
            Some(before) => until + self.ramp.every.times(u64::from(before)),
        };
        self.raw_at(matches, told_at)
    }

    /// Up to what is learnt while the rate comes back: that comes back too, by
    /// the same steps, and is never below the rate. None if nothing is learnt.
    fn most_at(&self, matches: &Match, rate: RateOrShare, now: Wall) -> Option<RateOrShare> {
        let base = self.base.as_ref().and_then(|base| most(base, matches));
        let (over, until) = (self.over.as_ref()?, self.until(matches));
        let held = self.base.clone().unwrap_or_default().overridden_by(over);
        let now = match self.ramp.at(base, most(&held, matches), until, now) {
            Phase::Ramping(ramping) => ramping.rate,
            Phase::Holds | Phase::Over => base.or_else(|| most(&held, matches))?,
        };
        match (rate, now) {
            (RateOrShare::Rate(rate), RateOrShare::Rate(most)) if most.slower(rate) == most => {
                Some(RateOrShare::Rate(rate))
            }
            (RateOrShare::Rate(_), most) => Some(most),
            (RateOrShare::Share { .. }, _) => None,
        }
    }

    /// Until when the override holds as it was written.
    fn until(&self, matches: &Match) -> Option<Wall> {
        mitigation(self.over.as_ref()?, matches)?.until
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
            entry.step = 0;
        }
        entry
    }

    /// Whether there was an override, which has ended.
    pub fn is_over(&self, matches: &Match, now: Wall) -> bool {
        self.over.is_some() && self.phase(matches, now) == Phase::Over
    }

    /// Whether its cooldown is over: from then on the override is taken back.
    pub fn has_cooled(&self, matches: &Match, now: Wall) -> bool {
        self.over.is_some() && self.phase(matches, now) != Phase::Holds
    }
}

/// A rate as people write it.
pub fn written(rate: RateOrShare, is_spaced: bool) -> String {
    let mut text = match rate {
        RateOrShare::Rate(rate) => text::rate(rate),
        RateOrShare::Share { permille } => text::share(permille),
    };
    if is_spaced {
        text.push_str(" spaced");
    }
    text
}

/// The rate that a policy says. Other fields are checked elsewhere.
fn rate(raw: &RawPolicy, matches: &Match) -> Option<RateOrShare> {
    let bare = RawPolicy {
        rate: raw.rate.clone(),
        ..RawPolicy::default()
    };
    bare.validate_about(matches).ok()?.policy.rate
}

/// Up to which rate a policy has its own learnt.
fn most(raw: &RawPolicy, matches: &Match) -> Option<RateOrShare> {
    let bare = RawPolicy {
        rate: raw.max_rate.clone(),
        ..RawPolicy::default()
    };
    rate(&bare, matches)
}

/// When and why an override holds. Fields that go together are checked
/// elsewhere.
fn mitigation(over: &RawPolicy, matches: &Match) -> Option<Mitigation> {
    let bare = RawPolicy {
        mitigation_reason: over.mitigation_reason.clone(),
        cooldown_until: over.cooldown_until.clone(),
        ..RawPolicy::default()
    };
    bare.validate_about(matches).ok()?.mitigation
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
            step: 0,
            ramp: start.runbook.ramp,
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
        match PolicyEntry::of(start, &matches, stored, document.version) {
            Some(entry) => policies.insert(matches, Arc::new(entry)),
            None => policies.remove(&matches),
        };
    }
    policies
}
