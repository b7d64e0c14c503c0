//! What can be seen of a limit without taking anything.

use super::Throttle;
use super::entry;
use super::request::Key;
use crate::class::Class;
use crate::limit::Until;
use crate::limit::need::Need;
use crate::limit::spec::Shape;
use crate::time::{Nanos, Now};

/// One limit as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its kind, capacity and rate.
    pub shape: Shape,
    /// What it would grant at once.
    pub available: u64,
    /// How long until it has all it can hold; nothing if nobody knows.
    pub full_in: Nanos,
}

impl Throttle {
    /// What is known of a key; none if nothing is.
    pub fn look(&self, now: &Now, key: &Key<'_>) -> Option<Look> {
        let hash = self
            .index
            .hash([key.space, key.name], entry::number(key.facet));
        let place = self.index.find(hash, |place| {
            let entry = self.entries.get(place);
            entry.is_some_and(|entry| entry.is(key))
        })?;
        let limit = &self.entries.get(place)?.limit;
        let whole = Need::whole(limit.most());
        let full_in = match limit.until(now, Class::Critical, whole) {
            Until::At(at) => at.since(now.mono),
            Until::Now | Until::Released | Until::Granted | Until::Never => Nanos::ZERO,
        };
        Some(Look {
            shape: limit.shape(),
            available: limit.available(now),
            full_in,
        })
    }
}
