//! A durable queue that lives in memory and crashes on demand.
//!
//! What is durable stands in an image; what was handed over and is not durable
//! stands in a tail and is gone after [`MemoryStore::crash`]. Commits take time,
//! may be slow and may fail, as [`Faults`] says.
//!
//! Reading order: [`Faults`]; `commit` (the way to the disk), `image` (what is
//! durable and where it waits), `records` (what records do), `ripe` (due times,
//! expiry, pages); `slab`, `list`, `wheel`, `flow`.

mod commit;
mod faults;
mod flow;
mod image;
mod list;
mod records;
mod ripe;
mod slab;
mod wheel;

use std::sync::Arc;

use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Head, Seq, State};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::parcel::ParcelRef;
use outflow_ports::store::{Found, Recovered, Store, StoreDone, StoreWork};

pub use self::commit::Commits;
use self::commit::{Tail, Work};
pub use self::faults::Faults;
use self::image::Image;
use self::slab::{Entry, Place};

/// What a store is told once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long the key of a settled message is remembered.
    pub key_life: Nanos,
    /// Due times are rounded up to this.
    pub due_grain: Nanos,
    /// Expiries are rounded up to this.
    pub expiry_grain: Nanos,
    /// Whether the monotonic clock goes on over a restart. If not, downtime is
    /// measured on the wall clock.
    pub boot_clock: bool,
    /// Whether to note every settled message for [`MemoryStore::take_settled`].
    pub keep_settled: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            key_life: Nanos::from_secs(24 * 3_600),
            due_grain: Nanos::from_millis(1),
            expiry_grain: Nanos::from_millis(10),
            boot_clock: true,
            keep_settled: false,
        }
    }
}

/// A message that is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Of which flow.
    pub flow: FlowId,
    /// Which message.
    pub seq: Seq,
    /// What became of it.
    pub state: State,
}

/// A live message, as the disk knows it.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    /// Of which flow.
    pub flow: FlowId,
    /// What the engine is told of it.
    pub head: &'a Head,
    /// When it is to be sent, if it was put off.
    pub due_at: Option<Wall>,
    /// What is to be delivered.
    pub body: &'a Arc<[u8]>,
}

/// A durable queue in memory.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    settings: Settings,
    faults: Faults,
    image: Image,
    tail: Tail,
    last_given: Seq,
    pages: Vec<(FlowId, u32)>,
    /// The clocks when last called.
    clocks: (Mono, Wall),
}

impl MemoryStore {
    /// An empty store.
    pub fn new(settings: Settings, faults: Faults) -> Self {
        Self {
            settings,
            faults,
            image: Image::new(&settings),
            tail: Tail::default(),
            last_given: Seq(0),
            pages: Vec::new(),
            clocks: (Mono(0), Wall(0)),
        }
    }

    /// The store after a crash of its process: all that is not durable is lost.
    #[must_use]
    pub fn crash(mut self) -> Self {
        let (mono, wall) = self.clocks;
        let entropy = Entropy(0);
        let now = Now {
            mono,
            wall,
            entropy,
        };
        self.tail.crash(&now, &mut self.faults, &mut self.image);
        self.pages.clear();
        self.last_given = self.image.last;
        self
    }

    /// What may go wrong from now on.
    pub fn faults_mut(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// How commits went so far.
    pub fn commits(&self) -> Commits {
        self.tail.commits
    }

    /// How many durable messages are alive.
    pub fn live(&self) -> usize {
        self.image.slab.len()
    }

    /// How many messages ended in this state.
    pub fn ended(&self, state: State) -> u64 {
        let count = self.image.finals.get(state as usize);
        count.copied().unwrap_or(0)
    }

    /// A live message.
    pub fn get(&self, seq: Seq) -> Option<Live<'_>> {
        let entry = self.image.slab.get(self.image.slab.find(seq)?)?;
        Some(Live {
            flow: entry.flow,
            head: &entry.head,
            due_at: entry.due_at,
            body: &entry.content.body,
        })
    }

    /// All live messages, in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = Live<'_>> {
        let slots = self.image.slab.in_order();
        let entries = slots.filter_map(|slot| self.image.slab.get(slot));
        entries.map(|entry| Live {
            flow: entry.flow,
            head: &entry.head,
            due_at: entry.due_at,
            body: &entry.content.body,
        })
    }

    /// The messages settled since last asked, if they are noted.
    pub fn take_settled(&mut self) -> Vec<Settled> {
        std::mem::take(&mut self.image.settled)
    }

    fn downtime(&self, now: &Now) -> Nanos {
        match self.tail.last_record {
            None => Nanos::ZERO,
            Some((mono, _)) if self.settings.boot_clock => now.mono.since(mono),
            Some((_, wall)) => now.wall.since(wall),
        }
    }
}

impl Store for MemoryStore {
    fn recover(&mut self, now: &Now) -> Recovered {
        self.clocks = (now.mono, now.wall);
        self.image.rebuild(now.wall);
        let flows = self.image.flows.iter().enumerate();
        let flows = flows.filter_map(|(index, flow)| {
            let flow = flow.as_ref().filter(|flow| flow.live > 0)?;
            let ready = flow.due.len() + flow.fresh.len();
            Some((FlowId(index as u32), Arc::clone(&flow.key), ready))
        });
        let reserved = self.image.flows.iter().enumerate();
        let reserved = reserved.filter_map(|(index, flow)| {
            let is_dead = flow.as_ref()?.live == 0;
            is_dead.then_some(FlowId(index as u32))
        });
        Recovered {
            counts_lost_at: None,
            flows: flows.collect(),
            reserved: reserved.collect(),
            limits: self.image.limits.clone(),
            holds: self.image.holds.clone(),
            adapted: self.image.adapted.clone(),
            downtime: self.downtime(now),
            fresh: self.tail.last_record.is_none(),
        }
    }

    fn submit(&mut self, now: &Now, work: StoreWork) {
        self.clocks = (now.mono, now.wall);
        let work = match work {
            StoreWork::Page { flow, max } => {
                self.pages.push((flow, max));
                return;
            }
            StoreWork::OpenFlow { flow, key } => Work::Open { flow, key },
            StoreWork::CloseFlow { flow, request } => Work::Close { flow, request },
            StoreWork::Forget { seqs } => Work::Forget { seqs },
            StoreWork::Accept { batch, messages } => {
                let first = Seq(self.last_given.0 + 1);
                self.last_given.0 += messages.len() as u64;
                Work::Accept {
                    batch,
                    first,
                    messages,
                }
            }
            StoreWork::Append { no, record } => {
                self.image.expect(&record);
                Work::Append { no, record }
            }
        };
        self.tail.push(now.mono, work, &mut self.faults);
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>) {
        self.clocks = (now.mono, now.wall);
        self.tail
            .complete(now, &mut self.faults, &mut self.image, done);
        self.image.ripen(now.wall, done);
        for (flow, max) in self.pages.drain(..) {
            self.image.page(now.wall, flow, max, done);
        }
    }

    fn next_completion(&self) -> Mono {
        let (mono, wall) = self.clocks;
        if !self.pages.is_empty() {
            return mono;
        }
        let ripe = [self.image.due.next(), self.image.expiry.next()];
        let ripe = ripe.into_iter().flatten().min();
        let ripe = ripe.map_or(Mono::NEVER, |at| mono + at.since(wall));
        self.tail.next_completion().min(ripe)
    }

    fn last_seq(&self) -> Seq {
        self.last_given
    }

    fn ahead(&self, flow: FlowId, seq: Seq) -> Option<u64> {
        let slab = &self.image.slab;
        let entry = slab.get(slab.find(seq)?)?;
        let flow = self.image.flow(flow).filter(|_| entry.flow == flow)?;
        match entry.place {
            Place::Due => Some(flow.due.before(slab, entry.ordinal)),
            Place::Fresh => {
                Some(u64::from(flow.due.len()) + flow.fresh.before(slab, entry.ordinal))
            }
            _ => None,
        }
    }

    fn parcel(&self, seq: Seq) -> Option<ParcelRef> {
        let content = self.image.entry(seq)?.content.clone();
        Some(ParcelRef::new(Arc::new(content), 0, 0))
    }

    fn find(&self, seq: Seq) -> Option<Found> {
        let dead = !self.image.is_live(seq);
        self.image.entry(seq).map(|entry| found(entry, dead))
    }

    fn flow_key(&self, flow: FlowId) -> Option<&Arc<FlowKey>> {
        self.image.flow(flow).map(|flow| &flow.key)
    }

    fn scan(&self, from: Seq, looks: usize, each: &mut dyn FnMut(Found)) -> Option<Seq> {
        let live = self.image.slab.in_order();
        let live = live.filter_map(|slot| self.image.slab.get(slot));
        let live = live.map(|entry| found(entry, false));
        let dead = self.image.dead.values().map(|entry| found(entry, true));
        let mut all: Vec<Found> = live.chain(dead).filter(|it| it.head.seq >= from).collect();
        all.sort_unstable_by_key(|it| it.head.seq);
        let next = all.get(looks).map(|it| it.head.seq);
        all.into_iter().take(looks).for_each(each);
        next
    }

    fn deferred(&self, each: &mut dyn FnMut(FlowId, u64)) {
        for (index, flow) in self.image.flows.iter().enumerate() {
            let later = flow.as_ref().map_or(0, |flow| flow.later.len());
            if later > 0 {
                each(FlowId(index as u32), u64::from(later));
            }
        }
    }
}

fn found(entry: &Entry, dead: bool) -> Found {
    Found {
        flow: entry.flow,
        head: entry.head,
        due_at: entry.due_at.filter(|_| entry.place == Place::Later),
        dead,
    }
}

#[cfg(test)]
mod tests;
