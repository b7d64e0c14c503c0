//! After idling, a key goes up from what it recently did.
//!
//! A rate that was borne in the morning is not borne at once in the evening by
//! a far end that saw nothing all day. What flows is at most twice the highest
//! rate of the last while; being used, it doubles each minute.

use super::MINUTE;
use crate::time::NANOS_PER_SECOND;

/// How much of what was achieved is still believed a span later.
const FADES: f64 = 0.9;
/// Beyond so many silent spans all is forgotten.
const SPANS_MAX: u64 = 64;
/// Idling never costs more than this share of the rate.
const LEAST: f64 = 1.0 / 16.0;

/// What was recently achieved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Surge {
    /// In messages a second.
    pub(super) recent: f64,
    /// Sent in the span that began at `since`.
    pub(super) count: u32,
    pub(super) since: u64,
}

impl Surge {
    /// Nobody has sent yet: the start is believed.
    pub(super) fn new(start: f64) -> Self {
        Self {
            recent: start,
            count: 0,
            since: 0,
        }
    }

    /// Long enough to hold ten messages.
    fn span(rate: f64) -> u64 {
        let ten = 10.0 / rate.max(1e-6) * NANOS_PER_SECOND as f64;
        (ten as u64).max(MINUTE)
    }

    /// The spans that are over at `tick`, folded in.
    fn rolled(self, tick: u64, rate: f64) -> Self {
        let span = Self::span(rate);
        let over = tick.saturating_sub(self.since) / span;
        if over == 0 {
            return self;
        }
        let seconds = span as f64 / NANOS_PER_SECOND as f64;
        let mut recent = (self.recent * FADES).max(f64::from(self.count) / seconds);
        for _ in 1..over.min(SPANS_MAX) {
            recent *= FADES;
        }
        Self {
            recent,
            count: 0,
            since: self.since.saturating_add(over.saturating_mul(span)),
        }
    }

    /// A message was sent.
    pub(super) fn sent(&mut self, tick: u64, rate: f64) {
        *self = self.rolled(tick, rate);
        self.count = self.count.saturating_add(1);
    }

    /// The most that may flow.
    pub(super) fn most(&self, tick: u64, rate: f64) -> f64 {
        (2.0 * self.rolled(tick, rate).recent).max(LEAST * rate)
    }
}
