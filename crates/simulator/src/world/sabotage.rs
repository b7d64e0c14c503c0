//! Deliberate damage: ways to break an engine or its store, one at a time.
//!
//! A checker that never speaks proves nothing. Each way here is a mistake that
//! somebody could make in earnest; the world then runs the broken node as if
//! nothing were wrong, and the checker that watches for it must find it. The
//! cast, and so the checkers, always goes by what the scenario really says.

use std::sync::atomic::Ordering::Relaxed;

use outflow_core::class::Class;
use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::time::{Nanos, Now, Wall};
use outflow_ports::intake::Submission;
use outflow_ports::store::{Recovered, StoreDone, StoreWork};
use outflow_store_embedded::stepped::Broken;

use crate::real::RealStore;
use crate::scenario::Scenario;

/// A node that oversleeps does so when it wanted to sleep for longer than this.
const NAP: Nanos = Nanos::from_millis(10);
/// How long it then sleeps.
const OVERSLEPT: Nanos = Nanos::from_secs(5);
/// How long one that stays asleep does.
const STAYED: Nanos = Nanos::from_secs(3_600);
/// How long the low class is put off.
const PUT_OFF: Nanos = Nanos::from_secs(3_600);

/// A way to break an engine or its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The engine goes by twice the rate and concurrency of every policy.
    DoublesLimits,
    /// Every node counts by itself what all of them share.
    CountsAlone,
    /// After a restart the store says that there never was another start.
    ForgetsLimits,
    /// The store acknowledges messages before they are durable.
    AcknowledgesEarly,
    /// The store writes settlements down as deferrals.
    ForgetsSettlements,
    /// The store hands every message out twice.
    HandsOutTwice,
    /// The store keeps messages without their expiry.
    ForgetsExpiry,
    /// The store keeps what is to be sent later without its due time.
    ForgetsDueTimes,
    /// The store never says what has expired.
    HidesExpired,
    /// The engine takes every message for one of the low class.
    MergesClasses,
    /// The engine puts the low class off for an hour.
    PutsLowOff,
    /// The engine gives light tenants the turns of heavy ones.
    InvertsWeights,
    /// The store hands out all that waits, however little was asked for.
    PagesEverything,
    /// Healthy accounts take over what blocked ones would have sent, up to
    /// their limits.
    FillsUp,
    /// The same, and nobody told the engine what accounts may.
    Redistributes,
    /// Lanes that have no message keep their connections against all others.
    KeepsIdleSessions,
    /// The same, and a connection to a relay carries messages only for the
    /// destination for which it was opened.
    BindsRelaySessions,
    /// The store never says that nothing is left of a flow.
    KeepsFlows,
    /// The node sleeps on when the engine wants to be woken.
    Oversleeps,
    /// The node sleeps for an hour when the engine wants to be woken later than
    /// at once.
    StaysAsleep,
    /// The store never says that the time of a deferred message has come.
    HidesDue,
    /// The node hears of no order of an operator.
    IgnoresOrders,
    /// The node goes on with accounts that were taken out.
    KeepsAccounts,
    /// The real store's disk says that it has synced, and has not.
    SyncsNothing,
    /// The real store's writer says that bodies go to a new segment from now on,
    /// and they do not: what is given up or rewritten is still written to.
    TurnsInName,
    /// The real store's writer does not write the names of flows.
    ForgetsNames,
}

impl Sabotage {
    /// The scenario as the engine is told it.
    pub(super) fn scenario(self, real: &Scenario) -> Scenario {
        let mut told = real.clone();
        let heaviest = real.policies.iter().filter_map(|it| it.weight).max();
        for policy in &mut told.policies {
            match self {
                Self::DoublesLimits => {
                    if let Some(rate) = &mut policy.rate {
                        rate.rate.count *= 2;
                    }
                    policy.concurrency = policy.concurrency.map(|slots| slots * 2);
                }
                Self::InvertsWeights => {
                    let invert = |weight| heaviest.unwrap_or(weight) / weight;
                    policy.weight = policy.weight.map(invert);
                }
                _ => {}
            }
        }
        if self == Self::BindsRelaySessions {
            for account in &mut told.accounts {
                account.relay = None;
            }
        }
        if self == Self::Redistributes {
            for account in &mut told.accounts {
                (account.rate, account.burst) = (None, None);
            }
        }
        told
    }

    /// Whether the engine hears of this.
    pub(super) fn hears(self, event: &Event) -> bool {
        match event {
            Event::Command(_) => self != Self::IgnoresOrders,
            Event::AccountRemoved { .. } => self != Self::KeepsAccounts,
            _ => true,
        }
    }

    /// A message on its way to the engine.
    pub(super) fn submission(self, now: &Now, submission: &mut Submission) {
        match self {
            Self::MergesClasses => submission.key.class = Class::Low,
            Self::PutsLowOff if submission.key.class == Class::Low => {
                submission.not_before = Some(now.wall + PUT_OFF);
            }
            _ => {}
        }
    }

    /// When a node takes its next turn that wants it at `at`.
    pub(super) fn next_turn(self, now: Nanos, at: Nanos) -> Nanos {
        match self {
            Self::Oversleeps if at > now + NAP => at.max(now + OVERSLEPT),
            Self::StaysAsleep if at > now + NAP => at.max(now + STAYED),
            _ => at,
        }
    }

    /// A store that is real.
    pub(super) fn store(self, store: &mut RealStore) {
        match self {
            Self::SyncsNothing => store.mood().lying.store(true, Relaxed),
            Self::TurnsInName => store.break_on_purpose(Broken::TurnsInName),
            Self::ForgetsNames => store.break_on_purpose(Broken::ForgetsNames),
            _ => {}
        }
    }

    /// What a store knows when it starts.
    pub(super) fn recovered(self, recovered: &mut Recovered) {
        if self == Self::ForgetsLimits {
            recovered.limits.clear();
            recovered.holds.clear();
            recovered.adapted.clear();
            recovered.fresh = true;
        }
    }

    /// Work on its way to the store.
    pub(super) fn work(self, now: &Now, work: StoreWork) -> StoreWork {
        match (self, work) {
            (Self::PagesEverything, StoreWork::Page { flow, .. }) => StoreWork::Page {
                flow,
                max: u32::MAX,
            },
            (Self::ForgetsSettlements, StoreWork::Append { no, record }) => StoreWork::Append {
                no,
                record: forgotten(now, record),
            },
            (
                way,
                StoreWork::Accept {
                    batch,
                    mut messages,
                },
            ) => {
                for message in &mut messages {
                    match way {
                        Self::ForgetsExpiry => message.expires_at = Wall::NEVER,
                        Self::ForgetsDueTimes => message.not_before = None,
                        _ => {}
                    }
                }
                StoreWork::Accept { batch, messages }
            }
            (_, work) => work,
        }
    }

    /// An answer on its way back. Whether it arrives.
    pub(super) fn done(self, done: &mut StoreDone) -> bool {
        match (self, done) {
            (Self::HandsOutTwice, StoreDone::Event(Event::Paged { heads, .. })) => {
                *heads = heads.iter().flat_map(|head| [*head, *head]).collect();
                true
            }
            (Self::HidesExpired, StoreDone::Event(Event::Expired { .. }))
            | (Self::HidesDue, StoreDone::Event(Event::Due { .. }))
            | (Self::KeepsFlows, StoreDone::Event(Event::FlowClosed { .. })) => false,
            _ => true,
        }
    }
}

fn forgotten(now: &Now, record: Record) -> Record {
    match record {
        Record::Settlement { flow, seq, .. } => Record::Deferral {
            flow,
            seq,
            until: now.wall,
            attempt: None,
        },
        other => other,
    }
}
