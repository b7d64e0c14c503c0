//! The store: the index on the caller's thread, the journal behind it.
//!
//! What is submitted goes to the writer at once and reaches the index when the
//! writer says that it is durable. Nothing here waits for the disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use outflow_core::engine::action::Record as EngineRecord;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::history::History;
use outflow_ports::parcel::{ParcelRef, ParcelSource};
use outflow_ports::receipts::Receipts;
use outflow_ports::registry::Registry;
use outflow_ports::store::{Found, Recovered, Store, StoreDone, StoreWork};
use outflow_ports::suppression::Suppressions;

use crate::boot::{BootTime, LastRecord};
use crate::clerk::Clerk;
use crate::index::Index;
use crate::index::slots::Stand;
use crate::journal::list::{CleanStop, SegmentList};
use crate::journal::place::Place;
use crate::journal::task::{Answer, Order, Task};
use crate::journal::writer::Answers;
use crate::library::Library;
use crate::live::{Asks, LiveReceipts};
use crate::lock::Lock;
use crate::opening::Opening;
use crate::reclaim::Reclaim;
use crate::record::Record;
use crate::settings::Settings;

/// A durable queue on one machine.
pub struct EmbeddedStore {
    pub(crate) index: Index,
    pub(crate) orders: Option<Sender<Order>>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) generation: u64,
    /// Orders that are not answered yet.
    pub(crate) outstanding: usize,
    /// Flows whose names are on their way to the disk.
    pub(crate) opening: BTreeMap<FlowId, Opening>,
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
    pub(crate) list: Arc<SegmentList>,
    /// When counts of limits may have been lost.
    pub(crate) counts_lost_at: Option<Wall>,
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
            self.clerk
                .as_ref()
                .map_or_else(Arc::default, Clerk::unwritten),
        ))
    }

    /// What operators set.
    pub fn registry(&self) -> Arc<dyn Registry> {
        Arc::new(self.record.clone())
    }

    /// Who is not sent to any more.
    pub fn suppressions(&self) -> Arc<dyn Suppressions> {
        Arc::new(self.record.clone())
    }

    /// What was sent where.
    pub fn history(&self) -> Arc<dyn History> {
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
        self.outstanding += 1;
        let order = Order { generation, task };
        let lost = match &self.orders {
            Some(orders) => orders.send(order).err().map(|lost| lost.0),
            None => Some(order),
        };
        if let Some(Order { task, .. }) = lost {
            // The writer is gone: nothing is durable from now on, and nobody
            // waits in vain.
            self.orders = None;
            self.answers.push(Answer {
                tasks: vec![(task, false)],
                through: self.through,
                lost: generation,
                took: Nanos::ZERO,
            });
        }
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
            Some((FlowId(index as u32), Arc::clone(&flow.key), ready))
        });
        let limits = self.index.limits.iter();
        let limits = limits.map(|(key, reserved)| (key.clone(), reserved.limit.clone()));
        let holds = self.index.holds.iter();
        let holds = holds.map(|(key, (hold, _))| (key.clone(), *hold));
        let adapted = self.index.adapted.iter();
        let adapted = adapted.map(|(key, (lore, _))| (key.clone(), lore.clone()));
        let boot = BootTime {
            id: self.settings.boot.id(),
            time: self.settings.boot.time(),
        };
        let reserved = self.index.flows.iter().enumerate();
        let reserved = reserved.filter_map(|(index, flow)| {
            let is_dead = flow.as_ref()?.live == 0;
            is_dead.then_some(FlowId(index as u32))
        });
        Recovered {
            counts_lost_at: self.counts_lost_at,
            flows: flows.collect(),
            reserved: reserved.collect(),
            limits: limits.collect(),
            holds: holds.collect(),
            adapted: adapted.collect(),
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
            StoreWork::OpenFlow { flow, key } => {
                self.index.keep_open(flow);
                if !self.is_named(flow, &key) {
                    self.open_flow(flow, key);
                }
            }
            StoreWork::CloseFlow { flow, request } => self.index.close(flow, request),
            StoreWork::Forget { seqs } => {
                self.index.expect_forgetting(&seqs);
                self.order(Task::Forget { seqs });
            }
            StoreWork::Accept { batch, messages } => self.accept(now, batch, messages),
            StoreWork::Append { no, record } => {
                if let EngineRecord::Moved { to, .. } = &record {
                    self.name_again(*to);
                }
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
        self.index.end_flows(&self.opening, done);
        self.answer_asks();
        self.reclaim_some(now);
    }

    fn next_completion(&self) -> Mono {
        let (mono, wall) = self.clocks;
        if !self.pages.is_empty() || self.index.has_ending(&self.opening) {
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

    fn flow_key(&self, flow: FlowId) -> Option<&Arc<FlowKey>> {
        self.index.flow(flow).map(|flow| &flow.key)
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
        // Whoever steps a store may leave orders undone.
        let mut is_whole = self.orders.take().is_some() && !self.threads.is_empty();
        self.reclaim.close();
        for thread in self.threads.drain(..) {
            is_whole &= thread.join().is_ok();
        }
        self.clerk = None;
        self.record.close();
        // A writer that is gone has answered nothing since.
        let answers = self.answers.take();
        let through = answers.iter().map(|answer| answer.through);
        let clean = CleanStop {
            through: through.fold(self.through, u64::max),
            applied: self.record.applied(),
        };
        if is_whole {
            // Without the mark the next start takes this for a crash.
            let _ = self.list.stop(clean);
        }
    }
}
