//! Where a sender stands in its plan.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::plan::{Plan, Quota};
use crate::time::{NANOS_PER_SECOND, Wall};

const DAY_NANOS: i64 = 86_400 * NANOS_PER_SECOND as i64;
const MILLION: u128 = 1_000_000;

/// What a day must hold to in order to count. Shares are in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Of the quota, at least so much must be used.
    pub used: u32,
    /// Of attempts, at most so many may be put off.
    pub deferred: u32,
    /// Of attempts, at most so many may bounce.
    pub bounced: u32,
    /// Of accepted messages, at most so many may be complained of.
    pub complained: u32,
}

/// Half of the quota used; 5 % put off, 2 % bounced, 0.1 % complained of.
impl Default for Bar {
    fn default() -> Self {
        Self {
            used: 500_000,
            deferred: 50_000,
            bounced: 20_000,
            complained: 1_000,
        }
    }
}

/// What was counted of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Messages that were handed over.
    pub attempts: u64,
    /// Those that were taken.
    pub accepted: u64,
    /// Those that were put off.
    pub deferred: u64,
    /// Those that bounced.
    pub bounced: u64,
    /// Those that were complained of.
    pub complained: u64,
}

impl Counted {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            attempts: self.attempts + other.attempts,
            accepted: self.accepted + other.accepted,
            deferred: self.deferred + other.deferred,
            bounced: self.bounced + other.bounced,
            complained: self.complained + other.complained,
        }
    }

    /// Whether nothing happened.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What a day was worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Which day of the plan, from 0.
    pub day: u32,
    /// Which day of the calendar, counted from 1970-01-01.
    pub date: i64,
    /// Its quota.
    pub quota: u32,
    /// What was counted.
    pub counted: Counted,
    /// Whether the plan went on.
    pub good: bool,
    /// Why, or why not.
    pub why: String,
}

/// Where a sender stands in its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Which plan.
    pub plan: String,
    /// Which day of it, from 0; as many as it has when it is over.
    pub day: u32,
    /// Which day of the calendar, counted from 1970-01-01.
    pub date: i64,
    /// What was counted on it so far.
    pub counted: Counted,
    /// Whether more was to be sent than it allowed.
    #[serde(default)]
    pub was_full: bool,
    /// When it began.
    pub started_at: Wall,
    /// The day before.
    pub yesterday: Option<Verdict>,
}

/// The day of the calendar.
const fn date(now: Wall) -> i64 {
    now.0.div_euclid(DAY_NANOS)
}

impl Progress {
    /// At the beginning of a plan, or further on.
    pub fn new(plan: &Plan, day: u32, now: Wall) -> Self {
        Self {
            plan: plan.name.clone(),
            day: day.min(plan.days()),
            date: date(now),
            counted: Counted::default(),
            was_full: false,
            started_at: now,
            yesterday: None,
        }
    }

    /// What may be sent today; none if the plan is over.
    pub fn quota(&self, plan: &Plan) -> Option<Quota> {
        plan.quota(self.day)
    }

    /// More was to be sent today than the plan allowed. Whether that is new.
    pub const fn note_full(&mut self) -> bool {
        !std::mem::replace(&mut self.was_full, true)
    }

    /// The day of the plan after one of this worth.
    fn next(&self, plan: &Plan, worth: Worth, counted: &Counted) -> u32 {
        match worth {
            Worth::Good { growth } if plan.adapts => {
                plan.further(self.day, counted.accepted * growth / 10)
            }
            Worth::Good { .. } => self.day + 1,
            Worth::Bad if plan.adapts => plan.back(self.day),
            Worth::Bad | Worth::Doubtful => self.day,
        }
    }

    /// Adds what was counted since the last call. If a day has ended, it is
    /// judged; a day on which nobody looked does not count. What was counted
    /// across midnight is the old day's.
    pub fn go_on(&mut self, plan: &Plan, bar: &Bar, now: Wall, more: Counted) -> Option<Verdict> {
        self.counted = self.counted.plus(more);
        let today = date(now);
        // A clock that was set back tries the day again.
        if today <= self.date {
            return None;
        }
        let quota = self.quota(plan)?;
        let counted = std::mem::take(&mut self.counted);
        let was_full = std::mem::take(&mut self.was_full);
        let (worth, why) = judge(quota, bar, &counted, was_full);
        let next = self.next(plan, worth, &counted);
        let then = match next.cmp(&self.day) {
            Ordering::Greater => "",
            Ordering::Equal => ": the day is tried again",
            Ordering::Less => ": the plan goes back a step",
        };
        let verdict = Verdict {
            day: self.day,
            date: self.date,
            quota: quota.day,
            counted,
            good: matches!(worth, Worth::Good { .. }),
            why: format!("{why}{then}"),
        };
        self.day = next;
        self.date = today;
        self.yesterday = Some(verdict.clone());
        Some(verdict)
    }
}

/// What a day was worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    /// It went well; tomorrow may be so many times what was taken, in tenths.
    Good { growth: u64 },
    /// Too little was sent to tell.
    Doubtful,
    /// Too much was refused, or complained of.
    Bad,
}

/// Of what was taken on a day without fault.
const GROWTH_MOST: u64 = 20;
/// Of what was taken on a day that was close to the bar.
const GROWTH: u64 = 15;

/// What a day was worth, and why.
fn judge(quota: Quota, bar: &Bar, counted: &Counted, was_full: bool) -> (Worth, String) {
    let Counted {
        attempts,
        accepted,
        deferred,
        bounced,
        complained,
    } = *counted;
    let share = |part: u64, whole: u64, most: u32| {
        u128::from(part) * MILLION > u128::from(most) * u128::from(whole)
    };
    let faults = [
        (
            share(deferred, attempts, bar.deferred),
            deferred,
            attempts,
            "put off",
        ),
        (
            share(bounced, attempts, bar.bounced),
            bounced,
            attempts,
            "bounced",
        ),
        (
            share(complained, accepted, bar.complained),
            complained,
            accepted,
            "complained of",
        ),
    ];
    if let Some((_, part, whole, what)) = faults.into_iter().find(|(is_so, ..)| *is_so) {
        return (Worth::Bad, format!("{part} of {whole} were {what}"));
    }
    let said = format!("{attempts} of {} were sent", quota.day);
    let is_used = u128::from(attempts) * MILLION >= u128::from(bar.used) * u128::from(quota.day);
    // Who sent all that an hour allowed could not have sent more.
    let was_wanted = was_full && attempts > 0;
    if !is_used && !was_wanted {
        return (Worth::Doubtful, format!("{said}, too few to tell"));
    }
    let is_close = share(deferred, attempts, bar.deferred / 2)
        || share(bounced, attempts, bar.bounced / 2)
        || share(complained, accepted, bar.complained / 2);
    let growth = if is_close { GROWTH } else { GROWTH_MOST };
    (Worth::Good { growth }, format!("{said}, and went well"))
}
