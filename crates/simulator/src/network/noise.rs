//! Failures that have nothing to do with what the sender did.

use outflow_core::reply::{Reply, Stage};
use outflow_core::time::Nanos;
use serde::Deserialize;

use super::spec::Protocol;
use super::{Answer, network, refusal};
use crate::random::Random;
use crate::units::Share;

/// The share of deliveries that fail in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Noise {
    /// Passing troubles of the far end.
    pub temporary: Share,
    /// Refusals in the words of a rate limit, at any rate.
    pub throttled: Share,
    /// No such mailbox.
    pub permanent: Share,
    /// The connection breaks before the message was handed over.
    pub reset: Share,
    /// The message is taken, the answer is lost.
    pub lost_answer: Share,
}

impl Noise {
    /// The failure of this delivery, if it fails.
    pub fn judge(
        &self,
        protocol: Protocol,
        after: Nanos,
        timeout: Nanos,
        random: &mut Random,
    ) -> Option<Answer> {
        if random.chance(self.temporary.0) {
            return Some(refusal(after, protocol.passing_trouble()));
        }
        if random.chance(self.throttled.0) {
            return Some(refusal(after, protocol.too_fast()));
        }
        if random.chance(self.permanent.0) {
            return Some(refusal(after, protocol.no_such_user()));
        }
        if random.chance(self.reset.0) {
            let reset = network(Stage::Sender, "connection reset by peer");
            return Some(refusal(after, reset).closing());
        }
        if random.chance(self.lost_answer.0) {
            let mut answer = refusal(timeout, Reply::Uncertain).closing();
            answer.taken = true;
            return Some(answer);
        }
        None
    }
}
