//! How much a sender may send on which day of its warm-up.

use serde::Deserialize;

const BUILT_IN: &str = include_str!("../../data/warm-up.toml");

/// The part of a day's quota that an hour gets, if the plan counts by day: else
/// a day's quota would be gone in a minute.
const HOUR_PART: u32 = 10;

/// How much may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// In a day of UTC.
    pub day: u32,
    /// In any hour.
    pub hour: u32,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it is called.
    pub name: String,
    /// Where it comes from.
    pub comment: String,
    /// Whether it goes on as fast as a day went well, and back after a bad one;
    /// else day by day.
    pub adapts: bool,
    /// By day.
    days: Vec<Quota>,
}

/// What steps are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Messages in an hour.
    Hour,
    /// Messages in a day.
    Day,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    comment: String,
    per: Per,
    #[serde(default = "one")]
    hold: usize,
    #[serde(default)]
    adaptive: bool,
    steps: Vec<u32>,
}

const fn one() -> usize {
    1
}

#[derive(Deserialize)]
struct File {
    plan: Vec<Written>,
}

impl Plan {
    /// The plans that come with the program.
    pub fn built_in() -> Vec<Self> {
        let file: File = toml::from_str(BUILT_IN).expect("the file that is compiled in is TOML");
        file.plan.into_iter().map(Self::of).collect()
    }

    /// The plan that comes with the program by this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::built_in().into_iter().find(|plan| plan.name == name)
    }

    /// A plan of so many messages a day.
    pub fn by_day(name: &str, steps: &[u32]) -> Self {
        Self::of_steps(name, Per::Day, steps)
    }

    /// A plan of one step a day.
    pub fn of_steps(name: &str, per: Per, steps: &[u32]) -> Self {
        Self {
            name: name.to_owned(),
            comment: String::new(),
            adapts: false,
            days: steps.iter().map(|step| quota(per, *step)).collect(),
        }
    }

    fn of(written: Written) -> Self {
        let Written { per, hold, .. } = written;
        let steps = written.steps.iter();
        let days = steps.flat_map(|step| std::iter::repeat_n(quota(per, *step), hold.max(1)));
        Self {
            name: written.name,
            comment: written.comment,
            adapts: written.adaptive,
            days: days.collect(),
        }
    }

    /// How much may be sent on a day, the first of which is 0; none when the
    /// plan is over.
    pub fn quota(&self, day: u32) -> Option<Quota> {
        self.days.get(day as usize).copied()
    }

    /// The first day of the next step, if that is within `most` messages; else
    /// the next day.
    pub(super) fn further(&self, day: u32, most: u64) -> u32 {
        let own = self.quota(day).map_or(0, |quota| quota.day);
        let later = self.days.iter().skip(day as usize);
        let same = later.take_while(|quota| quota.day == own).count();
        let next = day.saturating_add(u32::try_from(same).unwrap_or(u32::MAX));
        // The last step leads to the end.
        let size = self.quota(next).map_or(own, |quota| quota.day);
        match u64::from(size) <= most {
            true => next,
            false => day + 1,
        }
    }

    /// The first day of the step before.
    pub(super) fn back(&self, day: u32) -> u32 {
        let first_of = |size: u32| {
            let place = self.days.iter().position(|quota| quota.day == size);
            place.and_then(|place| u32::try_from(place).ok())
        };
        let own = self.quota(day).map(|quota| quota.day);
        let before = self.days.iter().take(day as usize).rev();
        let mut lower = before.filter(|quota| Some(quota.day) < own);
        let lower = lower.next().map(|quota| quota.day);
        lower.or(own).and_then(first_of).unwrap_or(0)
    }

    /// How many days it has.
    pub fn days(&self) -> u32 {
        u32::try_from(self.days.len()).unwrap_or(u32::MAX)
    }
}

const fn quota(per: Per, step: u32) -> Quota {
    match per {
        Per::Hour => Quota {
            day: step.saturating_mul(24),
            hour: step,
        },
        Per::Day => Quota {
            day: step,
            hour: step.div_ceil(HOUR_PART),
        },
    }
}
