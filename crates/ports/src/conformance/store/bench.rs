//! How cases speak to a store: submit, wait for the answer, look at it.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Head, Recipient, Seq, State};
use outflow_core::time::{Mono, Nanos, Now, Wall};

use super::Harness;
use crate::intake::Given;
use crate::store::{BatchId, NewMessage, Recovered, Store, StoreDone, StoreWork};

/// Nothing takes longer than this.
const PATIENCE: Nanos = Nanos::from_secs(30);
/// The longest that is waited between two looks.
const LOOK: Nanos = Nanos::from_millis(5);
/// A store that wants to be looked at again and again does not get on.
const LOOKS_MAX: u32 = 100_000;

/// A store under test and everything it said.
pub(super) struct Bench<H: Harness> {
    pub harness: H,
    pub batches: BTreeMap<BatchId, Option<Vec<Seq>>>,
    /// Everything that was accepted, in order.
    pub given: Vec<Given>,
    pub events: Vec<Event>,
    pub committed: AppendNo,
    pub failed: Option<AppendNo>,
    next_batch: u64,
    next_append: u64,
}

impl<H: Harness> Bench<H> {
    pub fn new(harness: H) -> Self {
        Self {
            harness,
            batches: BTreeMap::new(),
            given: Vec::new(),
            events: Vec::new(),
            committed: AppendNo(0),
            failed: None,
            next_batch: 0,
            next_append: 0,
        }
    }

    pub fn now(&self) -> Now {
        self.harness.now()
    }

    /// The wall clock in a while.
    pub fn in_secs(&self, secs: u64) -> Wall {
        self.now().wall + Nanos::from_secs(secs)
    }

    pub fn recover(&mut self) -> Recovered {
        let now = self.now();
        self.harness.store().recover(&now)
    }

    /// Dies and takes stock again. Appends count from the beginning.
    pub fn restart(&mut self) -> Recovered {
        self.harness.crash();
        self.events.clear();
        self.batches.clear();
        (self.committed, self.failed, self.next_append) = (AppendNo(0), None, 0);
        self.recover()
    }

    pub fn submit(&mut self, work: StoreWork) {
        let now = self.now();
        self.harness.store().submit(&now, work);
    }

    pub fn open(&mut self, flow: FlowId) {
        let key = key_of(flow);
        self.submit(StoreWork::OpenFlow { flow, key });
    }

    /// Submits messages without waiting.
    pub fn submit_batch(&mut self, messages: Vec<NewMessage>) -> BatchId {
        self.next_batch += 1;
        let batch = BatchId(self.next_batch);
        self.submit(StoreWork::Accept { batch, messages });
        batch
    }

    /// Has messages accepted.
    pub fn accept(&mut self, messages: Vec<NewMessage>) -> Vec<Seq> {
        let count = messages.len();
        let batch = self.submit_batch(messages);
        let seqs = self.answer(batch);
        let seqs = seqs.expect("a store that does not fail accepts messages");
        assert_eq!(seqs.len(), count, "one number per message");
        seqs
    }

    /// Has so many plain messages of a flow accepted.
    pub fn accept_plain(&mut self, flow: FlowId, count: usize) -> Vec<Seq> {
        self.accept((0..count).map(|_| plain(flow)).collect())
    }

    /// Waits for the answer to a batch.
    pub fn answer(&mut self, batch: BatchId) -> Option<Vec<Seq>> {
        self.wait("an answer to a batch", |bench| {
            bench.batches.get(&batch).cloned()
        })
    }

    /// Submits a record without waiting.
    pub fn append(&mut self, record: Record) -> AppendNo {
        self.next_append += 1;
        let no = AppendNo(self.next_append);
        self.submit(StoreWork::Append { no, record });
        no
    }

    /// Makes a record durable.
    pub fn commit(&mut self, record: Record) {
        let no = self.append(record);
        self.wait("a commit", |bench| (bench.committed >= no).then_some(()));
    }

    pub fn settle(&mut self, flow: FlowId, seq: Seq) {
        self.commit(settlement(flow, seq));
    }

    pub fn page(&mut self, flow: FlowId, max: u32) -> Vec<Head> {
        self.submit(StoreWork::Page { flow, max });
        self.wait("a page", |bench| {
            let is_page =
                |event: &mut Event| matches!(event, Event::Paged { flow: of, .. } if *of == flow);
            let page = bench.events.extract_if(.., is_page).next();
            page.and_then(|event| match event {
                Event::Paged { heads, .. } => Some(heads),
                _ => None,
            })
        })
    }

    /// The numbers on a page.
    pub fn page_seqs(&mut self, flow: FlowId, max: u32) -> Vec<Seq> {
        let heads = self.page(flow, max);
        heads.iter().map(|head| head.seq).collect()
    }

    /// Everything that a flow hands out.
    pub fn drain(&mut self, flow: FlowId) -> Vec<Seq> {
        let mut all = Vec::new();
        loop {
            let page = self.page_seqs(flow, 7);
            let is_last = page.len() < 7;
            all.extend(page);
            if is_last {
                return all;
            }
        }
    }

    /// Brings what is done by now.
    pub fn turn(&mut self) {
        let now = self.now();
        let mut done = Vec::new();
        self.harness.store().complete(&now, &mut done);
        for done in done {
            match done {
                StoreDone::Accepted { batch, given } => {
                    let seqs = given.iter().map(|given| given.seq).collect();
                    self.given.extend(given);
                    self.note_answer(batch, Some(seqs));
                }
                StoreDone::AcceptFailed { batch } => self.note_answer(batch, None),
                StoreDone::Event(Event::Committed { through }) => {
                    assert!(through > self.committed, "a commit is told of once");
                    let failed = self.failed.unwrap_or_default();
                    assert!(through > failed, "what was lost is not committed later");
                    self.committed = through;
                }
                StoreDone::Event(Event::CommitFailed { through }) => {
                    assert!(through > self.committed, "what is durable is not lost");
                    self.failed = self.failed.max(Some(through));
                }
                StoreDone::Event(event) => self.events.push(event),
            }
        }
    }

    fn note_answer(&mut self, batch: BatchId, answer: Option<Vec<Seq>>) {
        let last = self.batches.last_key_value();
        assert!(
            last.is_none_or(|(last, _)| *last < batch),
            "batches are answered once each, in order"
        );
        self.batches.insert(batch, answer);
    }

    /// Looks until `wanted` is there.
    pub fn wait<T>(&mut self, what: &str, mut wanted: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = self.now().mono + PATIENCE;
        for _ in 0..LOOKS_MAX {
            self.turn();
            if let Some(found) = wanted(self) {
                return found;
            }
            let now = self.now().mono;
            assert!(now < deadline, "waited in vain for {what}");
            self.look_on(now + LOOK);
        }
        unreachable!("a store that has nothing to say asks to be looked at");
    }

    /// Time passes until the store wants a look, at most until `latest`.
    fn look_on(&mut self, latest: Mono) {
        let now = self.now().mono;
        let next = self.harness.store().next_completion().min(latest);
        if next > now {
            self.harness.advance(next);
        }
    }

    /// Time passes, with a look whenever the store wants one.
    pub fn pass(&mut self, span: Nanos) {
        let end = self.now().mono + span;
        let mut looks = 0;
        loop {
            self.turn();
            if self.now().mono >= end && self.harness.store().next_completion() > end {
                return;
            }
            looks += 1;
            assert!(
                looks < LOOKS_MAX,
                "a store that has nothing to say asks to be looked at"
            );
            self.look_on(end);
        }
    }

    /// Messages of a flow that the store spoke of, and no longer.
    pub fn take_announced(&mut self, flow: FlowId) -> (u32, u32) {
        let (mut accepted, mut due) = (0, 0);
        self.events.retain(|event| match *event {
            Event::Accepted { flow: of, count } if of == flow => {
                accepted += count;
                false
            }
            Event::Due { flow: of, count } if of == flow => {
                due += count;
                false
            }
            _ => true,
        });
        (accepted, due)
    }

    /// Messages of a flow that the store called expired, and no longer.
    pub fn take_expired(&mut self, flow: FlowId) -> Vec<(Seq, bool)> {
        let mut expired = Vec::new();
        self.events.retain(|event| match event {
            Event::Expired {
                flow: of,
                seqs,
                held,
            } if *of == flow => {
                expired.extend(seqs.iter().map(|seq| (*seq, *held)));
                false
            }
            _ => true,
        });
        expired
    }
}

/// The key of a flow in these cases.
pub(super) fn key_of(flow: FlowId) -> Arc<FlowKey> {
    Arc::new(FlowKey::to(Destination::isp(format!("isp-{flow}"))))
}

/// A message without anything special.
pub(super) fn plain(flow: FlowId) -> NewMessage {
    NewMessage {
        flow,
        idempotency_key: None,
        not_before: None,
        expires_at: Wall::NEVER,
        recipient: Recipient(7),
        cost: 1,
        envelope: Arc::from(*b"to somebody"),
        body: Arc::from(*b"hello"),
    }
}

/// A message with an idempotency key.
pub(super) fn keyed(flow: FlowId, key: &str) -> NewMessage {
    NewMessage {
        idempotency_key: Some(Arc::from(key)),
        ..plain(flow)
    }
}

/// The record of a delivered message.
pub(super) fn settlement(flow: FlowId, seq: Seq) -> Record {
    Record::Settlement {
        flow,
        seq,
        state: State::Delivered,
        account: None,
        error: None,
    }
}

/// The record of a message that steps aside.
pub(super) fn deferral(flow: FlowId, seq: Seq, until: Wall) -> Record {
    Record::Deferral {
        flow,
        seq,
        until,
        attempt: None,
    }
}
