//! Times, rates and shares as people write them in a scenario.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use outflow_core::class::Class;
use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::limit::spec::Rate;
use outflow_core::time::{NANOS_PER_SECOND, Nanos, Wall};
use serde::{Deserialize, Deserializer, de};

/// A text in a scenario that does not read as what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {wanted}")]
pub struct Unreadable {
    text: String,
    wanted: &'static str,
}

fn unreadable(text: &str, wanted: &'static str) -> Unreadable {
    Unreadable {
        text: text.to_owned(),
        wanted,
    }
}

/// The nanoseconds in a unit of time.
fn unit(text: &str) -> Option<u64> {
    Some(match text {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" | "second" => NANOS_PER_SECOND,
        "m" | "min" | "minute" => 60 * NANOS_PER_SECOND,
        "h" | "hour" => 3_600 * NANOS_PER_SECOND,
        "d" | "day" => 86_400 * NANOS_PER_SECOND,
        _ => return None,
    })
}

/// A length of time: `200ms`, `1h`, `90s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Nanos);

impl FromStr for Span {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = "a time such as \"200ms\" or \"1h\"";
        let split = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (count, suffix) = text.split_at(split);
        count
            .parse::<u64>()
            .ok()
            .zip(unit(suffix.trim()))
            .and_then(|(count, unit)| count.checked_mul(unit))
            .map(|nanos| Self(Nanos(nanos)))
            .ok_or_else(|| unreadable(text, wanted))
    }
}

/// So many per so much time: `100/s`, `50k/day`, `40/s spaced`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateText {
    /// The rate.
    pub rate: Rate,
    /// Whether gaps are evened out (a leaky bucket).
    pub spaced: bool,
}

impl FromStr for RateText {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = "a rate such as \"100/s\", \"50k/day\" or \"40/s spaced\"";
        let (plain, spaced) = match text.strip_suffix(" spaced") {
            Some(plain) => (plain, true),
            None => (text, false),
        };
        let read = || {
            let (count, per) = plain.split_once('/')?;
            let (digits, factor) = match count.strip_suffix('k') {
                Some(digits) => (digits, 1_000),
                None => (count, 1),
            };
            let count = digits.parse::<u32>().ok()?.checked_mul(factor)?;
            let per = Nanos(unit(per.trim())?);
            (count > 0).then_some(Rate { count, per })
        };
        read()
            .map(|rate| Self { rate, spaced })
            .ok_or_else(|| unreadable(text, wanted))
    }
}

impl RateText {
    /// How many a second.
    pub fn per_second(&self) -> f64 {
        f64::from(self.rate.count) / self.rate.per.as_secs_f64()
    }
}

impl fmt::Display for RateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spaced = if self.spaced { " spaced" } else { "" };
        match self.rate.per.0 / NANOS_PER_SECOND {
            1 => write!(f, "{}/s{spaced}", self.rate.count),
            60 => write!(f, "{}/min{spaced}", self.rate.count),
            3_600 => write!(f, "{}/hour{spaced}", self.rate.count),
            86_400 => write!(f, "{}/day{spaced}", self.rate.count),
            _ => write!(f, "{} in {}{spaced}", self.rate.count, self.rate.per),
        }
    }
}

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(from)?;
        if (0.0..=1.0).contains(&share) {
            return Ok(Self(share));
        }
        Err(de::Error::custom(format!(
            "{share} is not a share between 0 and 1"
        )))
    }
}

/// A class by its word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassText(pub Class);

impl FromStr for ClassText {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse()
            .map(Self)
            .map_err(|_| unreadable(text, "critical, high, normal or low"))
    }
}

/// A destination as `kind:name`: `isp:google`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DestinationText(pub Destination);

impl FromStr for DestinationText {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = "a destination such as \"isp:google\" or \"host:api.example.com\"";
        let (kind, name) = text
            .split_once(':')
            .ok_or_else(|| unreadable(text, wanted))?;
        [
            DestinationKind::Isp,
            DestinationKind::Carrier,
            DestinationKind::Push,
            DestinationKind::Host,
        ]
        .into_iter()
        .find(|known| known.as_str() == kind && !name.is_empty())
        .map(|kind| Self(Destination::new(kind, name)))
        .ok_or_else(|| unreadable(text, wanted))
    }
}

/// A point of the calendar: `2026-03-02T08:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(pub Wall);

impl FromStr for Moment {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = "a point of time such as \"2026-03-02T08:00:00Z\"";
        text.parse::<Timestamp>()
            .ok()
            .and_then(|it| i64::try_from(it.as_nanosecond()).ok())
            .map(|nanos| Self(Wall(nanos)))
            .ok_or_else(|| unreadable(text, wanted))
    }
}

macro_rules! read_from_text {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

read_from_text!(Span, RateText, ClassText, DestinationText, Moment);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_read_as_people_write_them() {
        assert_eq!("200ms".parse(), Ok(Span(Nanos::from_millis(200))));
        assert_eq!("1h".parse(), Ok(Span(Nanos::from_secs(3_600))));
        let daily: RateText = "50k/day".parse().unwrap();
        assert_eq!((daily.rate.count, daily.spaced), (50_000, false));
        assert_eq!(daily.to_string(), "50000/day");
        let spaced: RateText = "40/s spaced".parse().unwrap();
        assert_eq!(spaced.to_string(), "40/s spaced");
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for text in ["", "5", "s", "5 parsecs", "99999999999999d"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        for text in ["100", "/s", "0/s", "10/fortnight", "-1/s"] {
            assert!(text.parse::<RateText>().is_err(), "{text}");
        }
        let error = "isp".parse::<DestinationText>().unwrap_err().to_string();
        assert!(error.contains("isp:google"), "{error}");
    }
}
