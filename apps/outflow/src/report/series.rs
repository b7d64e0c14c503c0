//! Counts and limits of one destination over time.

use std::collections::{BTreeMap, BTreeSet};

use super::material::{History, MINUTE, Refusal, SECOND};

/// Fewer refusals in one step are an accident.
const REFUSED_LEAST: u64 = 3;
/// As is a smaller share: one in so many. Some far ends refuse a few at any
/// rate.
const ONE_IN: u64 = 20;
/// Trouble that comes again so soon is the same trouble.
const APART: i64 = 15 * MINUTE;

/// What was counted in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// When it begins.
    pub at: i64,
    /// All attempts.
    pub attempts: u64,
    /// Taken.
    pub accepted: u64,
    /// Refused for our rate or standing.
    pub refused: u64,
    /// The most attempts in ten seconds.
    pub peak: u64,
}

impl Point {
    /// Whether so much was refused that it is no accident.
    pub const fn is_trouble(&self) -> bool {
        self.refused >= REFUSED_LEAST && self.refused.saturating_mul(ONE_IN) >= self.attempts
    }
}

/// Counts and limits of one destination over time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The length of a step.
    pub step: i64,
    /// By time; steps without attempts are not there.
    pub points: Vec<Point>,
    /// The first refusal of each step that has one.
    pub refusals: Vec<Refusal>,
    /// How often each account was refused.
    pub accounts: BTreeMap<String, u64>,
    /// By limit, what was in force from when on; none if it was gone.
    limits: BTreeMap<String, Vec<(i64, Option<f64>)>>,
}

/// What sort of limit it is: of which scopes, and which facet of them.
fn kind(key: &str) -> Vec<&str> {
    let (parts, facet) = key.split_once('#').unwrap_or((key, ""));
    let scope = |part| str::split(part, ':').next().unwrap_or_default();
    parts.split('/').map(scope).chain([facet]).collect()
}

impl Series {
    /// That of `destination`.
    pub fn of(history: &History, destination: &str) -> Self {
        let mut series = Self {
            step: i64::from(history.step.max(1)) * SECOND,
            ..Self::default()
        };
        let own = |name: &str| name == destination;
        for slice in history.slices.iter().filter(|it| own(&it.destination)) {
            if let Some(account) = &slice.account {
                *series.accounts.entry(account.clone()).or_default() += slice.refused;
                continue;
            }
            series.points.push(Point {
                at: slice.at,
                attempts: slice.attempts,
                accepted: slice.accepted,
                refused: slice.refused,
                peak: slice.peak,
            });
            series.refusals.extend(slice.refusal.clone());
        }
        for rate in history.rates.iter().filter(|it| own(&it.destination)) {
            let limit = series.limits.entry(rate.limit.clone()).or_default();
            limit.push((rate.at, rate.rate));
        }
        series.points.sort_by_key(|point| point.at);
        series.refusals.sort_by_key(|refusal| refusal.at);
        for limit in series.limits.values_mut() {
            limit.sort_by_key(|(at, _)| *at);
        }
        series
    }

    /// Points that begin in a time.
    pub fn between(&self, from: i64, to: i64) -> impl Iterator<Item = &Point> {
        let points = self.points.iter();
        points.filter(move |point| point.at >= from && point.at < to)
    }

    /// What all limits together allow: those on single accounts are added up,
    /// and the tightest kind counts. None before anything is known, and where
    /// there is no limit any more.
    pub fn limit_at(&self, at: i64) -> Option<f64> {
        let mut kinds: BTreeMap<Vec<&str>, f64> = BTreeMap::new();
        for (key, rates) in &self.limits {
            let known = rates.iter().take_while(|(from, _)| *from <= at).last();
            if let Some((_, Some(rate))) = known {
                *kinds.entry(kind(key)).or_default() += rate;
            }
        }
        kinds.into_values().reduce(f64::min)
    }

    /// The limit from `from` to `to`: since when, and how much; infinite where
    /// the last one is gone. What changed nothing is not there.
    pub fn limit_steps(&self, from: i64, to: i64) -> Vec<(i64, f64)> {
        let times = self.limits.values().flatten().map(|(at, _)| *at);
        let times: BTreeSet<i64> = times.filter(|at| *at > from && *at < to).collect();
        let mut steps: Vec<(i64, f64)> = Vec::new();
        for at in std::iter::once(from).chain(times) {
            let last = steps.last().map(|(_, rate)| *rate);
            let rate = match self.limit_at(at) {
                Some(rate) => rate,
                None if last.is_some() => f64::INFINITY,
                None => continue,
            };
            if last != Some(rate) {
                steps.push((at, rate));
            }
        }
        steps
    }

    /// When too much was refused: from the first refusal to the end of the last
    /// step, each time it happened.
    pub fn spells(&self) -> Vec<(i64, i64)> {
        let mut spells: Vec<(i64, i64)> = Vec::new();
        for point in self.points.iter().filter(|point| point.is_trouble()) {
            let end = point.at + self.step;
            match spells.last_mut() {
                Some((_, last)) if point.at - *last <= APART => *last = end,
                _ => {
                    let mut refusals = self.refusals.iter().map(|refusal| refusal.at);
                    let first = refusals.find(|at| *at >= point.at && *at < end);
                    spells.push((first.unwrap_or(point.at), end));
                }
            }
        }
        spells
    }
}
