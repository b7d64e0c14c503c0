//! What was handed to the store and is not yet known to be durable.
//!
//! Every append is kept until the store confirms it. After a failed commit the
//! lost ones are appended again, in order, after a pause: a few at first, and
//! as soon as the store takes those, the rest without a pause. Meanwhile, and
//! when too many are unconfirmed, nothing new is sent: a settlement that cannot
//! be written would become a duplicate at the next crash.
//!
//! What waits here while the store fails is bounded: replies by what was in
//! flight, and expiries and cancels, which go on, by 16 bytes for each message
//! that the store keeps, for which its own index needs more.

use std::collections::VecDeque;

use super::action::{Action, Alert, Record};
use crate::handle::{AppendNo, FlowId};
use crate::message::{Seq, State};
use crate::time::{Mono, Nanos};

/// Unconfirmed appends beyond which nothing new is sent.
const UNCONFIRMED_MAX: usize = 65_536;
/// Unconfirmed appends beyond which none is handed over.
const HANDED_MAX: usize = 2 * UNCONFIRMED_MAX;
/// How many are handed over at a time, after a failure or a delay.
const BATCH: usize = 512;
/// With how many a store that failed is tried.
const PROBE: usize = 64;
/// The pause after a first failed commit; it doubles up to the longest.
const PAUSE_FIRST: Nanos = Nanos::from_millis(100);
const PAUSE_LONGEST: Nanos = Nanos::from_secs(5);

/// A record that is to be handed over.
#[derive(Debug)]
enum Waiting {
    /// The end of a message that nobody tried: the most frequent by far.
    Ended(FlowId, State, Seq),
    Other(Box<Record>),
}

impl From<Record> for Waiting {
    fn from(record: Record) -> Self {
        match record {
            Record::Settlement {
                flow,
                seq,
                state,
                account: None,
                error: None,
            } => Self::Ended(flow, state, seq),
            other => Self::Other(Box::new(other)),
        }
    }
}

impl From<Waiting> for Record {
    fn from(waiting: Waiting) -> Self {
        match waiting {
            Waiting::Ended(flow, state, seq) => Self::Settlement {
                flow,
                seq,
                state,
                account: None,
                error: None,
            },
            Waiting::Other(record) => *record,
        }
    }
}

/// Appends on their way to the disk.
#[derive(Debug, Default)]
pub(super) struct Appends {
    last: AppendNo,
    unconfirmed: VecDeque<(AppendNo, Record)>,
    /// Lost or held back, oldest first, to be appended.
    waiting: VecDeque<Waiting>,
    /// When to try again, and how long the last pause was, while the store fails.
    retry: Option<(Mono, Nanos)>,
}

impl Appends {
    /// Hands a record to the store.
    pub fn append(&mut self, record: Record, actions: &mut Vec<Action>) {
        // Behind those that wait, so that the order stays.
        if self.retry.is_some() || !self.waiting.is_empty() || self.unconfirmed.len() >= HANDED_MAX
        {
            self.waiting.push_back(record.into());
        } else {
            self.hand_over(record, actions);
        }
    }

    fn hand_over(&mut self, record: Record, actions: &mut Vec<Action>) {
        self.last.0 += 1;
        self.unconfirmed.push_back((self.last, record.clone()));
        actions.push(Action::Append {
            no: self.last,
            record,
        });
    }

    fn hand_over_waiting(&mut self, max: usize, actions: &mut Vec<Action>) {
        for _ in 0..max {
            let Some(waiting) = self.waiting.pop_front() else {
                break;
            };
            self.hand_over(waiting.into(), actions);
        }
    }

    /// The next append that became durable, if any.
    pub fn confirm(&mut self, through: AppendNo) -> Option<Record> {
        let front = self.unconfirmed.pop_front_if(|(no, _)| *no <= through);
        front.map(|(_, record)| record)
    }

    /// Notes that the store lost everything unconfirmed up to this append.
    pub fn fail(&mut self, now: Mono, through: AppendNo, actions: &mut Vec<Action>) {
        let mut failed = VecDeque::new();
        while let Some(record) = self.confirm(through) {
            failed.push_back(record.into());
        }
        if failed.is_empty() {
            return;
        }
        failed.append(&mut self.waiting);
        self.waiting = failed;
        let pause = match self.retry {
            Some((_, pause)) => pause.times(2).min(PAUSE_LONGEST),
            None => {
                actions.push(Action::Alert {
                    alert: Alert::StoreFailing,
                });
                PAUSE_FIRST
            }
        };
        self.retry = Some((now + pause, pause));
    }

    /// Tries a store that failed with a few when the pause is over. Its answer
    /// decides how to go on.
    pub fn retry(&mut self, now: Mono, actions: &mut Vec<Action>) {
        let Some((at, pause)) = self.retry else {
            return;
        };
        if now < at {
            return;
        }
        if self.unconfirmed.is_empty() {
            self.hand_over_waiting(PROBE, actions);
        }
        self.retry = Some((now + pause, pause));
    }

    /// Goes on after the store wrote something: what waits follows, and a
    /// failure ends when everything is durable.
    pub fn go_on(&mut self, now: Mono, actions: &mut Vec<Action>) {
        let room = match &mut self.retry {
            Some(retry) => {
                *retry = (now + PAUSE_FIRST, PAUSE_FIRST);
                BATCH
            }
            None => HANDED_MAX,
        };
        let room = room.saturating_sub(self.unconfirmed.len());
        self.hand_over_waiting(room.min(BATCH), actions);
        if self.retry.is_some() && self.is_settled() {
            self.retry = None;
            actions.push(Action::Alert {
                alert: Alert::StoreRecovered,
            });
        }
    }

    /// Whether nothing new may be sent.
    pub fn is_held(&self) -> bool {
        self.retry.is_some()
            || !self.waiting.is_empty()
            || self.unconfirmed.len() >= UNCONFIRMED_MAX
    }

    /// Whether everything handed over is durable.
    pub fn is_settled(&self) -> bool {
        self.unconfirmed.is_empty() && self.waiting.is_empty()
    }

    /// When [`Appends::retry`] wants to be called.
    pub fn next_wake(&self) -> Mono {
        self.retry.map_or(Mono::NEVER, |(at, _)| at)
    }

    /// How many are not yet known to be durable.
    pub fn len(&self) -> usize {
        self.unconfirmed.len() + self.waiting.len()
    }
}
