//! What the server answered, as far as a report needs it. Times are
//! milliseconds since 1970.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A second.
pub const SECOND: i64 = 1_000;
/// A minute.
pub const MINUTE: i64 = 60 * SECOND;
/// An hour.
pub const HOUR: i64 = 60 * MINUTE;

/// `GET /history`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct History {
    /// The length of a step in seconds.
    pub step: u32,
    /// What was counted.
    pub slices: Vec<Slice>,
    /// What was in force.
    pub rates: Vec<Rate>,
    /// Where to go on.
    pub next_since: Option<String>,
}

/// What was counted at a destination in one step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Slice {
    /// When it begins.
    #[serde(deserialize_with = "time")]
    pub at: i64,
    /// Where.
    pub destination: String,
    /// None for all together.
    pub account: Option<String>,
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
    /// The most attempts in ten seconds.
    pub peak: u64,
    /// The first refusal.
    pub refusal: Option<Refusal>,
}

/// A refusal, as an example.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// When.
    #[serde(deserialize_with = "time")]
    pub at: i64,
    /// What it was about.
    pub class: String,
    /// The status, where there was one.
    pub code: Option<u16>,
    /// What was said.
    pub said: String,
}

/// A rate that is in force from a time on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Rate {
    /// From when on.
    #[serde(deserialize_with = "time")]
    pub at: i64,
    /// Of which limit.
    pub limit: String,
    /// Where.
    pub destination: String,
    /// Messages per second; none if the limit is gone.
    pub rate: Option<f64>,
}

/// An entry of `GET /audit`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// When.
    #[serde(deserialize_with = "time")]
    pub at: i64,
    /// Who.
    pub actor: String,
    /// Did what.
    pub action: String,
    /// To what.
    pub target: String,
    /// From what, to what, why.
    pub detail: Value,
}

/// A time that cannot be read is one long ago: a report with a hole is better
/// than none.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let at = text.parse::<Timestamp>();
    Ok(at.map_or(0, |at| at.as_millisecond()))
}
