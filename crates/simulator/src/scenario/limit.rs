//! A limit as data.

use jiff::tz::TimeZone;
use outflow_core::limit::spec::{LimitSpec, Period, Rate, Zone};
use outflow_core::name::Name;
use serde::Deserialize;

use crate::units::{RateText, Span};

/// Algorithm and numbers of one limit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum LimitData {
    /// A token bucket, or a leaky one if its rate is `spaced`.
    Bucket {
        /// How fast.
        rate: RateText,
        /// How many at once; a tenth of a second's worth if not given.
        burst: Option<u32>,
    },
    /// At most `count` in any `window`.
    Sliding {
        /// How many.
        count: u32,
        /// In any stretch of this length.
        window: Span,
    },
    /// At most `count` from boundary to boundary.
    Calendar {
        /// How many.
        count: u32,
        /// From when to when.
        period: PeriodText,
        /// Whose calendar; UTC if not given.
        zone: Option<String>,
    },
    /// At most `slots` in flight.
    Concurrency {
        /// How many.
        slots: u32,
    },
}

/// The periods of a calendar window, by their words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeriodText {
    /// From one full minute to the next.
    Minute,
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
}

impl From<PeriodText> for Period {
    fn from(text: PeriodText) -> Self {
        match text {
            PeriodText::Minute => Self::Minute,
            PeriodText::Hour => Self::Hour,
            PeriodText::Day => Self::Day,
        }
    }
}

impl LimitData {
    /// The limit that this describes.
    pub fn spec(&self) -> Result<LimitSpec, String> {
        match self {
            Self::Bucket { rate, burst } => bucket(*rate, *burst),
            Self::Sliding { count, window } => {
                positive(*count, "count")?;
                positive(u32::from(window.0.0 > 0), "window")?;
                Ok(LimitSpec::SlidingWindow {
                    count: *count,
                    window: window.0,
                })
            }
            Self::Calendar {
                count,
                period,
                zone,
            } => {
                positive(*count, "count")?;
                let name = zone.as_deref().unwrap_or("UTC");
                let rules =
                    TimeZone::get(name).map_err(|_| format!("there is no time zone {name:?}"))?;
                Ok(LimitSpec::CalendarWindow {
                    count: *count,
                    period: (*period).into(),
                    zone: Zone {
                        name: Name::from(name),
                        rules,
                    },
                })
            }
            Self::Concurrency { slots } => {
                positive(*slots, "slots")?;
                Ok(LimitSpec::Concurrency { slots: *slots })
            }
        }
    }
}

/// The bucket of a rate, spaced or not.
pub fn bucket(text: RateText, burst: Option<u32>) -> Result<LimitSpec, String> {
    let rate: Rate = text.rate;
    if text.spaced {
        return match burst {
            None | Some(1) => Ok(LimitSpec::LeakyBucket { rate }),
            Some(_) => Err("a spaced rate has no burst".to_owned()),
        };
    }
    let burst = burst.unwrap_or_else(|| rate.default_burst());
    positive(burst, "burst")?;
    Ok(LimitSpec::TokenBucket { rate, burst })
}

fn positive(number: u32, what: &str) -> Result<(), String> {
    if number == 0 {
        return Err(format!("{what} must be above 0"));
    }
    Ok(())
}
