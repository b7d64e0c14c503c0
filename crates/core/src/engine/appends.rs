//! What was handed to the store and is not yet known to be durable.
//!
//! Every append is kept until the store confirms it. After a failed commit the
//! lost ones are appended again, in order, after a pause; meanwhile, and when
//! too many are unconfirmed, nothing new is sent: a settlement that cannot be
//! written would become a duplicate at the next crash.

use std::collections::VecDeque;

use super::action::{Action, Alert, Record};
use crate::handle::AppendNo;
use crate::time::{Mono, Nanos};

/// Unconfirmed appends beyond which nothing new is sent.
const UNCONFIRMED_MAX: usize = 65_536;
/// The pause after a first failed commit; it doubles up to the longest.
const PAUSE_FIRST: Nanos = Nanos::from_millis(100);
const PAUSE_LONGEST: Nanos = Nanos::from_secs(5);

/// Appends on their way to the disk.
#[derive(Debug, Default)]
pub(super) struct Appends {
    last: AppendNo,
    unconfirmed: VecDeque<(AppendNo, Record)>,
    /// Lost ones, oldest first, to be appended again.
    lost: VecDeque<Record>,
    /// When to try again, and how long the last pause was.
    retry: Option<(Mono, Nanos)>,
}

impl Appends {
    /// Hands a record to the store.
    pub fn append(&mut self, record: Record, actions: &mut Vec<Action>) {
        if self.retry.is_some() {
            // Behind those that were lost, so that the order stays.
            self.lost.push_back(record);
            return;
        }
        self.last.0 += 1;
        self.unconfirmed.push_back((self.last, record.clone()));
        actions.push(Action::Append {
            no: self.last,
            record,
        });
    }

    /// The next append that became durable, if any.
    pub fn confirm(&mut self, through: AppendNo) -> Option<Record> {
        match self.unconfirmed.front() {
            Some(&(no, _)) if no <= through => {
                self.unconfirmed.pop_front().map(|(_, record)| record)
            }
            _ => None,
        }
    }

    /// Notes that the store lost everything unconfirmed up to this append.
    pub fn fail(&mut self, now: Mono, through: AppendNo, actions: &mut Vec<Action>) {
        let mut failed = VecDeque::new();
        while let Some(record) = self.confirm(through) {
            failed.push_back(record);
        }
        if failed.is_empty() {
            return;
        }
        failed.append(&mut self.lost);
        self.lost = failed;
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

    /// Appends the lost ones again when the pause is over, at most `max`.
    pub fn retry(&mut self, now: Mono, max: usize, actions: &mut Vec<Action>) {
        let Some((at, pause)) = self.retry else {
            return;
        };
        if now < at {
            return;
        }
        for _ in 0..max {
            let Some(record) = self.lost.pop_front() else {
                break;
            };
            self.last.0 += 1;
            self.unconfirmed.push_back((self.last, record.clone()));
            actions.push(Action::Append {
                no: self.last,
                record,
            });
        }
        // Only the store's word ends the failure; until then new records queue
        // behind and the next batch follows after the pause.
        self.retry = Some((now + pause, pause));
    }

    /// Notes that the store wrote something; whether that ended a failure.
    pub fn recovered(&mut self, actions: &mut Vec<Action>) -> bool {
        if self.retry.is_none() || !self.lost.is_empty() || !self.unconfirmed.is_empty() {
            return false;
        }
        self.retry = None;
        actions.push(Action::Alert {
            alert: Alert::StoreRecovered,
        });
        true
    }

    /// Whether nothing new may be sent.
    pub fn is_held(&self) -> bool {
        self.retry.is_some() || self.unconfirmed.len() >= UNCONFIRMED_MAX
    }

    /// Whether everything handed over is durable.
    pub fn is_settled(&self) -> bool {
        self.unconfirmed.is_empty() && self.lost.is_empty()
    }

    /// When [`Appends::retry`] wants to be called.
    pub fn next_wake(&self) -> Mono {
        self.retry.map_or(Mono::NEVER, |(at, _)| at)
    }

    /// How many are not yet known to be durable.
    pub fn len(&self) -> usize {
        self.unconfirmed.len() + self.lost.len()
    }
}
