//! A store under observation: the world hears what becomes durable, and which
//! of its own messages a store's numbers stand for.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::engine::action::Record;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Now, Wall};
use outflow_ports::intake::Given;
use outflow_ports::parcel::ParcelRef;
use outflow_ports::store::{BatchId, Found, Recovered, Store, StoreDone, StoreWork};

use super::sabotage::Sabotage;
use crate::memory::MemoryStore;
use crate::trace::MessageNo;

/// What a node wrote about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It waits until a time on the node's wall clock.
    Deferred(Seq, Wall),
    /// It is done with, durably.
    Settled(Seq, State),
}

/// A memory store whose messages are followed.
#[derive(Debug)]
pub struct WatchedStore {
    inner: MemoryStore,
    deferred: Vec<Written>,
    /// The world's number of each message, by the store's.
    numbers: Vec<Option<MessageNo>>,
    /// The store's number of each message, by the world's.
    seqs: Vec<Option<Seq>>,
    batches: BTreeMap<BatchId, Vec<MessageNo>>,
    sabotage: Option<Sabotage>,
    /// Acknowledgements that are too early.
    early: Vec<StoreDone>,
}

impl WatchedStore {
    /// Watches a store that notes what it settles.
    pub fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            deferred: Vec::new(),
            numbers: Vec::new(),
            seqs: Vec::new(),
            batches: BTreeMap::new(),
            sabotage: None,
            early: Vec::new(),
        }
    }

    /// Breaks it.
    pub fn sabotage(&mut self, sabotage: Sabotage) {
        self.sabotage = Some(sabotage);
    }

    /// What was written since this was last asked.
    pub fn take_written(&mut self) -> Vec<Written> {
        let mut written = std::mem::take(&mut self.deferred);
        let settled = self.inner.take_settled();
        written.extend(
            settled
                .into_iter()
                .map(|it| Written::Settled(it.seq, it.state)),
        );
        written
    }

    /// The process is gone; what was not durable is lost, or a part of it.
    pub fn crash(self) -> Self {
        let mut crashed = Self {
            inner: self.inner.crash(),
            deferred: self.deferred,
            numbers: self.numbers,
            seqs: self.seqs,
            batches: BTreeMap::new(),
            sabotage: self.sabotage,
            early: Vec::new(),
        };
        // Some of what nobody was told of may have reached the disk.
        let found: Vec<(Seq, MessageNo)> = crashed
            .inner
            .iter()
            .filter_map(|live| Some((live.head.seq, number(live.body)?)))
            .collect();
        for (seq, number) in found {
            crashed.learn(seq, number);
        }
        crashed
    }

    /// The world's number of a message.
    pub fn message(&self, seq: Seq) -> Option<MessageNo> {
        self.numbers.get(seq.0 as usize).copied().flatten()
    }

    /// The store's number of a message.
    pub fn seq(&self, message: MessageNo) -> Option<Seq> {
        self.seqs.get(message as usize).copied().flatten()
    }

    /// Acknowledges the batch that was just handed over.
    fn acknowledge(&mut self, batch: BatchId) {
        let count = self.batches.get(&batch).map_or(0, Vec::len) as u64;
        let last = self.inner.last_seq().0;
        let given = (last - count + 1..=last).map(|seq| Given {
            seq: Seq(seq),
            accepted_at: Wall(0),
            known: false,
        });
        let given = given.collect();
        self.early.push(StoreDone::Accepted { batch, given });
    }

    fn learn(&mut self, seq: Seq, message: MessageNo) {
        let index = message as usize;
        if self.seqs.len() <= index {
            self.seqs.resize(index + 1, None);
        }
        if let Some(slot) = self.seqs.get_mut(index) {
            *slot = Some(seq);
        }
        let index = seq.0 as usize;
        if self.numbers.len() <= index {
            self.numbers.resize(index + 1, None);
        }
        if let Some(slot) = self.numbers.get_mut(index) {
            *slot = Some(message);
        }
    }
}

/// The world writes its number into the body.
fn number(body: &[u8]) -> Option<MessageNo> {
    Some(MessageNo::from_le_bytes(body.get(..8)?.try_into().ok()?))
}

impl Store for WatchedStore {
    fn recover(&mut self, now: &Now) -> Recovered {
        let mut recovered = self.inner.recover(now);
        if let Some(sabotage) = self.sabotage {
            sabotage.recovered(&mut recovered);
        }
        recovered
    }

    fn submit(&mut self, now: &Now, work: StoreWork) {
        let work = match self.sabotage {
            Some(sabotage) => sabotage.work(now, work),
            None => work,
        };
        let mut batch_now = None;
        match &work {
            StoreWork::Append {
                record: Record::Deferral { seq, until, .. },
                ..
            } => {
                self.deferred.push(Written::Deferred(*seq, *until));
            }
            StoreWork::Accept { batch, messages } => {
                let numbers = messages.iter().filter_map(|message| number(&message.body));
                self.batches.insert(*batch, numbers.collect());
                batch_now = Some(*batch);
            }
            _ => {}
        }
        self.inner.submit(now, work);
        if self.sabotage == Some(Sabotage::AcknowledgesEarly)
            && let Some(batch) = batch_now
        {
            self.acknowledge(batch);
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>) {
        let before = done.len();
        done.append(&mut self.early);
        self.inner.complete(now, done);
        if let Some(sabotage) = self.sabotage {
            done.retain_mut(|done| sabotage.done(done));
        }
        for done in done.iter().skip(before) {
            match done {
                StoreDone::Accepted { batch, given } => {
                    let numbers = self.batches.remove(batch).unwrap_or_default();
                    for (given, number) in given.iter().zip(numbers) {
                        self.learn(given.seq, number);
                    }
                }
                StoreDone::AcceptFailed { batch } => {
                    self.batches.remove(batch);
                }
                StoreDone::Event(_) => {}
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

    fn parcel(&self, seq: Seq) -> Option<ParcelRef> {
        self.inner.parcel(seq)
    }

    fn find(&self, seq: Seq) -> Option<Found> {
        self.inner.find(seq)
    }

    fn flow_key(&self, flow: FlowId) -> Option<&Arc<FlowKey>> {
        self.inner.flow_key(flow)
    }

    fn scan(&self, from: Seq, looks: usize, found: &mut dyn FnMut(Found)) -> Option<Seq> {
        self.inner.scan(from, looks, found)
    }

    fn deferred(&self, found: &mut dyn FnMut(FlowId, u64)) {
        self.inner.deferred(found);
    }
}
