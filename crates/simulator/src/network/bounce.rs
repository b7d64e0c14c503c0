//! Bounces that come after the message was accepted.

use outflow_core::time::Nanos;
use serde::Deserialize;

use super::latency::Latency;
use crate::random::Random;
use crate::units::Share;

/// Which share bounces late, and how late.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateBounces {
    /// The share of accepted messages.
    pub share: Share,
    /// How long after acceptance.
    pub after: Latency,
}

impl LateBounces {
    /// Whether and when this message bounces.
    pub fn draw(&self, random: &mut Random) -> Option<Nanos> {
        random.chance(self.share.0).then(|| self.after.draw(random))
    }
}
