//! Accounts that the far end suspends for a while, and tells for how long.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::units::Span;

/// Some accounts are refused for a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuspensionSpec {
    /// When it begins, after the start of the simulation.
    pub at: Span,
    /// How long it lasts.
    pub lasts: Span,
    /// Every how-manieth account it is about; all if 1.
    pub every: u32,
    /// What its `Retry-After` says; the time that is left, if not given.
    pub retry_after: Option<Span>,
}

impl SuspensionSpec {
    /// How long an account that sends now is asked to wait, if it is suspended.
    pub fn asks(&self, now: Nanos, account: u32) -> Option<Nanos> {
        let (from, until) = (self.at.0, self.at.0 + self.lasts.0);
        let is_meant = account.is_multiple_of(self.every.max(1));
        if !is_meant || now < from || now >= until {
            return None;
        }
        Some(self.retry_after.map_or(until.minus(now), |span| span.0))
    }
}
