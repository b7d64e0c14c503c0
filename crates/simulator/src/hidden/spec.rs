//! A provider as data.
//!
//! Nothing in it is a rate: all is relative to the full rate of the run, so
//! that one file serves at 1, 10 and 100 a second.

use outflow_core::time::Nanos;
use serde::Deserialize;

use super::standing::StandingSpec;
use crate::network::quota::QuotaPeriod;
use crate::network::shape::Shape;
use crate::units::{Share, Span};

/// What a provider hides.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSpec {
    /// For the table.
    pub title: String,
    /// The time from a message to its reply.
    #[serde(default = "a_blink")]
    pub latency: Span,
    /// A token bucket at the full rate.
    pub bucket: Option<BucketSpec>,
    /// How the full rate moves over the day.
    #[serde(default)]
    pub shape: Shape,
    /// What a refusal by the bucket leads to.
    pub block: Option<BlockSpec>,
    /// A count that starts anew with the hour or the day.
    pub window: Option<WindowSpec>,
    /// How the full rate follows conduct.
    pub standing: Option<StandingSpec>,
    /// Connections, and messages on each.
    pub connections: Option<ConnectionSpec>,
    /// First attempts are put off for so long.
    pub greylist: Option<Span>,
    /// Refused at random.
    #[serde(default)]
    pub noise: Share,
}

fn a_blink() -> Span {
    Span(Nanos::from_millis(200))
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketSpec {
    /// How much it saves up: so much time's worth, at least one message.
    pub burst: Span,
}

/// A block that a refusal starts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSpec {
    /// How long the first lasts.
    pub first: Span,
    /// How long the longest lasts.
    pub longest: Span,
    /// By how much the next is longer.
    #[serde(default = "one")]
    pub factor: u32,
    /// Whether an attempt during a block starts the next.
    #[serde(default)]
    pub pushed: bool,
    /// Attempts so soon after its start were under way already and are spared.
    #[serde(default)]
    pub spared: Span,
    /// After how long without a block the next is as short as the first.
    pub forgives: Span,
}

fn one() -> u32 {
    1
}

/// A count that starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// With the hour or the day.
    pub per: QuotaPeriod,
    /// How many: so much time's worth at the full rate.
    pub worth: Span,
    /// How many hours the provider's midnight lies after midnight UTC.
    #[serde(default)]
    pub midnight_utc: u8,
}

/// What is borne in connections. The latency of such a provider is what makes
/// them carry exactly the full rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// At the same time.
    pub max: u32,
    /// Messages on each.
    pub messages: u32,
}
