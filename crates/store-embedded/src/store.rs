//! The store: the index on the caller's thread, the journal behind it.
//!
//! What is submitted goes to the writer at once and reaches the index when the
//! writer says that it is durable. Nothing here waits for the disk.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use outflow_core::engine::event::Event;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::Seq;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::intake::Given;
use outflow_ports::parcel::{ParcelRef, ParcelSource};
use outflow_ports::receipts::Receipts;
use outflow_ports::registry::Registry;
use outflow_ports::store::{BatchId, Found, NewMessage, Recovered, Store, StoreDone, StoreWork};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::boot::{BootTime, LastRecord};
use crate::clerk::{Clerk, Papers};
use crate::index::Index;
use crate::index::slots::{Stamp, Stand};
use crate::journal::entry::OldKey;
use crate::journal::place::Place;
use crate::journal::task::{Answer, Numbered, Order, Task};
use crate::journal::writer::Answers;
use crate::library::Library;
use crate::live::{Asks, LiveReceipts};
use crate::lock::Lock;
use crate::reclaim::Reclaim;
use crate::record::Record;
use crate::settings::Settings;

/// A batch with more bytes than this is refused.
const BATCH_BYTES_MAX: usize = 256 << 20;
/// A message with more bytes than this is refused.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Times of commits that are kept for whoever asks.
const COMMIT_TIMES_MAX: usize = 1_024;

/// A durable queue on one machine.
pub struct EmbeddedStore {
    pub(crate) index: Index,
    pub(crate) orders: Option<Sender<Order>>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) generation: u64,
    /// Orders that are not answered yet.
    pub(crate) outstanding: usize,
    /// Flows whose names are on their way to the disk.
    pub(crate) opening: BTreeSet<FlowId>,
    pub(crate) pages: Vec<(FlowId, u32)>,
    pub(crate) last_given: Seq,
    pub(crate) last_record: Option<LastRecord>,
    pub(crate) key_seed: u64,
    /// Whether the record may know keys that are not in memory.
    pub(crate) keys_moved: bool,
    /// The clocks when last called.
    pub(crate) clocks: (Mono, Wall),
    /// The journal is durable up to here, as far as is known here.
    pub(crate) through: u64,
    pub(crate) commit_times: Vec<Nanos>,
    pub(crate) asks: Arc<Asks>,
    pub(crate) reclaim: Reclaim,
    pub(crate) library: Arc<Library>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) clerk: Option<Clerk>,
    pub(crate) record: Record,
    pub(crate) settings: Settings,
    pub(crate) lock: Option<Lock>,
}

impl EmbeddedStore {
    /// What became of messages, and what happened so far to live ones.
    pub fn receipts(&self) -> Arc<dyn Receipts> {
        Arc::new(LiveReceipts::new(
            self.record.clone(),
            Arc::clone(&self.library),
            Arc::clone(&self.asks),
        ))
    }

    /// What operators set.
    pub fn registry(&self) -> Arc<dyn Registry> {
        Arc::new(self.record.clone())
    }

    /// Whether answers are still to come from the journal.
    pub const fn is_busy(&self) -> bool {
        self.outstanding > 0
    }

    /// How long commits took since last asked.
    pub fn take_commit_times(&mut self) -> Vec<Nanos> {
        std::mem::take(&mut self.commit_times)
    }

    /// Live messages and dead letters.
    pub fn len(&self) -> usize {
        self.index.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Messages that are done with and whose receipts are not written yet.
    pub fn unrecorded(&self) -> usize {
        let waiting = self.clerk.as_ref().map_or(0, Clerk::waiting);
        waiting + self.record.backlog()
    }

    pub(crate) fn order(&mut self, task: Task) {
        let generation = self.generation;
        if let Some(orders) = &self.orders
            && orders.send(Order { generation, task }).is_ok()
        {
            self.outstanding += 1;
        }
    }

    fn next_seq(&mut self) -> Seq {
        loop {
            self.last_given.0 += 1;
            let low = self.last_given.0 as u32;
            let is_special = low == 0 || low == u32::MAX;
            if !is_special && self.index.slots.find_low(low).is_none() {
                return self.last_given;
            }
        }
    }

    fn hash(&self, key: &str) -> u64 {
        xxh3_64_with_seed(key.as_bytes(), self.key_seed).max(1)
    }

    fn accept(&mut self, now: &Now, batch: BatchId, messages: Vec<NewMessage>) {
        let bytes = |it: &NewMessage| it.body.len() + it.envelope.len();
        let is_known = |id: FlowId| self.index.flow(id).is_some() || self.opening.contains(&id);
        let clerk_waits = self.clerk.as_ref().map_or(0, Clerk::waiting);
        let refused = clerk_waits > self.settings.unrecorded_max
            || messages.iter().map(bytes).sum::<usize>() > BATCH_BYTES_MAX
            || messages.iter().any(|it| bytes(it) > MESSAGE_BYTES_MAX)
            || messages.iter().any(|it| !is_known(it.flow));
        if refused {
            let messages = Vec::new();
            return self.order(Task::Accept {
                batch,
                messages,
                refused,
            });
        }
        let accepted_at = Stamp::floor(now.wall).wall();
        let mut numbered = Vec::with_capacity(messages.len());
        for message in messages {
            self.name_again(message.flow);
            if let Some(flow) = self.index.flow_mut(message.flow) {
                flow.pending += 1;
            }
            let given = Given {
                seq: self.next_seq(),
                accepted_at,
                known: false,
            };
            numbered.push(self.numbered(given, message));
        }
        self.order(Task::Accept {
            batch,
            messages: numbered,
            refused,
        });
    }

    fn numbered(&mut self, given: Given, message: NewMessage) -> Numbered {
        let key = message.idempotency_key.as_deref();
        let key = key.map_or(0, |key| self.hash(key));
        let known = match key {
            0 => None,
            key => self.find_key(key),
        };
        if known.is_none() && key != 0 {
            self.index.keys.reserve(key, given);
        }
        Numbered {
            given: known.unwrap_or(given),
            key,
            message,
            root: Place::NONE,
            body: Place::NONE,
        }
    }

    fn find_key(&self, key: u64) -> Option<Given> {
        let known = self.index.keys.find(&self.index.slots, key);
        known.or_else(|| {
            // Only a store that remembers more keys than fit in memory asks.
            let (seq, accepted_at) = self.keys_moved.then(|| self.record.find_key(key))??;
            Some(Given {
                seq,
                accepted_at,
                known: true,
            })
        })
    }

    /// A flow whose name went with an old segment is named again.
    fn name_again(&mut self, id: FlowId) {
        let Some(flow) = self.index.flow(id) else {
            return;
        };
        if flow.named == Place::NONE && !self.opening.contains(&id) {
            let key = Arc::clone(&flow.key);
            self.open_flow(id, key);
        }
    }

    pub(crate) fn open_flow(&mut self, flow: FlowId, key: Arc<outflow_core::flow::FlowKey>) {
        self.opening.insert(flow);
        let place = Place::NONE;
        self.order(Task::Open { flow, key, place });
    }

    /// Takes one answer of the writer in.
    fn hear(&mut self, now: &Now, answer: Answer, done: &mut Vec<StoreDone>) {
        let (mut committed, mut lost): (Option<AppendNo>, Option<AppendNo>) = (None, None);
        let mut again = Vec::new();
        let mut failed = false;
        self.outstanding = self.outstanding.saturating_sub(answer.tasks.len());
        for (task, durable) in answer.tasks {
            if let Task::Append { no: Some(no), .. } = &task {
                let (this, other) = match durable {
                    true => (&mut committed, &mut lost),
                    false => (&mut lost, &mut committed),
                };
                tell(other.take(), !durable, done);
                *this = Some(*no);
            }
            if durable {
                self.apply(now, task, answer.through, done);
            } else {
                failed = true;
                again.extend(self.lose(task, done));
            }
        }
        tell(committed, true, done);
        tell(lost, false, done);
        if failed {
            self.generation += 1;
        } else {
            self.through = answer.through;
            if self.commit_times.len() < COMMIT_TIMES_MAX {
                self.commit_times.push(answer.took);
            }
        }
        for task in again {
            self.order(task);
        }
        self.index.announce(done);
    }

    fn apply(&mut self, now: &Now, task: Task, through: u64, done: &mut Vec<StoreDone>) {
        match task {
            Task::Open { flow, key, place } => {
                self.opening.remove(&flow);
                self.index.open(flow, key, place);
            }
            Task::Accept {
                batch,
                messages,
                refused,
            } => {
                if refused {
                    return done.push(StoreDone::AcceptFailed { batch });
                }
                self.index.arrived(&messages);
                for it in messages.iter().filter(|it| !it.given.known) {
                    self.index.accept(now.wall, it);
                    self.reclaim.saw(it.root, it.body);
                }
                let given = messages.iter().map(|it| it.given).collect();
                done.push(StoreDone::Accepted { batch, given });
            }
            Task::Append {
                no,
                record,
                context,
                place,
            } => {
                if no.is_none() {
                    self.reclaim.answered();
                }
                self.reclaim.saw(place, Place::NONE);
                self.index.apply(now.wall, record, &context, place);
            }
            Task::Forget { seqs } => self.index.forget(&seqs),
            Task::Keep { messages } => {
                self.reclaim.answered();
                for it in messages {
                    self.reclaim.saw(it.now, Place::NONE);
                    self.kept(&it);
                }
            }
            Task::Keys { keys, .. } => {
                self.index.keys.restate(&keys, (through >> 32) as u32);
                self.reclaim.answered();
            }
        }
    }

    /// A task did not reach the disk. What the store itself tries again.
    fn lose(&mut self, task: Task, done: &mut Vec<StoreDone>) -> Option<Task> {
        match task {
            kept @ (Task::Open { .. } | Task::Forget { .. }) => return Some(kept),
            Task::Accept {
                batch, messages, ..
            } => {
                self.index.arrived(&messages);
                for it in messages.iter().filter(|it| !it.given.known && it.key != 0) {
                    self.index.keys.release(it.key);
                }
                done.push(StoreDone::AcceptFailed { batch });
            }
            Task::Append { no, record, .. } => {
                if no.is_some() {
                    self.index.lose(&record);
                } else {
                    self.reclaim.answered();
                }
            }
            Task::Keep { messages } => self.reclaim.not_kept(messages),
            Task::Keys { .. } => self.reclaim.answered(),
        }
        None
    }

    /// Hands over what the record is to know.
    fn hand_over(&mut self, now: Wall) {
        let mut moved: Vec<OldKey> = Vec::new();
        self.index.keys.forget(now, &mut moved);
        if !moved.is_empty() && !self.keys_moved {
            self.keys_moved = true;
            let (keys, moved) = (Vec::new(), true);
            self.order(Task::Keys { keys, moved });
        }
        let finished = std::mem::take(&mut self.index.finished);
        let feedback = std::mem::take(&mut self.index.feedback);
        if let Some(clerk) = &self.clerk {
            clerk.hand_over(Papers {
                finished,
                feedback,
                keys: moved,
                through: self.through,
            });
        }
    }
}

fn tell(through: Option<AppendNo>, durable: bool, done: &mut Vec<StoreDone>) {
    if let Some(through) = through {
        done.push(StoreDone::Event(match durable {
            true => Event::Committed { through },
            false => Event::CommitFailed { through },
        }));
    }
}

impl Store for EmbeddedStore {
    fn recover(&mut self, now: &Now) -> Recovered {
        self.clocks = (now.mono, now.wall);
        self.index.rebuild(now.wall);
        let flows = self.index.flows.iter().enumerate();
        let flows = flows.filter_map(|(index, flow)| {
            let flow = flow.as_ref().filter(|flow| flow.live > 0)?;
            let ready = flow.due.len() + flow.fresh.len();
            Some((FlowId(index as u32), (*flow.key).clone(), ready))
        });
        let limits = self.index.limits.iter();
        let limits = limits.map(|(key, reserved)| (key.clone(), reserved.limit.clone()));
        let boot = BootTime {
            id: self.settings.boot.id(),
            time: self.settings.boot.time(),
        };
        Recovered {
            flows: flows.collect(),
            limits: limits.collect(),
            downtime: self
                .last_record
                .map_or(Nanos::ZERO, |last| last.downtime(now, boot)),
            fresh: self.last_record.is_none(),
        }
    }

    fn submit(&mut self, now: &Now, work: StoreWork) {
        self.clocks = (now.mono, now.wall);
        match work {
            StoreWork::Page { flow, max } => self.pages.push((flow, max)),
            StoreWork::OpenFlow { flow, key } => self.open_flow(flow, key),
            StoreWork::Forget { seqs } => self.order(Task::Forget { seqs }),
            StoreWork::Accept { batch, messages } => self.accept(now, batch, messages),
            StoreWork::Append { no, record } => {
                let context = self.index.expect(now.wall, &record);
                self.order(Task::Append {
                    no: Some(no),
                    record,
                    context,
                    place: Place::NONE,
                });
            }
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>) {
        self.clocks = (now.mono, now.wall);
        let answers = self.answers.take();
        let heard = !answers.is_empty();
        for answer in answers {
            self.hear(now, answer, done);
        }
        if heard {
            self.hand_over(now.wall);
        }
        self.index.ripen(now.wall, done);
        for (flow, max) in std::mem::take(&mut self.pages) {
            self.index.page(now.wall, flow, max, done);
        }
        self.answer_asks();
        self.reclaim_some(now);
    }

    fn next_completion(&self) -> Mono {
        let (mono, wall) = self.clocks;
        if !self.pages.is_empty() {
            return mono;
        }
        let ripe = self.index.next_ripe();
        let ripe = ripe.map_or(Mono::NEVER, |at| mono + at.since(wall));
        ripe.min(self.reclaim.next_look())
    }

    fn last_seq(&self) -> Seq {
        self.last_given
    }

    fn ahead(&self, flow: FlowId, seq: Seq) -> Option<u64> {
        let slots = &self.index.slots;
        let slot = slots.get(seq)?;
        let flow = self.index.flow(flow).filter(|_| slot.flow() == flow)?;
        match slot.stand {
            Stand::Due => Some(flow.due.before(slots, slot.ordinal)),
            Stand::Fresh => {
                Some(u64::from(flow.due.len()) + flow.fresh.before(slots, slot.ordinal))
            }
            _ => None,
        }
    }

    fn parcel(&self, seq: Seq) -> Option<ParcelRef> {
        let slot = self.index.slots.get(seq)?;
        let library: Arc<dyn ParcelSource> = Arc::clone(&self.library) as _;
        Some(ParcelRef::new(library, slot.root.0, slot.body.0))
    }

    fn find(&self, seq: Seq) -> Option<Found> {
        let slot = self.index.slots.get(seq)?;
        Some(self.index.found(seq, slot))
    }

    fn scan(&self, from: Seq, looks: usize, found: &mut dyn FnMut(Found)) -> Option<Seq> {
        let mut slots = self.index.slots.iter(from);
        for (seq, slot) in slots.by_ref().take(looks) {
            found(self.index.found(seq, slot));
        }
        slots.next().map(|(seq, _)| seq)
    }

    fn deferred(&self, found: &mut dyn FnMut(FlowId, u64)) {
        for (index, flow) in self.index.flows.iter().enumerate() {
            let later = flow.as_ref().map_or(0, |flow| flow.later.len());
            if later > 0 {
                found(FlowId(index as u32), u64::from(later));
            }
        }
    }
}

/// Everything handed over is written before the threads end.
impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.orders = None;
        self.reclaim.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.clerk = None;
        self.record.close();
    }
}
