//! The incident runbook and canaries.

use std::collections::BTreeMap;

use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::ramp::Ramp;
use outflow_core::runbook::{Settings as Course, Watch};
use outflow_core::tally::{Counter, Judged, Window};
use outflow_core::time::Nanos;
use serde_json::Value;

use super::machine::span;
use super::traffic::{permille, ppm};
use crate::problem::Problems;
use crate::raw_runbook::{RawCanary, RawOpens, RawRunbook, RawWatch};

/// A share of critical messages that goes another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// Through which accounts.
    pub pool: Name,
    /// How many of a thousand.
    pub permille: u16,
}

/// Addresses of our own at a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    /// The addresses.
    pub to: Vec<String>,
    /// Who writes to them.
    pub from: String,
    /// Through which accounts.
    pub pool: Name,
}

/// The incident runbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runbook {
    /// What it watches, and how it goes.
    pub course: Course,
    /// How often it looks.
    pub look_every: Nanos,
    /// Classes that can wait.
    pub paused_classes: Vec<Class>,
    /// Where a share of critical messages goes.
    pub detour: Option<Detour>,
    /// How mitigations are taken back, also those that people write.
    pub ramp: Ramp,
    /// Canaries by destination.
    pub canaries: BTreeMap<String, Canary>,
}

impl Default for Runbook {
    fn default() -> Self {
        Self {
            course: Course::default(),
            look_every: Nanos::from_secs(10),
            paused_classes: Vec::new(),
            detour: None,
            ramp: Ramp::default(),
            canaries: BTreeMap::new(),
        }
    }
}

pub(super) fn of(raw: &RawRunbook, canaries: &[Value], problems: &mut Problems) -> Runbook {
    let canaries = read_canaries(canaries, problems);
    check_looks(raw, problems);
    let ramp = Ramp {
        step_permille: at_least_one(permille(&raw.ramp_step), "ramp_step", problems),
        every: span(&raw.ramp_every),
    };
    let course = Course {
        enabled: raw.enabled,
        act: raw.act,
        watches: watches(raw, problems),
        cut_permille: at_least_one(permille(&raw.cut), "cut", problems),
        cooldown: span(&raw.cooldown),
        calm: span(&raw.calm),
        ramp,
        can_pause: !raw.paused_classes.is_empty(),
        can_detour: raw.detour_pool.is_some(),
        canaries: canaries.keys().cloned().collect(),
        canary_within: span(&raw.canary_within),
    };
    let classes = raw.paused_classes.iter();
    Runbook {
        course,
        look_every: span(&raw.look_every),
        paused_classes: classes.filter_map(|word| word.parse().ok()).collect(),
        detour: raw.detour_pool.as_deref().map(|pool| Detour {
            pool: Name::from(pool),
            permille: permille(&raw.detour_share),
        }),
        ramp,
        canaries,
    }
}

/// A slower rate is held for little longer than a step of the ramp, so somebody
/// must look several times in that time.
fn check_looks(raw: &RawRunbook, problems: &mut Problems) {
    let quarter = Nanos(span(&raw.ramp_every).0 / 4);
    if raw.enabled && span(&raw.look_every) > quarter {
        let millis = quarter.0 / 1_000_000;
        let what = format!(
            "must be at most a quarter of ramp_every ({:?}), so {millis}ms: what is slowed down \
             is looked after several times between two steps",
            raw.ramp_every
        );
        problems.add("/runbook/look_every", what);
    }
}

fn at_least_one(permille: u16, key: &str, problems: &mut Problems) -> u16 {
    if permille == 0 {
        problems.add(format!("/runbook/{key}"), "must be at least 0.1%");
    }
    permille.max(1)
}

fn watches(raw: &RawRunbook, problems: &mut Problems) -> Vec<Watch> {
    let usual = Watch::usual().into_iter();
    let watch = |watch: Watch| match watch.rule.part {
        Counter::Complained => above(watch, &raw.complaints, "complaints", problems),
        Counter::Reply429 => above(watch, &raw.too_fast, "too_fast", problems),
        Counter::Bounced => above(watch, &raw.hard_bounces, "hard_bounces", problems),
        Counter::Opened => fewer(watch, &raw.fewer_opens),
        _ => above(watch, &raw.deferrals, "deferrals", problems),
    };
    usual.map(watch).collect()
}

fn above(mut watch: Watch, raw: &RawWatch, key: &str, problems: &mut Problems) -> Watch {
    let (share, calm) = (ppm(&raw.share), ppm(&raw.calm));
    if calm > share {
        problems.add(
            format!("/runbook/{key}/calm"),
            "must not be above share: it could never be quiet",
        );
    }
    let mut windows = Window::ALL.into_iter();
    let window = windows.find(|window| window.as_str() == raw.window);
    watch.rule.window = window.unwrap_or(watch.rule.window);
    watch.rule.judged = Judged::Above(share);
    watch.rule.least = raw.least;
    watch.calm = calm;
    watch
}

fn fewer(mut watch: Watch, raw: &RawOpens) -> Watch {
    if let Judged::BelowUsual { usual, .. } = watch.rule.judged {
        let part = ppm(&raw.part);
        watch.rule.judged = Judged::BelowUsual { usual, part };
    }
    watch.rule.least = raw.least;
    watch
}

fn read_canaries(values: &[Value], problems: &mut Problems) -> BTreeMap<String, Canary> {
    let mut canaries = BTreeMap::new();
    for (i, value) in values.iter().enumerate() {
        let at = |field: &str| format!("/canary/{i}{field}");
        let raw: RawCanary = match serde_json::from_value(value.clone()) {
            Ok(raw) => raw,
            Err(error) => {
                problems.add(at(""), error.to_string());
                continue;
            }
        };
        let place = Match::from_pairs([("destination", raw.destination.as_str())]);
        let place = match place {
            Ok(place) => place.to_string(),
            Err(error) => {
                problems.add(at("/destination"), error.to_string());
                continue;
            }
        };
        if raw.to.is_empty() {
            problems.add(at("/to"), "write at least one address");
        }
        let addresses = raw.to.iter().map(|to| ("/to", to));
        for (field, address) in addresses.chain([("/from", &raw.from)]) {
            if !address.contains('@') {
                problems.add(at(field), "write an address: canary@example.com");
            }
        }
        let canary = Canary {
            to: raw.to,
            from: raw.from,
            pool: Name::from(raw.pool.as_deref().unwrap_or("default")),
        };
        if canaries.insert(place, canary).is_some() {
            problems.add(at("/destination"), "has canaries already: make them one");
        }
    }
    canaries
}
