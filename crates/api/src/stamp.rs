//! Times as they are written in requests and answers: RFC 3339, in UTC.

use jiff::Timestamp;
use outflow_core::time::Wall;
use outflow_ports::bounded;
pub use outflow_ports::bounded::NotATime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

/// A time, written as `2026-01-31T12:00:00.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-01-31T12:00:00Z")]
pub struct Stamp(pub Wall);

impl Stamp {
    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Result<Self, NotATime> {
        bounded::time(text).map(Self)
    }

    /// A time that may never come.
    pub fn unless_never(wall: Wall) -> Option<Self> {
        (wall != Wall::NEVER).then_some(Self(wall))
    }

    /// Seconds since the Unix epoch.
    pub const fn unix_seconds(self) -> i64 {
        self.0.0.div_euclid(1_000_000_000)
    }
}

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stamp = Timestamp::from_nanosecond(i128::from(self.0.0)).unwrap_or(Timestamp::MAX);
        write!(f, "{stamp:.3}")
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
