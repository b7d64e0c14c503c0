//! Limits as people read them: what [`parse`](super::parse) reads, written.
//!
//! What was parsed is written so that it reads the same again. Numbers that
//! nobody can write as a rate (a learnt window of seven seconds) are said in
//! words instead.

use std::fmt;

use super::spec::{LimitSpec, Period, Rate};
use crate::time::{NANOS_PER_SECOND, Nanos};

/// The units of rates, shortest first.
const UNITS: [(&str, u64); 4] = [
    ("s", NANOS_PER_SECOND),
    ("min", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("day", 86_400 * NANOS_PER_SECOND),
];
/// More decimals than this are not worth reading.
const DECIMALS_MAX: u32 = 6;

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(*self, &UNITS))
    }
}

impl fmt::Display for LimitSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenBucket { rate, burst } => {
                let text = rate.to_string();
                f.write_str(&text)?;
                if text.ends_with("/s") && *burst == rate.default_burst() {
                    return Ok(());
                }
                write!(f, " burst {}", short(*burst))
            }
            Self::LeakyBucket { rate } => write!(f, "{rate} spaced"),
            Self::SlidingWindow { count, window } => {
                let (count, per) = (*count, *window);
                // A rate per second would read as a bucket.
                let [_, calendar @ ..] = &UNITS;
                f.write_str(&written(Rate { count, per }, calendar))
            }
            Self::CalendarWindow {
                count,
                period,
                zone,
            } => {
                let unit = match period {
                    Period::Minute => "min",
                    Period::Hour => "h",
                    Period::Day => "day",
                };
                write!(f, "{}/{unit}@{}", short(*count), zone.name)
            }
            Self::Concurrency { slots } => write!(f, "{} concurrent", short(*slots)),
        }
    }
}

/// The rate in the unit that needs no decimals, else in the first that has few.
fn written(rate: Rate, units: &[(&str, u64)]) -> String {
    let whole = units.iter().find(|(_, length)| rate.per.0 == *length);
    if let Some((unit, _)) = whole {
        return format!("{}/{unit}", short(rate.count));
    }
    let decimal = units.iter().find_map(|(unit, length)| {
        let text = decimal(rate.count, rate.per, *length)?;
        Some(format!("{text}/{unit}"))
    });
    decimal.unwrap_or_else(|| format!("{} in any {}", rate.count, rate.per))
}

/// How many there are in `length`, if that takes few decimals.
fn decimal(count: u32, per: Nanos, length: u64) -> Option<String> {
    let count = u128::from(count) * u128::from(length);
    let per = u128::from(per.0.max(1));
    let places = (0..=DECIMALS_MAX).find(|places| (count * 10_u128.pow(*places)) % per == 0)?;
    let scale = 10_u128.pow(places);
    let digits = count * scale / per;
    let (whole, rest) = (digits / scale, digits % scale);
    if places == 0 {
        return u32::try_from(whole).ok().map(short);
    }
    Some(format!("{whole}.{rest:0width$}", width = places as usize))
}

/// `50000` as `50k`.
fn short(count: u32) -> String {
    match count {
        1_000_000.. if count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        10_000.. if count.is_multiple_of(1_000) => format!("{}k", count / 1_000),
        _ => count.to_string(),
    }
}
