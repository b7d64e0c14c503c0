//! A store under observation: the world hears what becomes durable.

use std::collections::VecDeque;

use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Now, Wall};
use outflow_ports::store::{Recovered, Store, StoreDone, StoreWork};

use crate::memory::store::MemoryStore;

/// What a node wrote about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It waits until a time on the node's wall clock.
    Deferred(Seq, Wall),
    /// It is done with, durably.
    Settled(Seq, State),
}

/// A memory store whose appends are followed.
#[derive(Debug)]
pub struct WatchedStore {
    inner: MemoryStore,
    /// Settlements that are not yet known to be durable.
    unconfirmed: VecDeque<(AppendNo, Seq, State)>,
    written: Vec<Written>,
}

impl WatchedStore {
    /// Watches a store.
    pub fn new(inner: MemoryStore) -> Self {
        Self { inner, unconfirmed: VecDeque::new(), written: Vec::new() }
    }

    /// The store itself.
    pub fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    /// What was written since this was last asked.
    pub fn take_written(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.written)
    }

    /// The process is gone; what was not durable is lost, or a part of it.
    pub fn crash(mut self) -> Self {
        let inner = self.inner.crash();
        // Some of what nobody heard of may have reached the disk all the same.
        for (_, seq, state) in self.unconfirmed.drain(..) {
            if !inner.is_live(seq) {
                self.written.push(Written::Settled(seq, state));
            }
        }
        Self { inner, unconfirmed: VecDeque::new(), written: self.written }
    }

    fn confirm(&mut self, through: AppendNo, durable: bool) {
        while let Some(&(no, seq, state)) = self.unconfirmed.front() {
            if no > through {
                break;
            }
            self.unconfirmed.pop_front();
            if durable {
                self.written.push(Written::Settled(seq, state));
            }
        }
    }
}

impl Store for WatchedStore {
    fn recover(&mut self, now: &Now) -> Recovered {
        self.inner.recover(now)
    }

    fn submit(&mut self, now: &Now, work: StoreWork) {
        if let StoreWork::Append { no, record } = &work {
            match record {
                Record::Settlement { seq, state, .. } => {
                    self.unconfirmed.push_back((*no, *seq, *state));
                }
                Record::Dead { seq, .. } => {
                    self.unconfirmed.push_back((*no, *seq, State::Dead));
                }
                Record::Deferral { seq, until, .. } => {
                    self.written.push(Written::Deferred(*seq, *until));
                }
                Record::Cancelled { .. } | Record::Moved { .. } | Record::Reservation { .. } => {}
            }
        }
        self.inner.submit(now, work);
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>) {
        let before = done.len();
        self.inner.complete(now, done);
        for index in before..done.len() {
            match done.get(index) {
                Some(StoreDone::Event(Event::Committed { through })) => {
                    let through = *through;
                    self.confirm(through, true);
                }
                Some(StoreDone::Event(Event::CommitFailed { through })) => {
                    let through = *through;
                    self.confirm(through, false);
                }
                _ => {}
            }
        }
    }

    fn next_completion(&self) -> Mono {
        self.inner.next_completion()
    }

    fn last_seq(&self) -> Seq {
        self.inner.last_seq()
    }

    fn ahead(&self, flow: FlowId, seq: Seq) -> Option<u64> {
        self.inner.ahead(flow, seq)
    }
}
