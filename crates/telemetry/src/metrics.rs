//! Counts events. An event costs a few relaxed additions and takes no lock,
//! except for requests, which look their route up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use outflow_core::class::Class;
use outflow_core::engine::action::Alert;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Channel, State};
use outflow_core::outcome::ReplyClass;
use outflow_core::retry::schedule::DeathCause;

use crate::catalogue::{Event, IntakeRefusal, Reported, Settled};
use crate::destinations::Destinations;
use crate::histogram::{Histogram, LONG, SHORT};
use crate::ledger::Ledger;
use crate::requests::Requests;
use crate::sink::{Sink, Slot};
use crate::submissions::Submissions;

pub use crate::exposition::CONTENT_TYPE;
pub use crate::snapshot::{Depth, LimitNow, Snapshot, ThrottleNow};

/// The states in which a message can end.
pub(crate) const FINAL: [State; 6] = [
    State::Delivered,
    State::Bounced,
    State::Expired,
    State::Cancelled,
    State::Suppressed,
    State::Dead,
];

/// Why messages are given up.
pub(crate) const CAUSES: [DeathCause; 5] = [
    DeathCause::Attempts,
    DeathCause::Age,
    DeathCause::Uncertain,
    DeathCause::TooLarge,
    DeathCause::StorageDamaged,
];

/// What alerts are called.
pub(crate) const ALERTS: [&str; 9] = [
    "store_failing",
    "store_recovered",
    "ledger_away",
    "refused",
    "worker_lost",
    "account_broken",
    "account_restored",
    "adapted",
    "unwelcome",
];

/// Counters by channel and class, and one thing more.
pub(crate) type Counts<const N: usize> = [[[AtomicU64; N]; Class::COUNT]; Channel::ALL.len()];

/// How many values of a label are told apart; the rest are `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Destinations, at most 10,000.
    pub destinations: usize,
    /// Limits.
    pub limits: usize,
    /// Accounts.
    pub accounts: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            destinations: 1_000,
            limits: 1_000,
            accounts: 1_000,
        }
    }
}

/// All that was counted since the start.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) version: &'static str,
    pub(crate) bounds: Bounds,
    pub(crate) accepted: Counts<1>,
    pub(crate) refused: [AtomicU64; IntakeRefusal::ALL.len()],
    pub(crate) attempts: Destinations,
    pub(crate) attempt_seconds: [Histogram; Channel::ALL.len()],
    pub(crate) settled: Counts<{ FINAL.len() }>,
    pub(crate) dead: Counts<{ CAUSES.len() }>,
    /// By class: after an attempt, without one.
    pub(crate) deferrals: [[AtomicU64; 2]; Class::COUNT],
    pub(crate) feedback: [AtomicU64; ReplyClass::ALL.len()],
    pub(crate) time_to_delivery: [Histogram; Class::COUNT],
    pub(crate) commit_seconds: Histogram,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) store_failing: AtomicBool,
    pub(crate) dns_away: AtomicBool,
    pub(crate) ledger: Ledger,
    pub(crate) alerts: [AtomicU64; ALERTS.len()],
    pub(crate) requests: Requests,
    pub(crate) submissions: Submissions,
    /// Matched, unmatched, unread.
    pub(crate) reports: [AtomicU64; 3],
}

impl Metrics {
    /// Nothing was counted yet. `version` is that of the program.
    pub fn new(version: &'static str, bounds: Bounds) -> Self {
        Self {
            version,
            bounds,
            accepted: Default::default(),
            refused: Default::default(),
            attempts: Destinations::new(bounds.destinations),
            attempt_seconds: std::array::from_fn(|_| Histogram::new(SHORT)),
            settled: Default::default(),
            dead: Default::default(),
            deferrals: Default::default(),
            feedback: Default::default(),
            time_to_delivery: std::array::from_fn(|_| Histogram::new(LONG)),
            commit_seconds: Histogram::new(SHORT),
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            store_failing: AtomicBool::new(false),
            dns_away: AtomicBool::new(false),
            ledger: Ledger::default(),
            alerts: Default::default(),
            requests: Requests::default(),
            submissions: Submissions::default(),
            reports: Default::default(),
        }
    }

    fn settle(&self, settled: &Settled<'_>) {
        let at = FINAL.iter().position(|&state| state == settled.state);
        count(&self.settled, settled.key, at, 1);
        if settled.state == State::Delivered
            && let Some(age) = settled.age
            && let Some(histogram) = self.time_to_delivery.get(settled.key.class.index())
        {
            histogram.add(age);
        }
    }

    fn alert(&self, alert: &Alert) {
        let at = match alert {
            Alert::StoreFailing => 0,
            Alert::StoreRecovered => 1,
            Alert::LedgerAway { .. } => 2,
            Alert::Refused(_) => 3,
            Alert::WorkerLost { .. } => 4,
            Alert::Broken { .. } => 5,
            Alert::Restored { .. } => 6,
            Alert::Adapted(_) => 7,
            Alert::Unwelcome { .. } => 8,
        };
        add(self.alerts.get(at), 1);
        match alert {
            Alert::StoreFailing => self.store_failing.store(true, Relaxed),
            Alert::StoreRecovered => self.store_failing.store(false, Relaxed),
            _ => {}
        }
    }
}

impl Sink for Metrics {
    fn emit(&self, event: &Event<'_>) {
        match event {
            Event::Accepted {
                channel,
                class,
                count,
            } => {
                let counts = self.accepted.get(*channel as usize);
                let counts = counts.and_then(|counts| counts.get(class.index()));
                add(counts.map(|[one]| one), u64::from(*count));
            }
            Event::IntakeRefused { reason, count } => {
                add(self.refused.get(*reason as usize), u64::from(*count));
            }
            Event::Attempted(attempt) => {
                let channel = attempt.key.channel;
                self.attempts.count(attempt.slot, channel, attempt.outcome);
                if let Some(histogram) = self.attempt_seconds.get(channel as usize) {
                    histogram.add(attempt.duration);
                }
            }
            Event::Deferred { key, attempted, .. } => {
                let counts = self.deferrals.get(key.class.index());
                let at = usize::from(!attempted);
                add(counts.and_then(|counts| counts.get(at)), 1);
            }
            Event::Settled(settled) => self.settle(settled),
            Event::Died { key, letter, .. } => {
                let at = CAUSES.iter().position(|&cause| cause == letter.cause);
                count(&self.dead, key, at, 1);
                let at = FINAL.iter().position(|&state| state == State::Dead);
                count(&self.settled, key, at, 1);
            }
            Event::Feedback { error, .. } => {
                add(self.feedback.get(error.class as usize), 1);
            }
            Event::Alert(alert) => self.alert(alert),
            Event::Committed(commit) => {
                self.commit_seconds.add(commit.duration);
                self.records.fetch_add(commit.records, Relaxed);
                self.bytes.fetch_add(commit.bytes, Relaxed);
            }
            Event::Requested(request) => self.requests.count(request),
            Event::Dns { is_away } => self.dns_away.store(*is_away, Relaxed),
            Event::Ledger { is_away, .. } => self.ledger.set_away(*is_away),
            Event::LedgerCounts(counts) => self.ledger.set_counts(counts),
            Event::Submission(what) => self.submissions.count(what),
            Event::Reported(what) => self.reported(what),
            Event::Started(_)
            | Event::Stopping
            | Event::Stopped
            | Event::PolicyChanged
            | Event::AccountChanged { .. }
            | Event::AccountRemoved { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::Swept { .. }
            | Event::Surge(_)
            | Event::Noted { .. } => {}
        }
    }

    fn slot(&self, key: &FlowKey) -> Slot {
        self.attempts.slot(&key.destination)
    }
}

impl Metrics {
    fn reported(&self, what: &Reported) {
        let counts = [what.matched, what.unmatched, what.unread];
        for (counter, count) in self.reports.iter().zip(counts) {
            counter.fetch_add(count, Relaxed);
        }
    }
}

fn add(counter: Option<&AtomicU64>, count: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(count, Relaxed);
    }
}

fn count<const N: usize>(counts: &Counts<N>, key: &FlowKey, at: Option<usize>, more: u64) {
    let counts = counts.get(key.channel as usize);
    let counts = counts.and_then(|counts| counts.get(key.class.index()));
    add(counts.zip(at).and_then(|(counts, at)| counts.get(at)), more);
}
