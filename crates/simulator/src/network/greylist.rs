//! Greylisting: the first attempt to a recipient is put off.
//!
//! Whoever comes back after the given time is known from then on; whoever
//! comes back sooner is put off again.

use std::collections::BTreeMap;

use outflow_core::reply::{Reply, Stage};
use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::random::Random;
use crate::units::{Share, Span};

/// The numbers of a greylist.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GreylistSpec {
    /// How long the first attempt is put off.
    pub delay: Span,
    /// The share of recipients that it applies to.
    #[serde(default = "everybody")]
    pub share: Share,
}

fn everybody() -> Share {
    Share(1.0)
}

/// When each recipient was first written to; nothing for those it spares.
#[derive(Clone, Debug)]
pub struct Greylist {
    spec: GreylistSpec,
    first_seen: BTreeMap<u64, Option<Nanos>>,
}

impl Greylist {
    /// A greylist that knows nobody.
    pub fn new(spec: GreylistSpec) -> Self {
        Self {
            spec,
            first_seen: BTreeMap::new(),
        }
    }

    /// The refusal, if the recipient is not known yet.
    pub fn judge(&mut self, now: Nanos, recipient: u64, random: &mut Random) -> Option<Reply> {
        let share = self.spec.share.0;
        let seen = self
            .first_seen
            .entry(recipient)
            .or_insert_with(|| random.chance(share).then_some(now));
        let first = (*seen)?;
        if now.minus(first) >= self.spec.delay.0 {
            *seen = None;
            return None;
        }
        Some(Reply::said(
            Stage::Recipient,
            450,
            "4.2.0 Greylisted, please try again later",
        ))
    }
}
