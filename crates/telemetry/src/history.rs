//! What was sent where lately: counts by destination since somebody last took
//! them, and for each account that was refused the first refusal.
//!
//! An attempt costs a few relaxed additions, as in the metrics. Only a refusal
//! takes a lock, which whoever takes the counts holds for moments, and only the
//! first of an account allocates.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use outflow_core::message_id::MessageId;
use outflow_core::outcome::ReplyClass;
use outflow_core::time::Wall;

use crate::catalogue::{AttemptOutcome, Attempted, Event};
use crate::destinations::OTHER;
use crate::sink::{Sink, Slot};

/// Accounts told apart between two takings, over all destinations.
const ACCOUNTS_MAX: usize = 10_000;

/// What became of attempts, in the order of [`Counted::counts`].
const KINDS: usize = 4;

/// Counts since they were last taken.
#[derive(Debug)]
pub struct Lately {
    /// By slot; the first is everything beyond the bound.
    destinations: Box<[Destination]>,
    refused: Mutex<Refused>,
}

#[derive(Debug, Default)]
struct Destination {
    name: OnceLock<String>,
    counts: [AtomicU64; KINDS],
}

#[derive(Debug, Default)]
struct Refused {
    by_slot: BTreeMap<u16, BTreeMap<String, Refusals>>,
    accounts: usize,
}

/// What an account was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// How often.
    pub count: u64,
    /// When first.
    pub at: Wall,
    /// Which message that was.
    pub message: MessageId,
    /// Why.
    pub class: ReplyClass,
    /// With which status, where there was one.
    pub code: Option<u16>,
}

/// What was counted at one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// As `isp:google`; `other` beyond the bound.
    pub destination: String,
    /// Accepted, refused for our rate or standing, deferred otherwise, bounced.
    pub counts: [u64; KINDS],
    /// The refused, by account.
    pub refused: Vec<(String, Refusals)>,
}

impl Lately {
    /// Counters for so many destinations, at most 10,000, and the rest. The
    /// bound must be that of whoever gives out the slots.
    pub fn new(destinations_max: usize) -> Self {
        let slots = 1 + destinations_max.min(10_000);
        Self {
            destinations: (0..slots).map(|_| Destination::default()).collect(),
            refused: Mutex::default(),
        }
    }

    /// Takes what was counted since the last time; nothing of destinations at
    /// which nothing happened.
    pub fn take(&self) -> Vec<Counted> {
        let mut refused = {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *refused)
        };
        let mut taken = Vec::new();
        for (slot, destination) in (0_u16..).zip(&self.destinations) {
            let counts = destination
                .counts
                .each_ref()
                .map(|count| match count.load(Relaxed) {
                    0 => 0,
                    _ => count.swap(0, Relaxed),
                });
            let accounts = refused.by_slot.remove(&slot).unwrap_or_default();
            if counts == [0; KINDS] && accounts.is_empty() {
                continue;
            }
            taken.push(Counted {
                destination: destination
                    .name
                    .get()
                    .cloned()
                    .unwrap_or_else(|| OTHER.to_owned()),
                counts,
                refused: accounts.into_iter().collect(),
            });
        }
        taken
    }

    fn count(&self, attempt: &Attempted<'_>) {
        let is_refused = matches!(attempt.reason, ReplyClass::Rate | ReplyClass::Reputation);
        let kind = match attempt.outcome {
            AttemptOutcome::Delivered => 0,
            AttemptOutcome::Bounced => 3,
            AttemptOutcome::Deferred | AttemptOutcome::Dead if is_refused => 1,
            AttemptOutcome::Deferred | AttemptOutcome::Dead | AttemptOutcome::Uncertain => 2,
        };
        let Some(destination) = self.destinations.get(usize::from(attempt.slot.0)) else {
            return;
        };
        destination.name.get_or_init(|| match attempt.slot {
            Slot::OTHER => OTHER.to_owned(),
            _ => attempt.key.destination.to_string(),
        });
        if let Some(count) = destination.counts.get(kind) {
            count.fetch_add(1, Relaxed);
        }
        if kind == 1 {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.note(attempt);
        }
    }
}

impl Refused {
    fn note(&mut self, attempt: &Attempted<'_>) {
        let account = attempt.account.unwrap_or(OTHER);
        let accounts = self.by_slot.entry(attempt.slot.0).or_default();
        let account = match accounts.contains_key(account) || self.accounts < ACCOUNTS_MAX {
            true => account,
            false => OTHER,
        };
        match accounts.get_mut(account) {
            Some(known) => known.count += 1,
            None => {
                self.accounts += 1;
                let first = Refusals {
                    count: 1,
                    at: attempt.at,
                    message: attempt.message,
                    class: attempt.reason,
                    code: attempt.code,
                };
                accounts.insert(account.to_owned(), first);
            }
        }
    }
}

impl Sink for Lately {
    fn emit(&self, event: &Event<'_>) {
        if let Event::Attempted(attempt) = event {
            self.count(attempt);
        }
    }
}
