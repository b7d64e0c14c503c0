//! A store without threads: whoever opens it has its parts work, one step at a
//! time, in an order and at times of its own.
//!
//! The parts are those that production gives a thread each, and do the same.
//! Time is the clock of the settings, chance comes from a seed, so two runs with
//! the same steps leave the same bytes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard};

use outflow_core::entropy::Entropy;
use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Nanos};
use rusqlite::Connection;

use crate::clerk::{Desk, Open, Papers, Written};
use crate::disk::Disk;
use crate::journal::task::{Order, Task};
use crate::journal::writer::{self, Group, Syncs, Writer};
use crate::keeper::{self, Chore, Keeper};
use crate::open::{Begin, Crew, OpenError, Opened};
use crate::record::{Applier, Record, RecordError};
use crate::settings::Settings;
use crate::store::EmbeddedStore;

/// How long the writer rests after a commit that failed.
pub const FAILED_PAUSE: Nanos = writer::FAILED_PAUSE;
/// How often the keeper looks around by itself while something waits.
pub const KEEPER_ROUND: Nanos = keeper::ROUND;

/// A record in memory: it lives as long as this does, whatever becomes of the
/// stores that were opened over it.
#[derive(Debug)]
pub struct RecordMemory {
    name: PathBuf,
    _kept: Mutex<Connection>,
}

impl RecordMemory {
    /// An empty one.
    pub fn new() -> Result<Self, RecordError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let no = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = PathBuf::from(format!("file:record-{no}?mode=memory&cache=shared"));
        let kept = Connection::open(&name)?;
        Ok(Self {
            name,
            _kept: Mutex::new(kept),
        })
    }
}

/// What works for a store.
pub struct Parts {
    /// Group commit.
    pub writer: WriterPart,
    /// Spares, rewriting, giving up.
    pub keeper: KeeperPart,
    /// Receipts on their way to the record.
    pub clerk: ClerkPart,
    /// The record.
    pub record: RecordPart,
}

impl EmbeddedStore {
    /// Opens a store whose parts are stepped. What chance there is comes from
    /// the seed: another one each time that a disk is opened.
    pub fn open_stepped(
        disk: Arc<dyn Disk>,
        record: &RecordMemory,
        settings: Settings,
        seed: u64,
    ) -> Result<(Self, Opened, Parts), OpenError> {
        let clock = Arc::clone(&settings.boot);
        let (record, applier) = Record::open_idle(&record.name, settings.record, clock)?;
        let mut entropy = Entropy(seed);
        let begin = Begin {
            disk,
            record,
            settings,
            wake: Arc::new(|| {}),
            seeds: [entropy.draw(), entropy.draw()],
        };
        let syncs = Syncs::InTurn {
            body_first: entropy.draw().is_multiple_of(2),
        };
        let (store, opened, crew) = Self::open_idle(begin, syncs)?;
        Ok((store, opened, Parts::of(crew, applier)))
    }
}

impl Parts {
    fn of(crew: Crew, applier: Applier) -> Self {
        Self {
            writer: WriterPart(Arc::new(Mutex::new(WriterDesk {
                writer: crew.writer,
                orders: crew.orders,
                group: None,
                broken: None,
            }))),
            keeper: KeeperPart(Arc::new(Mutex::new(KeeperDesk {
                keeper: crew.keeper,
                chores: crew.chores,
                chore: None,
            }))),
            clerk: ClerkPart {
                desk: crew.desk,
                pile: VecDeque::new(),
                open: None,
            },
            record: RecordPart { applier },
        }
    }
}

/// A way to break a writer, to see whether that is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It says that bodies go to a new segment from now on, and they do not.
    TurnsInName,
    /// It says that names of flows are durable, and does not write them.
    ForgetsNames,
}

impl Broken {
    /// Whether this is answered and not written.
    fn skips(self, task: &Task) -> bool {
        match self {
            Self::TurnsInName => matches!(task, Task::Turn),
            Self::ForgetsNames => matches!(task, Task::Open { .. }),
        }
    }
}

/// Group commit. Clones are the same writer.
#[derive(Clone)]
pub struct WriterPart(Arc<Mutex<WriterDesk>>);

struct WriterDesk {
    writer: Writer,
    orders: Receiver<Order>,
    group: Option<Group>,
    broken: Option<Broken>,
}

fn locked<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(|it| it.into_inner())
}

impl WriterPart {
    /// Takes what waits, at most a group, unless it has one; whether it has one
    /// now.
    pub fn gather(&self) -> bool {
        let mut desk = locked(&self.0);
        if desk.group.is_none() {
            let first = desk.orders.try_recv().ok();
            desk.group = first.map(|first| writer::gather(first, &desk.orders));
        }
        desk.group.is_some()
    }

    /// Writes and syncs what it has, and answers. False if the disk did not take
    /// it: then it rests for a while.
    pub fn commit(&self) -> bool {
        let mut desk = locked(&self.0);
        let Some(group) = desk.group.take() else {
            return true;
        };
        let Some(broken) = desk.broken else {
            return desk.writer.commit(group);
        };
        let skips = |order: &Order| broken.skips(&order.task);
        let (skipped, group): (Group, Group) = group.into_iter().partition(skips);
        let took = group.is_empty() || desk.writer.commit(group);
        desk.writer.pretend(skipped);
        took
    }

    /// Breaks it.
    pub fn break_on_purpose(&self, broken: Broken) {
        locked(&self.0).broken = Some(broken);
    }
}

/// Spares, rewriting, giving up. Clones are the same keeper.
#[derive(Clone)]
pub struct KeeperPart(Arc<Mutex<KeeperDesk>>);

struct KeeperDesk {
    keeper: Keeper,
    chores: Receiver<Chore>,
    chore: Option<Chore>,
}

impl KeeperDesk {
    fn take(&mut self) {
        if self.chore.is_none() {
            self.chore = self.chores.try_recv().ok();
        }
    }
}

impl KeeperPart {
    /// Takes the next chore, unless it has one; whether it has one now.
    pub fn take(&self) -> bool {
        let mut desk = locked(&self.0);
        desk.take();
        desk.chore.is_some()
    }

    /// Whether something waits for its time, or could not be done.
    pub fn is_waiting(&self) -> bool {
        locked(&self.0).keeper.is_waiting()
    }

    /// Does the next chore, if there is any, and what waits for its time.
    pub fn step(&self) {
        let mut desk = locked(&self.0);
        desk.take();
        let chore = desk.chore.take();
        desk.keeper.step(chore);
    }
}

/// Receipts on their way to the record.
pub struct ClerkPart {
    desk: Desk,
    /// Papers that were taken, oldest first.
    pile: VecDeque<Papers>,
    open: Option<Open>,
}

impl ClerkPart {
    /// Takes all papers that are there. The messages that those say are done
    /// with, durably; after a start some that were known to be.
    pub fn take(&mut self) -> Vec<(Seq, State)> {
        let mut ends = Vec::new();
        while let Some(papers) = self.desk.next() {
            ends.extend(papers.finished.iter().map(|it| (it.seq, it.state)));
            self.pile.push_back(papers);
        }
        ends
    }

    /// Whether it has papers.
    pub fn is_busy(&self) -> bool {
        self.open.is_some() || !self.pile.is_empty()
    }

    /// Works at the papers that it has.
    pub fn step(&mut self) {
        if self.open.is_none() {
            let next = self.pile.pop_front();
            self.open = next.map(Open::new);
        }
        if let Some(open) = &mut self.open
            && self.desk.step(open) == Written::All
        {
            self.open = None;
        }
    }
}

/// The record.
pub struct RecordPart {
    applier: Applier,
}

impl RecordPart {
    /// Applies what is due, and lets go of what has run out.
    pub fn step(&mut self) {
        self.applier.step();
    }

    /// When there is something to apply, if no more comes.
    pub fn next_batch(&self) -> Mono {
        self.applier.next_batch()
    }
}
