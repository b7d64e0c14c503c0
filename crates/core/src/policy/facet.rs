//! Which of several limits on the same thing is meant.
//!
//! A facet is part of a limit's name, so it never says how much: `600/min`
//! that becomes `900/min` goes on counting where it was. How long a window is,
//! and whose calendar it follows, is what the limit *is*, and is said.

use std::fmt;
use std::str::FromStr;

use crate::limit::spec::{LimitSpec, Period};
use crate::name::Name;
use crate::time::{NANOS_PER_SECOND, Nanos};

const MINUTE: Nanos = Nanos::from_secs(60);
const HOUR: Nanos = Nanos::from_secs(3_600);
const DAY: Nanos = Nanos::from_secs(86_400);

/// Which of several limits on the same thing is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Facet {
    /// The rate, bucket or spaced: written as nothing.
    #[default]
    Rate,
    /// A second, third, ... rate on the same thing: `#rate2`.
    FurtherRate(u32),
    /// What is in flight: `#concurrency`.
    Concurrency,
    /// Any stretch of this length: `#minute`, `#hour`, `#day`, `#90s`.
    Window(Nanos),
    /// From boundary to boundary of a calendar: `#day@America/Los_Angeles`.
    Calendar(Period, Name),
    /// What the far end was found to take: `#learnt`.
    Learnt,
    /// No limit: whether its breaker is open, as the journal calls it:
    /// `#breaker`.
    Breaker,
    /// No limit: what it keeps to while others of its pool are blocked, as the
    /// journal calls it: `#kept`.
    Kept,
}

impl Facet {
    /// The facet that a limit of this kind is; for rates always the first.
    pub fn of(spec: &LimitSpec) -> Self {
        match spec {
            LimitSpec::TokenBucket { .. } | LimitSpec::LeakyBucket { .. } => Self::Rate,
            LimitSpec::SlidingWindow { window, .. } => Self::Window(*window),
            LimitSpec::CalendarWindow { period, zone, .. } => {
                Self::Calendar(*period, zone.name.clone())
            }
            LimitSpec::Concurrency { .. } => Self::Concurrency,
        }
    }

    /// Whether it is a rate, the first or a further one.
    pub const fn is_rate(&self) -> bool {
        matches!(self, Self::Rate | Self::FurtherRate(_))
    }
}

const fn word(period: Period) -> &'static str {
    match period {
        Period::Minute => "minute",
        Period::Hour => "hour",
        Period::Day => "day",
    }
}

/// Prints what stands behind the `#`; nothing for the first rate.
impl fmt::Display for Facet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate => Ok(()),
            Self::FurtherRate(nth) => write!(f, "rate{nth}"),
            Self::Concurrency => f.write_str("concurrency"),
            Self::Window(MINUTE) => f.write_str(word(Period::Minute)),
            Self::Window(HOUR) => f.write_str(word(Period::Hour)),
            Self::Window(DAY) => f.write_str(word(Period::Day)),
            Self::Window(length) => write_exactly(f, *length),
            Self::Calendar(period, zone) => write!(f, "{}@{zone}", word(*period)),
            Self::Learnt => f.write_str("learnt"),
            Self::Breaker => f.write_str("breaker"),
            Self::Kept => f.write_str("kept"),
        }
    }
}

const UNITS: [(&str, u64); 4] = [
    ("s", NANOS_PER_SECOND),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Unlike the figure for people, this one must tell any two lengths apart.
fn write_exactly(f: &mut fmt::Formatter<'_>, length: Nanos) -> fmt::Result {
    let whole = UNITS
        .iter()
        .find(|(_, unit)| length.0.is_multiple_of(*unit));
    let (suffix, unit) = whole.unwrap_or(&("ns", 1));
    write!(f, "{}{suffix}", length.0 / unit)
}

/// A facet that is none of those that limits have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown facet {0:?}: use concurrency, minute, hour, day, a length as in 90s, \
     a calendar as in day@UTC, rate2 for a second rate, or learnt"
)]
pub struct UnknownFacet(pub String);

impl FromStr for Facet {
    type Err = UnknownFacet;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let period = |text| match text {
            "minute" => Some((Period::Minute, MINUTE)),
            "hour" => Some((Period::Hour, HOUR)),
            "day" => Some((Period::Day, DAY)),
            _ => None,
        };
        match text {
            "concurrency" => return Ok(Self::Concurrency),
            "learnt" => return Ok(Self::Learnt),
            "breaker" => return Ok(Self::Breaker),
            "kept" => return Ok(Self::Kept),
            _ => {}
        }
        let facet = match text.split_once('@') {
            Some((word, zone)) if !zone.is_empty() => {
                period(word).map(|(period, _)| Self::Calendar(period, Name::from(zone)))
            }
            Some(_) => None,
            None => match period(text) {
                Some((_, length)) => Some(Self::Window(length)),
                None => further_rate(text).or_else(|| window(text)),
            },
        };
        facet.ok_or_else(|| UnknownFacet(text.to_owned()))
    }
}

fn further_rate(text: &str) -> Option<Facet> {
    let nth = text.strip_prefix("rate")?.parse().ok()?;
    (nth >= 2).then_some(Facet::FurtherRate(nth))
}

fn window(text: &str) -> Option<Facet> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let suffix = text.strip_prefix(digits)?;
    let (_, unit) = UNITS.iter().find(|(word, _)| *word == suffix)?;
    let length = digits.parse::<u64>().ok()?.checked_mul(*unit)?;
    (length > 0).then_some(Facet::Window(Nanos(length)))
}
