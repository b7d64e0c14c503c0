//! What happened at one destination.

use super::change::{Change, Effect};
use super::material::{HOUR, MINUTE, Refusal, SECOND};
use super::phase::{self, Phase};
use super::series::Series;

/// A limit that is back to this share of what it was counts as recovered.
const BACK: f64 = 0.9;
/// A change may bear a time that is a little before the refusal that it answers:
/// they come from different clocks' ticks.
const SLACK: i64 = 2 * SECOND;
/// A limit that was back for so long is.
const STAYS: i64 = 15 * MINUTE;
/// Changes so long before the first refusal may have led to it.
pub const LED_TO: i64 = 30 * MINUTE;
/// The last seconds of a history may not be written yet.
const UNWRITTEN: i64 = 15 * SECOND;
/// Changes that are told one by one.
pub const CHANGES_MAX: usize = 40;

/// The time that a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// From when on.
    pub since: i64,
    /// Until when.
    pub until: i64,
}

/// How it was sent before the first refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pattern {
    /// Over so long, at most an hour.
    pub length: i64,
    /// Messages per second.
    pub rate: f64,
    /// The same in the busiest ten seconds.
    pub peak: f64,
}

/// What happened at one destination.
#[derive(Clone, Debug)]
pub struct Case {
    /// Which.
    pub destination: String,
    /// Its counts and limits.
    pub series: Series,
    /// What is drawn.
    pub drawn: Period,
    /// Each time that it refused too much.
    pub spells: Vec<(i64, i64)>,
    /// The first refusal of the first time.
    pub first: Option<Refusal>,
    /// Whether it still refused at the end of the period.
    pub is_ongoing: bool,
    /// Attempts while it refused.
    pub attempts: u64,
    /// Those that were refused.
    pub refused: u64,
    /// How it was sent before.
    pub before: Pattern,
    /// The limit before the first refusal.
    pub limit_before: Option<f64>,
    /// The lowest limit since at which anything flowed, and from when on.
    pub lowest: Option<(i64, f64)>,
    /// The largest share that was refused in one step: so many of so many.
    pub worst: (u64, u64),
    /// How many more would have been sent until the end at the rate before.
    pub later: u64,
    /// The change that first made it slower.
    pub mitigation: Option<Change>,
    /// When the limit was back, or it refused no more where no limit changed.
    pub recovered: Option<i64>,
    /// Dead letters of that time.
    pub lost: Option<u64>,
    /// What was changed, in order of time.
    pub changes: Vec<Change>,
    /// Changes from here on are part of it.
    told_from: i64,
    /// How many more changes there were.
    pub untold: usize,
    /// Phases, to be shaded.
    pub phases: Vec<Phase>,
}

impl Case {
    /// What happened at `destination`; `changes` are all of the period.
    pub fn of(destination: &str, series: Series, changes: &[Change], period: Period) -> Self {
        let mut spells = series.spells();
        spells.retain(|(from, to)| *to > period.since && *from < period.until);
        let start = spells.first().map(|(from, _)| *from);
        let end = spells.last().map(|(_, to)| *to);
        let told_from = start.map_or(period.since, |start| start - LED_TO);
        let concerned = changes.iter().filter(|it| it.concerns(destination));
        let concerned = concerned.filter(|it| it.at >= told_from && it.at < period.until);
        // The audit comes newest first; of one moment the order stays.
        let mut own: Vec<Change> = concerned.rev().cloned().collect();
        own.sort_by_key(|change| change.at);
        let is_answer = |change: &&Change| {
            change.effect == Effect::Slower && start.is_some_and(|start| change.at >= start - SLACK)
        };
        let mitigation = own.iter().find(is_answer).cloned();
        let mut case = Self {
            destination: destination.to_owned(),
            drawn: period,
            first: start.and_then(|start| {
                let mut refusals = series.refusals.iter();
                refusals.find(|refusal| refusal.at >= start).cloned()
            }),
            is_ongoing: end.is_some_and(|end| end >= period.until - series.step - UNWRITTEN),
            before: start.map_or_else(Pattern::default, |start| before(&series, start)),
            limit_before: start.and_then(|start| {
                // If it was not seen in time, whoever changed it knew it.
                let told = mitigation.as_ref().and_then(|change| change.from);
                flowing_before(&series, start).or(told)
            }),
            series,
            spells,
            attempts: 0,
            refused: 0,
            lowest: None,
            worst: (0, 0),
            later: 0,
            mitigation,
            recovered: None,
            lost: None,
            changes: own,
            told_from,
            untold: 0,
            phases: Vec::new(),
        };
        if let Some((start, end)) = start.zip(end) {
            case.count(start, end);
            case.follow(start, end, period);
        }
        case.drawn = case.focus(period);
        case.untold = case.changes.len().saturating_sub(CHANGES_MAX);
        case.changes.truncate(CHANGES_MAX);
        case
    }

    /// Whether a change of the period is told here.
    pub fn tells(&self, change: &Change) -> bool {
        change.at >= self.told_from && change.concerns(&self.destination)
    }

    /// When it began.
    pub fn start(&self) -> Option<i64> {
        self.spells.first().map(|(from, _)| *from)
    }

    /// When too much was refused for the last time.
    pub fn last_refused(&self) -> Option<i64> {
        self.spells.last().map(|(_, to)| *to)
    }

    fn count(&mut self, start: i64, end: i64) {
        let from = start - start.rem_euclid(self.series.step);
        for point in self.series.between(from, end) {
            self.attempts += point.attempts;
            self.refused += point.refused;
            let share = |(part, whole): (u64, u64)| part as f64 / whole.max(1) as f64;
            if share((point.refused, point.attempts)) > share(self.worst) {
                self.worst = (point.refused, point.attempts);
            }
        }
    }

    /// Follows the limit from the first refusal to where it is back.
    fn follow(&mut self, start: i64, end: i64, period: Period) {
        let steps = self.series.limit_steps(start, period.until);
        let lower = |a: (i64, f64), b: (i64, f64)| if b.1 < a.1 { b } else { a };
        let flowing = steps.iter().copied();
        let flowing = flowing.filter(|(_, rate)| *rate > 0.0 && rate.is_finite());
        self.lowest = flowing.reduce(lower).or(steps.first().copied());
        self.recovered = match self.limit_before {
            _ if self.is_ongoing => None,
            Some(before) => {
                // A limit far above all that was sent need not come back.
                let used = match self.before.length {
                    0 => before,
                    _ => self.before.peak.min(before),
                };
                let back = back(&steps, BACK * used, period.until);
                back.map(|at| self.used_again(at).max(end))
            }
            None => Some(end),
        };
        let over = self.recovered.unwrap_or(period.until);
        self.phases = phase::of(start, over, &self.changes);
        let points = self.series.between(start - self.series.step, over);
        let accepted: u64 = points.map(|point| point.accepted).sum();
        let usual = self.before.rate * (over - start) as f64 / SECOND as f64;
        self.later = (usual as u64).saturating_sub(accepted);
    }

    /// When as much was taken as before, if that is soon after the limit was
    /// back: a rate is not used at once. If it is not, there was no demand.
    fn used_again(&self, back: i64) -> i64 {
        let step = self.series.step;
        let enough = BACK * self.before.rate * step as f64 / SECOND as f64;
        let mut points = self.series.between(back - step + 1, back + STAYS);
        let again = points.find(|point| point.accepted as f64 >= enough);
        again.map_or(back, |point| point.at.max(back))
    }

    /// The part of the period in which it happened, with what came before and
    /// after.
    fn focus(&self, period: Period) -> Period {
        let changes = self.changes.iter().map(|change| change.at);
        let times = self.start().into_iter().chain(self.recovered);
        let times = times.chain(self.last_refused()).chain(changes);
        let (first, last) = times.fold((i64::MAX, i64::MIN), |(first, last), at| {
            (first.min(at), last.max(at))
        });
        if first > last {
            return period;
        }
        let last = match self.recovered {
            None if !self.spells.is_empty() => period.until,
            _ => last,
        };
        let margin = ((last - first) / 4).clamp(2 * MINUTE, 2 * HOUR);
        Period {
            since: (first - margin).max(period.since.min(first)),
            until: (last + margin).min(period.until),
        }
    }
}

/// From when on the limit is at least `enough` after it fell, and stays so:
/// until the end, or for a while. A trial that is refused is no recovery. If it
/// never fell it always was.
fn back(steps: &[(i64, f64)], enough: f64, until: i64) -> Option<i64> {
    let fell = steps.iter().position(|(_, rate)| *rate < enough);
    let Some(fell) = fell else {
        return steps.first().map(|(at, _)| *at);
    };
    let mut since: Option<i64> = None;
    for (at, rate) in steps.iter().skip(fell) {
        match (since, *rate >= enough) {
            (Some(since), false) if at - since >= STAYS => return Some(since),
            (_, false) => since = None,
            (None, true) => since = Some(*at),
            (Some(_), true) => {}
        }
    }
    since.filter(|since| until > *since)
}

/// The limit just before it began. A few refusals may have stopped the flow
/// before there were enough to count: a stop is no limit, what held before is.
fn flowing_before(series: &Series, start: i64) -> Option<f64> {
    let flows = |rate: &f64| *rate > 0.0 && rate.is_finite();
    let just_before = series.limit_at(start - SECOND);
    let earlier = || {
        let steps = series.limit_steps(start - LED_TO, start);
        steps.iter().map(|(_, rate)| *rate).rfind(flows)
    };
    just_before.filter(flows).or_else(earlier).or(just_before)
}

fn before(series: &Series, start: i64) -> Pattern {
    let until = start - start.rem_euclid(series.step);
    let points: Vec<_> = series.between(until - HOUR, until).collect();
    let began = points.first().map_or(until, |point| point.at);
    let length = until - began;
    if length <= 0 {
        return Pattern::default();
    }
    let attempts: u64 = points.iter().map(|point| point.attempts).sum();
    let peak = points.iter().map(|point| point.peak).max().unwrap_or(0);
    Pattern {
        length,
        rate: attempts as f64 * SECOND as f64 / length as f64,
        peak: peak as f64 / 10.0,
    }
}
