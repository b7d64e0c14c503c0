//! A store under observation: the world hears what becomes durable, and which
//! of its own messages a store's numbers stand for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outflow_core::engine::action::Record;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Now, Wall};
use outflow_ports::intake::Given;
use outflow_ports::parcel::ParcelRef;
use outflow_ports::store::{BatchId, Found, Recovered, Store, StoreDone, StoreWork};

use super::content;
use super::sabotage::Sabotage;
use crate::memory::MemoryStore;
use crate::real::RealStore;
use crate::trace::MessageNo;

/// What a node wrote about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It waits until a time on the node's wall clock.
    Deferred(Seq, Wall),
    /// It is done with, durably.
    Settled(Seq, State),
}

/// Messages that are read after each start, at most.
const READ_MAX: usize = 500;

/// The store that is watched.
#[derive(Debug)]
pub enum Kept {
    /// What production has, on a simulated disk.
    Real(Box<RealStore>),
    /// A model of it.
    Model(Box<MemoryStore>),
}

impl Kept {
    fn store(&self) -> &dyn Store {
        match self {
            Self::Real(store) => &**store,
            Self::Model(store) => &**store,
        }
    }

    fn store_mut(&mut self) -> &mut dyn Store {
        match self {
            Self::Real(store) => &mut **store,
            Self::Model(store) => &mut **store,
        }
    }
}

/// A store whose messages are followed.
#[derive(Debug)]
pub struct WatchedStore {
    inner: Kept,
    /// Of which messages the end was told.
    ended: BTreeSet<Seq>,
    problems: Vec<String>,
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
    pub fn new(inner: Kept) -> Self {
        Self {
            inner,
            ended: BTreeSet::new(),
            problems: Vec::new(),
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
        if let Kept::Real(store) = &mut self.inner {
            sabotage.store(store);
        }
    }

    /// What was written since this was last asked.
    pub fn take_written(&mut self) -> Vec<Written> {
        let mut written = std::mem::take(&mut self.deferred);
        match &mut self.inner {
            Kept::Model(store) => {
                let settled = store.take_settled().into_iter();
                written.extend(settled.map(|it| Written::Settled(it.seq, it.state)));
            }
            Kept::Real(store) => {
                for (seq, state) in store.take_ends() {
                    if self.ended.insert(seq) {
                        written.push(Written::Settled(seq, state));
                    }
                }
            }
        }
        written
    }

    /// What must not happen to a store and did, since last asked.
    pub fn take_problems(&mut self) -> Vec<String> {
        if let Kept::Real(store) = &mut self.inner {
            self.problems.append(&mut store.take_problems());
        }
        std::mem::take(&mut self.problems)
    }

    /// The process is gone, in peace or not; what was not durable is lost, or a
    /// part of it.
    #[must_use]
    pub fn gone(mut self, in_peace: bool) -> Self {
        self.batches.clear();
        self.early.clear();
        match self.inner {
            Kept::Real(mut store) => {
                match in_peace {
                    true => store.stop(),
                    false => store.crash(),
                }
                self.inner = Kept::Real(store);
            }
            Kept::Model(store) => {
                self.inner = Kept::Model(Box::new(store.crash()));
                self.learn_found();
            }
        }
        self
    }

    /// Some of what nobody was told of may have reached the disk.
    fn learn_found(&mut self) {
        let mut found = Vec::new();
        let (store, numbers) = (self.inner.store(), &self.numbers);
        let problems = &mut self.problems;
        let mut left = READ_MAX;
        store.scan(Seq(0), usize::MAX, &mut |it| {
            let seq = it.head.seq;
            let known = numbers.get(seq.0 as usize).copied().flatten();
            if known.is_some() && left == 0 {
                return;
            }
            left = left.saturating_sub(1);
            let Some(parcel) = store.parcel(seq) else {
                return;
            };
            match parcel.read() {
                Ok(parcel) => match content::number(&parcel) {
                    Some(number) if known.is_none_or(|known| known == number) => {
                        found.push((seq, number));
                    }
                    _ => problems.push(format!("{seq:?} is another message")),
                },
                Err(error) => problems.push(format!("{seq:?}: {error}")),
            }
        });
        for (seq, number) in found {
            self.learn(seq, number);
        }
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
        let last = self.inner.store().last_seq().0;
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

impl Store for WatchedStore {
    fn recover(&mut self, now: &Now) -> Recovered {
        let mut recovered = self.inner.store_mut().recover(now);
        self.learn_found();
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
                let numbers = messages.iter();
                let numbers = numbers.filter_map(|it| content::number_of(&it.envelope));
                self.batches.insert(*batch, numbers.collect());
                batch_now = Some(*batch);
            }
            _ => {}
        }
        self.inner.store_mut().submit(now, work);
        if self.sabotage == Some(Sabotage::AcknowledgesEarly)
            && let Some(batch) = batch_now
        {
            self.acknowledge(batch);
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>) {
        let before = done.len();
        done.append(&mut self.early);
        self.inner.store_mut().complete(now, done);
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
        self.inner.store().next_completion()
    }

    fn last_seq(&self) -> Seq {
        self.inner.store().last_seq()
    }

    fn ahead(&self, flow: FlowId, seq: Seq) -> Option<u64> {
        self.inner.store().ahead(flow, seq)
    }

    fn parcel(&self, seq: Seq) -> Option<ParcelRef> {
        self.inner.store().parcel(seq)
    }

    fn find(&self, seq: Seq) -> Option<Found> {
        self.inner.store().find(seq)
    }

    fn flow_key(&self, flow: FlowId) -> Option<&Arc<FlowKey>> {
        self.inner.store().flow_key(flow)
    }

    fn scan(&self, from: Seq, looks: usize, found: &mut dyn FnMut(Found)) -> Option<Seq> {
        self.inner.store().scan(from, looks, found)
    }

    fn deferred(&self, found: &mut dyn FnMut(FlowId, u64)) {
        self.inner.store().deferred(found);
    }
}
