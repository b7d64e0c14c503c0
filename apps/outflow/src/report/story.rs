//! All that a report tells, and its headline.

use super::case::{Case, Period};
use super::change::Change;
use super::figures;
use super::material::{Entry, History, MINUTE, SECOND};
use super::series::Series;

/// Destinations that are told one by one.
pub const CASES_MAX: usize = 8;
/// Changes that are listed though no case tells of them.
pub const OTHERS_MAX: usize = 50;

/// One line of the table of all destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Which.
    pub destination: String,
    /// All attempts.
    pub attempts: u64,
    /// Taken.
    pub accepted: u64,
    /// Refused for our rate or standing.
    pub refused: u64,
    /// Put off for other reasons.
    pub deferred: u64,
    /// Refused for good.
    pub bounced: u64,
}

/// All that a report tells.
#[derive(Clone, Debug)]
pub struct Story {
    /// The time that it is about.
    pub period: Period,
    /// When it is told.
    pub now: i64,
    /// Where something happened, the worst first.
    pub cases: Vec<Case>,
    /// How many more destinations there would be to tell of.
    pub untold: usize,
    /// All destinations, the busiest first.
    pub totals: Vec<Total>,
    /// Changes that no case tells of.
    pub others: Vec<Change>,
    /// How many more of these there were.
    pub others_untold: usize,
    /// What was changed before this could not be read, if it is in the period.
    pub missing_before: Option<i64>,
}

/// Destinations worth telling of, the most refused first: too much was refused
/// there, or a rule or an incident speaks of them.
pub fn concerned(history: &History, entries: &[Entry], period: Period) -> Vec<String> {
    let all = totals(history, period);
    let changes = entries.iter().map(Change::of);
    let changes: Vec<Change> = changes.filter(|it| is_within(it, period)).collect();
    let mut found: Vec<(u64, String)> = Vec::new();
    for total in &all {
        let series = Series::of(history, &total.destination);
        let spells = series.spells();
        let troubled = spells
            .iter()
            .any(|(from, to)| *to > period.since && *from < period.until);
        let mut own = changes.iter().filter(|it| it.concerns(&total.destination));
        let is_spoken_of = own.any(|change| {
            let by_rule = change.who.starts_with("rule:") || change.incident.is_some();
            by_rule || change.what == "mitigated"
        });
        if troubled || is_spoken_of {
            found.push((total.refused, total.destination.clone()));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.into_iter().map(|(_, name)| name).collect()
}

fn is_within(change: &Change, period: Period) -> bool {
    change.at >= period.since && change.at < period.until
}

/// What was counted in the period, by destination, the busiest first.
pub fn totals(history: &History, period: Period) -> Vec<Total> {
    let mut totals: std::collections::BTreeMap<&str, Total> = Default::default();
    let within =
        |at: i64| at >= period.since - i64::from(history.step) * 1_000 && at < period.until;
    for slice in history
        .slices
        .iter()
        .filter(|it| it.account.is_none() && within(it.at))
    {
        let total = totals.entry(&slice.destination).or_default();
        total.destination.clone_from(&slice.destination);
        total.attempts += slice.attempts;
        total.accepted += slice.accepted;
        total.refused += slice.refused;
        total.deferred += slice.deferred;
        total.bounced += slice.bounced;
    }
    let mut totals: Vec<Total> = totals.into_values().collect();
    totals.sort_by(|a, b| {
        b.attempts
            .cmp(&a.attempts)
            .then_with(|| a.destination.cmp(&b.destination))
    });
    totals
}

impl Story {
    /// Puts the cases in order: what refused comes first.
    pub fn new(
        period: Period,
        now: i64,
        cases: Vec<Case>,
        untold: usize,
        totals: Vec<Total>,
        entries: &[Entry],
    ) -> Self {
        let mut cases = cases;
        cases.sort_by_key(|case| (case.spells.is_empty(), std::cmp::Reverse(case.refused)));
        let told = |change: &Change| cases.iter().any(|it| it.tells(change));
        let changes = entries.iter().rev().map(Change::of);
        let mut others: Vec<Change> = changes
            .filter(|it| is_within(it, period) && it.matters() && !told(it))
            .collect();
        others.sort_by_key(|change| change.at);
        let others_untold = others.len().saturating_sub(OTHERS_MAX);
        others.truncate(OTHERS_MAX);
        Self {
            period,
            now,
            cases,
            untold,
            totals,
            others,
            others_untold,
            missing_before: None,
        }
    }

    /// Whether nothing was refused that is worth a word.
    pub fn is_quiet(&self) -> bool {
        self.cases.iter().all(|case| case.spells.is_empty())
    }

    /// What happened, where, since when, for how long, in one sentence.
    pub fn headline(&self) -> String {
        match self.cases.first() {
            Some(case) if !case.spells.is_empty() => case.headline(self.now),
            _ => self.quiet_headline(),
        }
    }

    fn quiet_headline(&self) -> String {
        let attempts: u64 = self.totals.iter().map(|total| total.attempts).sum();
        let refused: u64 = self.totals.iter().map(|total| total.refused).sum();
        let from = figures::clock(self.period.since, self.now);
        let to = figures::clock(self.period.until, self.now);
        if attempts == 0 {
            return format!("Nothing was sent between {from} and {to}.");
        }
        format!(
            "Nothing went wrong between {from} and {to}: {} of {} refused ({}).",
            crate::cli::plain::count(refused),
            crate::cli::plain::counted(attempts, "attempt was", "attempts were"),
            figures::share(refused, attempts)
        )
    }
}

impl Case {
    /// What happened here, in one sentence.
    pub fn headline(&self, now: i64) -> String {
        let (Some(start), Some(end)) = (self.start(), self.last_refused()) else {
            return format!("{} refused nothing that is worth a word.", self.destination);
        };
        let mut text = format!(
            "{} started to refuse at {}, up to {} of what was sent to it",
            self.destination,
            figures::clock(start, now),
            figures::share(self.worst.0, self.worst.1),
        );
        match (self.is_ongoing, self.spells.len()) {
            (true, _) => text.push_str(", and still does"),
            (false, 1) => text.push_str(&format!(", for {}", figures::length(end - start))),
            (false, times) => text.push_str(&format!(
                ", {times} times within {}",
                figures::length(end - start)
            )),
        }
        match &self.mitigation {
            Some(change) if change.at - start < 2 * SECOND => {
                text.push_str(&format!("; {} answered at once", change.who));
            }
            Some(change) => {
                let after = figures::length(change.at - start);
                text.push_str(&format!("; {} answered after {after}", change.who));
            }
            None => text.push_str("; nobody and no rule slowed down"),
        }
        if let Some((_, lowest)) = self.lowest
            && let Some(before) = self.limit_before.filter(|before| lowest < *before)
        {
            let (before, lowest) = (figures::rate(before), figures::rate(lowest));
            text.push_str(&format!(", and the rate went from {before} to {lowest}"));
        }
        match self.recovered {
            Some(at) if at - end < MINUTE && self.mitigation.is_none() => {}
            Some(at) => {
                let after = figures::length(at - start);
                text.push_str(&format!("; all was as before after {after}"));
            }
            None if self.is_ongoing => {}
            None => text.push_str("; it is not back to what it was yet"),
        }
        text.push('.');
        text
    }
}
