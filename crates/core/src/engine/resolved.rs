//! What domains were just found to resolve to.
//!
//! Whoever resolves domains remembers the answers, and there they grow old. The
//! engine remembers the last ones for a moment, so that messages that were
//! submitted before their sender knew the answer find the flow of those before
//! them instead of opening one flow each.

use std::collections::{BTreeMap, VecDeque};

use crate::destination::Destination;
use crate::name::Name;
use crate::time::{Mono, Nanos};

/// For so long.
const KEPT: Nanos = Nanos::from_secs(60);
/// So many at most.
const KEPT_MAX: usize = 16_384;

/// The last answers.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    known: BTreeMap<Name, (Destination, Mono)>,
    /// In the order of their coming.
    order: VecDeque<(Mono, Name)>,
}

impl Resolved {
    pub fn note(&mut self, now: Mono, domain: Name, destination: Destination) {
        self.forget(now);
        self.known.insert(domain.clone(), (destination, now));
        self.order.push_back((now, domain));
    }

    /// What a domain was found to resolve to a moment ago.
    pub fn find(&self, now: Mono, domain: &Name) -> Option<&Destination> {
        let (destination, at) = self.known.get(domain)?;
        (now.since(*at) < KEPT).then_some(destination)
    }

    fn forget(&mut self, now: Mono) {
        while let Some((at, _)) = self.order.front()
            && (now.since(*at) >= KEPT || self.order.len() >= KEPT_MAX)
            && let Some((at, domain)) = self.order.pop_front()
        {
            // It may have been found again since.
            if self.known.get(&domain).is_some_and(|(_, of)| *of == at) {
                self.known.remove(&domain);
            }
        }
    }
}
