//! What the runbook does: the same that a person would, by the same calls.
//!
//! Everything that it sets carries the number of its incident, so that it takes
//! back what is its own and never touches what somebody else set.

use std::collections::BTreeSet;

use crate::detours::{Detour, Way};
use axum::http::HeaderMap;
use outflow_config::RawPolicy;
use outflow_core::limit::spec::Rate;
use outflow_core::policy::matcher::{Match, Pattern};
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::scope::Scope;
use outflow_core::runbook::{Incident, Runbook};
use outflow_core::time::Wall;

use super::{ACTOR, PLACES};
use crate::book::policy::{PolicyEntry, StoredPolicy, written};
use crate::pauses::{self, Pause};
use crate::policies;
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// A policy whose rate speaks of a destination.
pub(super) struct Target {
    /// What is to be overridden: about exactly this destination.
    matches: Match,
    /// What is overridden.
    base: Policy,
}

/// What stands before the reason of everything that an incident sets.
fn mark(incident: &Incident) -> String {
    format!("incident {}: ", incident.id)
}

/// The number of the incident that gave this reason, if one did.
fn number(reason: &str) -> Option<u64> {
    let (number, _) = reason.strip_prefix("incident ")?.split_once(": ")?;
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_plain)
}

fn reason(incident: &Incident) -> String {
    let line = incident.lines.last();
    let why = line.map_or_else(|| incident.sentence(), |line| line.why.clone());
    let mut reason = format!("{}{why}", mark(incident));
    reason.truncate(reason.floor_char_boundary(500));
    reason
}

/// Of which destinations a policy has a rate: read once for all that are looked
/// at, of which there may be many.
pub(super) struct Rated {
    exact: BTreeSet<String>,
    any: BTreeSet<&'static str>,
}

impl Rated {
    pub(super) fn of(state: &ApiState) -> Self {
        let mut rated = Self {
            exact: BTreeSet::new(),
            any: BTreeSet::new(),
        };
        for (matches, entry) in &state.book.snapshot().policies {
            if entry.base.as_ref().is_none_or(|base| base.rate.is_none()) {
                continue;
            }
            for (scope, pattern) in matches.terms() {
                let lane = || pattern.as_str().rsplit_once('/');
                match (scope, pattern) {
                    (Scope::Lane, Pattern::Exact(_)) => {
                        rated
                            .exact
                            .extend(lane().map(|(_, place)| place.to_owned()));
                    }
                    (scope, Pattern::Exact(name)) if PLACES.contains(scope) => {
                        rated.exact.insert(format!("{scope}:{name}"));
                    }
                    (scope, Pattern::Any) if PLACES.contains(scope) => {
                        rated.any.insert(scope.as_str());
                    }
                    _ => {}
                }
            }
        }
        rated
    }

    /// Whether a rate speaks of `isp:google`.
    pub(super) fn has(&self, place: &str) -> bool {
        let kind = place.split_once(':').map(|(kind, _)| kind);
        self.exact.contains(place) || kind.is_some_and(|kind| self.any.contains(kind))
    }
}

/// The policies whose rates speak of a destination. One about each of several
/// (`*`) is overridden by one about this. Where none has a rate, what was sent
/// there when it began counts as one.
fn targets(state: &ApiState, incident: &Incident) -> Vec<Target> {
    let place = incident.destination.as_str();
    let Some((word, name)) = place.split_once(':') else {
        return Vec::new();
    };
    let Ok(scope) = word.parse::<Scope>() else {
        return Vec::new();
    };
    let snapshot = state.book.snapshot();
    let mut targets: Vec<Target> = Vec::new();
    let mut wide: Vec<Target> = Vec::new();
    for (matches, entry) in &snapshot.policies {
        let base = entry
            .base
            .as_ref()
            .and_then(|base| base.validate_about(matches).ok());
        let Some(base) = base
            .map(|base| base.policy)
            .filter(|base| base.rate.is_some())
        else {
            continue;
        };
        let lane = format!("/{place}");
        match (matches.pattern(scope), matches.pattern(Scope::Lane)) {
            (Some(Pattern::Exact(own)), _) if own.as_str() == name => targets.push(Target {
                matches: matches.clone(),
                base,
            }),
            (_, Some(Pattern::Exact(own))) if own.as_str().ends_with(&lane) => {
                targets.push(Target {
                    matches: matches.clone(),
                    base,
                });
            }
            (Some(Pattern::Any), _) => {
                wide.extend(narrowed(matches, scope, name).map(|matches| Target { matches, base }))
            }
            _ => {}
        }
    }
    for target in wide {
        if !targets.iter().any(|it| it.matches == target.matches) {
            targets.push(target);
        }
    }
    if targets.is_empty() {
        targets.extend(incident.measured.and_then(|rate| measured(place, rate)));
    }
    targets
}

/// What was sent to a destination, as if a policy said so.
fn measured(place: &str, rate: Rate) -> Option<Target> {
    let matches = Match::from_pairs([("destination", place)]).ok()?;
    let raw = RawPolicy {
        rate: Some(written(RateOrShare::Rate(rate), false).into()),
        ..RawPolicy::default()
    };
    let base = raw.validate_about(&matches).ok()?.policy;
    Some(Target { matches, base })
}

/// The same match about one destination.
fn narrowed(matches: &Match, scope: Scope, name: &str) -> Option<Match> {
    let terms = matches.terms().iter().map(|(own, pattern)| {
        let name = if *own == scope {
            name
        } else {
            pattern.as_str()
        };
        (own.as_str(), name)
    });
    Match::from_pairs(terms).ok()
}

/// Holds a destination to a part of its rates.
pub(super) async fn slow(
    state: &ApiState,
    book: &Runbook,
    incident: &Incident,
    permille: u16,
    until: Wall,
) -> Result<(), Problem> {
    let until = until.max(state.clock.now() + outflow_core::time::Nanos::from_secs(1));
    for Target { matches, base } in targets(state, incident) {
        let over = RawPolicy {
            rate: base
                .rate
                .map(|rate| written(part(rate, permille), base.spaced).into()),
            // Without it, what is learnt would not hold.
            max_rate: base
                .max_rate
                .map(|most| written(part(RateOrShare::Rate(most), permille), false).into()),
            burst: base.burst.map(|burst| scaled(burst, permille)),
            mitigation_reason: Some(reason(incident)),
            cooldown_until: Some(Stamp(until).to_string()),
            ..RawPolicy::default()
        };
        if is_foreign(state, book, incident, &matches) {
            continue;
        }
        policies::set(state, ACTOR, &matches, &HeaderMap::new(), |before| {
            Ok(StoredPolicy {
                base: before.and_then(PolicyEntry::own_base),
                over: Some(over),
                step: 0,
            })
        })
        .await?;
    }
    Ok(())
}

/// Whether somebody else overrides a policy: that is left alone. What an incident
/// that is over has left behind is not somebody else's.
fn is_foreign(state: &ApiState, book: &Runbook, incident: &Incident, matches: &Match) -> bool {
    let snapshot = state.book.snapshot();
    let entry = snapshot.policies.get(matches);
    let over = entry
        .filter(|entry| !entry.is_over(matches, state.clock.now()))
        .and_then(|entry| entry.over.as_ref());
    over.is_some_and(|over| {
        let reason = over.mitigation_reason.as_deref().unwrap_or_default();
        let is_ours = |number| number == incident.id || book.is_over(number);
        !number(reason).is_some_and(is_ours)
    })
}

fn part(rate: RateOrShare, permille: u16) -> RateOrShare {
    match rate {
        RateOrShare::Rate(rate) => RateOrShare::Rate(rate.share(permille)),
        RateOrShare::Share { permille: share } => {
            let share = u32::from(share) * u32::from(permille) / 1_000;
            RateOrShare::Share {
                permille: u16::try_from(share).unwrap_or(1_000).max(1),
            }
        }
    }
}

fn scaled(burst: u32, permille: u16) -> u32 {
    let burst = u64::from(burst) * u64::from(permille) / 1_000;
    u32::try_from(burst).unwrap_or(u32::MAX).max(1)
}

/// Rates are as they were.
pub(super) async fn lift(state: &ApiState, incident: &Incident) -> Result<(), Problem> {
    let mark = mark(incident);
    let snapshot = state.book.snapshot();
    for (matches, entry) in &snapshot.policies {
        let reason = entry
            .over
            .as_ref()
            .and_then(|over| over.mitigation_reason.as_deref());
        if !reason.is_some_and(|reason| reason.starts_with(&mark)) {
            continue;
        }
        if entry.base.is_none() {
            // It was made for the incident alone.
            policies::take_away(state, ACTOR, matches, &HeaderMap::new()).await?;
            continue;
        }
        policies::set(state, ACTOR, matches, &HeaderMap::new(), |before| {
            Ok(StoredPolicy {
                base: before.and_then(PolicyEntry::own_base),
                ..StoredPolicy::default()
            })
        })
        .await?;
    }
    Ok(())
}

/// Pauses the classes that can wait.
pub(super) async fn pause(state: &ApiState, incident: &Incident) -> Result<(), Problem> {
    let (mark, own) = (mark(incident), own_pauses(state, incident).await?);
    debug_assert!(reason(incident).starts_with(&mark));
    for class in &state.book.start().runbook.paused_classes {
        let pairs = [
            ("destination", incident.destination.as_str()),
            ("class", class.as_str()),
        ];
        let Ok(matches) = Match::from_pairs(pairs) else {
            continue;
        };
        let about = matches.to_string();
        let is_there = |document: &outflow_ports::registry::Document| {
            Pause::of(document).is_some_and(|(_, _, pause)| pause.about == about)
        };
        if !own.iter().any(is_there) {
            pauses::pause(state, ACTOR, matches, Some(reason(incident)), None).await?;
        }
    }
    Ok(())
}

/// They may go on.
pub(super) async fn resume(state: &ApiState, incident: &Incident) -> Result<(), Problem> {
    for document in own_pauses(state, incident).await? {
        pauses::lift(state, ACTOR, &document, "pause.remove").await?;
    }
    Ok(())
}

/// Lifts pauses of incidents that are over: a process that ended could not.
pub(super) async fn resume_left(state: &ApiState, book: &Runbook) -> Result<(), Problem> {
    for document in pauses::documents(state).await? {
        let is_left = Pause::of(&document).is_some_and(|(_, _, pause)| {
            let reason = pause.reason.as_deref().unwrap_or_default();
            pause.by == ACTOR && number(reason).is_some_and(|number| book.is_over(number))
        });
        if is_left {
            pauses::lift(state, ACTOR, &document, "pause.remove").await?;
        }
    }
    Ok(())
}

async fn own_pauses(
    state: &ApiState,
    incident: &Incident,
) -> Result<Vec<outflow_ports::registry::Document>, Problem> {
    let mark = mark(incident);
    let mut documents = pauses::documents(state).await?;
    documents.retain(|document| {
        Pause::of(document).is_some_and(|(_, _, pause)| {
            let reason = pause.reason.as_deref().unwrap_or_default();
            pause.by == ACTOR && reason.starts_with(&mark)
        })
    });
    Ok(documents)
}

/// What the detour of an incident is called.
fn detour_name(incident: &Incident) -> String {
    format!("incident/{}", incident.destination)
}

/// Sends a share of critical messages another way.
pub(super) fn detour(state: &ApiState, incident: &Incident) {
    let detour = state.book.start().runbook.detour.as_ref();
    let Some(detour) = detour.filter(|detour| state.book.has_pool(&detour.pool)) else {
        return;
    };
    let set = Detour {
        destination: Some(incident.destination.clone()),
        from: None,
        class: Some(outflow_core::class::Class::Critical),
        only_unengaged: false,
        way: Way::Pool(detour.pool.clone()),
        permille: detour.permille,
    };
    state.detours.set(&detour_name(incident), set);
}

/// They go the usual way again.
pub(super) fn go_back(state: &ApiState, incident: &Incident) {
    state.detours.remove(&detour_name(incident));
}
