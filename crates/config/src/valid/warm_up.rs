//! Senders that are being warmed up.

use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::warmup::{Bar, Per, Plan};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::traffic::ppm;
use crate::problem::Problems;
use crate::written::Written;

/// `[[warm_up]]`, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawWarmUp {
    pub account: Option<String>,
    pub ip: Option<String>,
    pub destinations: Vec<String>,
    pub plan: Option<String>,
    pub steps: Option<Vec<u32>>,
    pub per: Option<String>,
    pub first_day: Option<u32>,
    pub overflow_pool: Option<String>,
    pub used: Option<Written>,
    pub deferred: Option<Written>,
    pub bounced: Option<Written>,
    pub complained: Option<Written>,
}

/// A sender that is being warmed up, at one destination or at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// What is limited: `ip:192.0.2.7/isp:google`.
    pub matches: Match,
    /// `isp:google`; all if none.
    pub destination: Option<String>,
    /// How much on which day.
    pub plan: Plan,
    /// Where to begin, from 0.
    pub first_day: u32,
    /// Where the rest goes.
    pub overflow: Option<Name>,
    /// What a day must hold to.
    pub bar: Bar,
}

pub(super) fn of(values: &[Value], problems: &mut Problems) -> Vec<WarmUp> {
    let mut all: Vec<WarmUp> = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let at = format!("/warm_up/{i}");
        let raw: RawWarmUp = match serde_json::from_value(value.clone()) {
            Ok(raw) => raw,
            Err(error) => {
                problems.add(at, error.to_string());
                continue;
            }
        };
        for warm_up in read(&raw, &at, problems) {
            if all.iter().any(|it| it.matches == warm_up.matches) {
                let what = format!("{} has a plan already: make them one", warm_up.matches);
                problems.add(at.clone(), what);
                continue;
            }
            all.push(warm_up);
        }
    }
    all
}

/// What a plan of one's own is called.
const OWN: &str = "own";

fn plan(raw: &RawWarmUp, at: &str, problems: &mut Problems) -> Option<Plan> {
    let Some(steps) = &raw.steps else {
        if raw.per.is_some() {
            let what = "write steps beside it: plans that come with the program say it themselves";
            problems.add(format!("{at}/per"), what);
        }
        let plan = Plan::named(raw.plan.as_deref().unwrap_or("generic"));
        if plan.is_none() {
            problems.add(format!("{at}/plan"), "there is no such plan");
        }
        return plan;
    };
    if raw.plan.is_some() {
        problems.add(format!("{at}/steps"), "write either plan or steps");
    }
    if steps.is_empty() {
        problems.add(format!("{at}/steps"), "write at least one");
    }
    let per = match raw.per.as_deref() {
        Some("hour") => Per::Hour,
        _ => Per::Day,
    };
    Some(Plan::of_steps(OWN, per, steps))
}

fn read(raw: &RawWarmUp, at: &str, problems: &mut Problems) -> Vec<WarmUp> {
    let sender = match (&raw.account, &raw.ip) {
        (Some(account), None) => ("account", account.as_str()),
        (None, Some(ip)) => ("ip", ip.as_str()),
        _ => {
            problems.add(at, "write either account or ip: who is new");
            return Vec::new();
        }
    };
    let Some(plan) = plan(raw, at, problems) else {
        return Vec::new();
    };
    let usual = Bar::default();
    let share = |written: &Option<Written>, usual| written.as_ref().map_or(usual, ppm);
    let bar = Bar {
        used: share(&raw.used, usual.used),
        deferred: share(&raw.deferred, usual.deferred),
        bounced: share(&raw.bounced, usual.bounced),
        complained: share(&raw.complained, usual.complained),
    };
    let warm_up = |matches, destination| WarmUp {
        matches,
        destination,
        plan: plan.clone(),
        first_day: raw.first_day.unwrap_or(1).saturating_sub(1),
        overflow: raw.overflow_pool.as_deref().map(Name::from),
        bar,
    };
    if raw.destinations.is_empty() {
        let matches = Match::from_pairs([sender]).ok();
        return matches
            .map(|matches| warm_up(matches, None))
            .into_iter()
            .collect();
    }
    let mut all = Vec::new();
    for (j, place) in raw.destinations.iter().enumerate() {
        let pairs = [sender, ("destination", place.as_str())];
        let read = Match::from_pairs(pairs).and_then(|matches| {
            let place = Match::from_pairs([("destination", place.as_str())])?;
            Ok((matches, place.to_string()))
        });
        match read {
            Ok((_, place)) if place.contains('*') => {
                problems.add(format!("{at}/destinations/{j}"), "name one destination");
            }
            Ok((matches, place)) => all.push(warm_up(matches, Some(place))),
            Err(error) => problems.add(format!("{at}/destinations/{j}"), error.to_string()),
        }
    }
    all
}
