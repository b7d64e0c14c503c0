//! Attempts by destination. The first so many destinations have a name of
//! their own, the rest are `other`: however many hosts there are, the page of
//! metrics stays small.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use outflow_core::destination::Destination;
use outflow_core::message::Channel;

use crate::catalogue::AttemptOutcome;
use crate::sink::Slot;

/// What everything beyond a bound is called.
pub(crate) const OTHER: &str = "other";

type Counts = [[AtomicU64; AttemptOutcome::ALL.len()]; Channel::ALL.len()];

/// Attempts by destination.
#[derive(Debug)]
pub(crate) struct Destinations {
    /// By slot; the first is `other`.
    counts: Box<[Counts]>,
    /// Looked at once per flow, never per message.
    names: Mutex<BTreeMap<Destination, Slot>>,
}

impl Destinations {
    /// Counters for so many destinations, at most 10,000, and the rest.
    pub fn new(max: usize) -> Self {
        let slots = 1 + max.min(10_000);
        Self {
            counts: (0..slots).map(|_| Counts::default()).collect(),
            names: Mutex::default(),
        }
    }

    /// The slot of a destination. One that has no name yet gets one, while
    /// there are any.
    pub fn slot(&self, destination: &Destination) -> Slot {
        // A domain in its waiting room is not tried; its name would be wasted.
        if !destination.is_resolved() {
            return Slot::OTHER;
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&slot) = names.get(destination) {
            return slot;
        }
        match u16::try_from(names.len() + 1) {
            Ok(next) if usize::from(next) < self.counts.len() => {
                names.insert(destination.clone(), Slot(next));
                Slot(next)
            }
            _ => Slot::OTHER,
        }
    }

    /// Counts an attempt.
    pub fn count(&self, slot: Slot, channel: Channel, outcome: AttemptOutcome) {
        let counts = self.counts.get(usize::from(slot.0));
        let count = counts
            .and_then(|counts| counts.get(channel as usize))
            .and_then(|counts| counts.get(outcome as usize));
        if let Some(count) = count {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Calls `each` with channel, name, outcome and count, where there is one.
    pub fn read(&self, mut each: impl FnMut(Channel, &str, AttemptOutcome, u64)) {
        let names: Vec<(String, Slot)> = {
            let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            let named = names.iter().map(|(name, &slot)| (name.to_string(), slot));
            named.chain([(OTHER.to_owned(), Slot::OTHER)]).collect()
        };
        for (name, slot) in names {
            let Some(counts) = self.counts.get(usize::from(slot.0)) else {
                continue;
            };
            for (channel, counts) in Channel::ALL.into_iter().zip(counts) {
                for (outcome, count) in AttemptOutcome::ALL.into_iter().zip(counts) {
                    let count = count.load(Relaxed);
                    if count > 0 {
                        each(channel, &name, outcome, count);
                    }
                }
            }
        }
    }
}
