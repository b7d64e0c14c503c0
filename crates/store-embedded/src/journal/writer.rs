//! Group commit: who appends and syncs. In production that is one thread, which
//! syncs two files at once by a second one.
//!
//! It takes what waits (at most 512 records or 1 MB, unless one batch has
//! more), writes bodies and entries, syncs both files at once and only then
//! answers. After a failed write or sync a file is never trusted again: the
//! next group goes to a new segment, whose header says how far the old one
//! counts.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use outflow_core::message::Seq;
use outflow_core::time::Nanos;

use super::codec::Out;
use super::encode::{self, Buffers};
use super::entry::{COMMIT, Commit};
use super::files::{Active, Files};
use super::frame;
use super::place::{Place, position};
use super::segment::{HEADER, Kind};
use super::task::{Answer, Order, Task};
use crate::boot::BootClock;
use crate::disk::File;
use crate::keeper::Chore;

const GROUP_RECORDS: usize = 512;
const GROUP_BYTES: usize = 1 << 20;
/// The pause after a failure, so that a broken disk is not asked all the time.
pub const FAILED_PAUSE: Nanos = Nanos::from_millis(10);

/// Answers on their way to the store.
pub struct Answers {
    queue: Mutex<Vec<Answer>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Answers {
    pub fn new(wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self {
            queue: Mutex::default(),
            wake,
        }
    }

    /// Hands an answer over and wakes the store.
    pub fn push(&self, answer: Answer) {
        let mut queue = self.queue.lock().unwrap_or_else(|it| it.into_inner());
        queue.push(answer);
        drop(queue);
        (self.wake)();
    }

    /// All that are there.
    pub fn take(&self) -> Vec<Answer> {
        let mut queue = self.queue.lock().unwrap_or_else(|it| it.into_inner());
        std::mem::take(&mut *queue)
    }
}

/// How two files are synced.
pub enum Syncs {
    /// The second while the first is being synced, by a thread of its own.
    Beside {
        files: Sender<Arc<dyn File>>,
        results: Receiver<io::Result<()>>,
    },
    /// One after the other, the other way round each time: as it may happen with
    /// two threads.
    InTurn { body_first: bool },
}

impl Syncs {
    pub fn beside() -> io::Result<Self> {
        let (files, orders) = channel::<Arc<dyn File>>();
        let (answers, results) = channel();
        thread::Builder::new()
            .name("outflow-sync".into())
            .spawn(move || {
                for file in orders {
                    if answers.send(file.sync()).is_err() {
                        break;
                    }
                }
            })?;
        Ok(Self::Beside { files, results })
    }

    fn both(
        &mut self,
        body: &Arc<dyn File>,
        envelope: &dyn File,
    ) -> (io::Result<()>, io::Result<()>) {
        match self {
            Self::Beside { files, results } => {
                let gone = || io::Error::other("the syncing thread has ended");
                let sent = files.send(Arc::clone(body)).map_err(|_| gone());
                let envelope = envelope.sync();
                let body = sent.and_then(|()| results.recv().unwrap_or_else(|_| Err(gone())));
                (body, envelope)
            }
            Self::InTurn { body_first } => {
                *body_first = !*body_first;
                if *body_first {
                    let body = body.sync();
                    (body, envelope.sync())
                } else {
                    let envelope = envelope.sync();
                    (body.sync(), envelope)
                }
            }
        }
    }
}

/// Where a journal goes on.
#[derive(Default)]
pub struct Tail {
    pub envelope: Option<Active>,
    pub body: Option<Active>,
    pub next_envelope: u32,
    pub next_body: u32,
    /// How far the last envelope segment counts, if a new one is to be begun.
    pub before_end: u64,
    pub last: Seq,
}

/// What the writer is told once.
pub struct Setup {
    pub files: Arc<Files>,
    pub boot: Arc<dyn BootClock>,
    pub answers: Arc<Answers>,
    pub reserve_bytes: u64,
    /// Called when a spare was used.
    pub used_spare: Sender<Chore>,
}

/// Orders that are written and synced together.
pub type Group = Vec<Order>;

/// Who writes.
pub struct Writer {
    setup: Setup,
    boot_id: u64,
    tail: Tail,
    buffers: Buffers,
    syncs: Syncs,
    /// Orders up to this generation are lost, and those that are intake.
    lost: u64,
    refused: u64,
    through: u64,
}

/// Starts the thread; it ends when the sender is dropped.
pub fn start(mut writer: Writer, orders: Receiver<Order>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("outflow-journal".into())
        .spawn(move || writer.run(&orders))
}

/// What waits, behind the first: at most a group.
pub fn gather(first: Order, orders: &Receiver<Order>) -> Group {
    let (mut records, mut bytes) = (first.task.records(), first.task.bytes());
    let mut group = vec![first];
    while records < GROUP_RECORDS && bytes < GROUP_BYTES {
        let Ok(order) = orders.try_recv() else {
            break;
        };
        records += order.task.records();
        bytes += order.task.bytes();
        group.push(order);
    }
    group
}

impl Writer {
    pub fn new(setup: Setup, tail: Tail, syncs: Syncs) -> Self {
        let through = match &tail.envelope {
            Some(active) => position(active.number, active.at),
            None => position(tail.next_envelope.saturating_sub(1), tail.before_end),
        };
        Self {
            boot_id: setup.boot.id(),
            setup,
            tail,
            buffers: Buffers::default(),
            syncs,
            lost: 0,
            refused: 0,
            through,
        }
    }

    fn run(&mut self, orders: &Receiver<Order>) {
        while let Ok(first) = orders.recv() {
            if !self.commit(gather(first, orders)) {
                thread::sleep(Duration::from_nanos(FAILED_PAUSE.0));
            }
        }
    }

    /// Writes a group and answers each of its tasks; whether the disk took it.
    pub fn commit(&mut self, group: Group) -> bool {
        let started = self.setup.boot.mono();
        let newest = group.iter().map(|order| order.generation).max();
        let newest = newest.unwrap_or(0);
        let intake = |order: &Order| order.task.is_intake() && order.generation > self.refused;
        if group.iter().any(intake) && self.is_short_of_room() {
            self.refused = newest;
        }
        let mut answers: Vec<(Option<Task>, bool)> = Vec::with_capacity(group.len());
        let mut tasks = Vec::with_capacity(group.len());
        for Order { generation, task } in group {
            let is_lost =
                generation <= self.lost || (task.is_intake() && generation <= self.refused);
            if is_lost {
                answers.push((Some(task), false));
            } else {
                answers.push((None, true));
                tasks.push(task);
            }
        }
        let written = self.write_or_refuse(&mut tasks, newest);
        let failed = written.is_err();
        if failed {
            self.lost = newest;
            self.refused = newest;
        }
        let mut written = written.unwrap_or_default().into_iter().chain(tasks);
        let mut is_durable = |task: Task| {
            let refused = task.is_intake() && self.refused == newest;
            let durable = !failed && !refused;
            (task, durable)
        };
        let tasks = answers.into_iter().filter_map(|(task, _)| match task {
            Some(lost) => Some((lost, false)),
            None => written.next().map(&mut is_durable),
        });
        let answer = Answer {
            tasks: tasks.collect(),
            through: self.through,
            lost: self.lost.max(self.refused),
            took: self.setup.boot.mono().since(started),
        };
        self.setup.answers.push(answer);
        !failed
    }

    /// Says that orders are durable, and writes nothing: what a broken writer does.
    pub fn pretend(&self, group: Group) {
        let tasks = group.into_iter().map(|Order { task, .. }| match task {
            Task::Open { flow, key, .. } => {
                let place = Place::new((self.through >> 32) as u32, HEADER, HEADER);
                Task::Open { flow, key, place }
            }
            task => task,
        });
        let answer = Answer {
            tasks: tasks.map(|task| (task, true)).collect(),
            through: self.through,
            lost: 0,
            took: Nanos::ZERO,
        };
        if !answer.tasks.is_empty() {
            self.setup.answers.push(answer);
        }
    }

    /// Writes tasks; if the disk is full, those that are not intake. In error
    /// the tasks stay where they are.
    fn write_or_refuse(&mut self, tasks: &mut Vec<Task>, newest: u64) -> io::Result<Vec<Task>> {
        match self.write(tasks) {
            Err(error) if is_full(&error) && tasks.iter().any(Task::is_intake) => {
                self.refused = newest;
                // Intake stands aside while the rest is written, then returns
                // to its place so that answers keep their order.
                let mut aside: Vec<Option<Task>> = Vec::new();
                let mut rest = Vec::new();
                for task in tasks.drain(..) {
                    if task.is_intake() {
                        aside.push(Some(task));
                    } else {
                        aside.push(None);
                        rest.push(task);
                    }
                }
                let written = self.write(&mut rest);
                let mut rest = rest.into_iter();
                tasks.extend(
                    aside
                        .into_iter()
                        .filter_map(|it| it.or_else(|| rest.next())),
                );
                written?;
                Ok(std::mem::take(tasks))
            }
            Err(error) => Err(error),
            Ok(()) => Ok(std::mem::take(tasks)),
        }
    }

    fn is_short_of_room(&self) -> bool {
        let free = self.setup.files.disk.free();
        free.is_ok_and(|free| free < self.setup.reserve_bytes)
    }

    fn write(&mut self, tasks: &mut [Task]) -> io::Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let mut buffers = std::mem::take(&mut self.buffers);
        buffers.clear();
        let result = self.write_with(tasks, &mut buffers);
        self.buffers = buffers;
        result
    }

    fn write_with(&mut self, tasks: &mut [Task], buffers: &mut Buffers) -> io::Result<()> {
        for task in tasks.iter_mut() {
            if let Task::Accept { messages, .. } = task {
                buffers.add_bodies(messages);
                let given = messages.iter().map(|it| it.given.seq);
                self.tail.last = given.fold(self.tail.last, Seq::max);
            }
        }
        let body_bytes = buffers.bodies.len();
        let (segment, offset) = match body_bytes {
            0 => (0, 0),
            _ => {
                let active = self.body(body_bytes)?;
                (active.number, active.at)
            }
        };
        buffers.add_entries(tasks, segment, offset, &self.setup.files.library);
        let bytes = buffers.envelopes.len() + frame::frame_bytes(Commit::BYTES);
        let last = self.tail.last;
        let boot = &self.setup.boot;
        let (boot_id, boot_time, wall) = (self.boot_id, boot.time(), boot.wall());
        let active = self.envelope(bytes)?;
        let (number, start) = (active.number, active.at);
        encode::settle_places(tasks, number, start);
        let commit = Commit {
            durable: start,
            start,
            at: wall,
            boot_time,
            boot_id,
            last,
        };
        let at = frame::begin(&mut buffers.envelopes, COMMIT);
        commit.write(&mut Out(&mut buffers.envelopes));
        frame::end(&mut buffers.envelopes, at);
        self.put(buffers)?;
        if tasks.iter().any(|task| matches!(task, Task::Turn)) {
            self.tail.body = None;
        }
        Ok(())
    }

    /// Writes and syncs both buffers.
    fn put(&mut self, buffers: &mut Buffers) -> io::Result<()> {
        let Some(envelope) = &mut self.tail.envelope else {
            return Err(io::Error::other("no segment was begun"));
        };
        frame::seal(&mut buffers.envelopes, envelope.epoch, envelope.at);
        let body = self
            .tail
            .body
            .as_mut()
            .filter(|_| !buffers.bodies.is_empty());
        let (in_body, in_envelope) = match body {
            Some(body) => {
                frame::seal(&mut buffers.bodies, body.epoch, body.at);
                let in_body = body.file.write_at(&buffers.bodies, body.at);
                let in_envelope = envelope.file.write_at(&buffers.envelopes, envelope.at);
                let (in_body, in_envelope) = match (in_body, in_envelope) {
                    (Ok(()), Ok(())) => self.syncs.both(&body.file, &*envelope.file),
                    failed => failed,
                };
                body.trusted = in_body.is_ok();
                body.at += buffers.bodies.len() as u64;
                (in_body, in_envelope)
            }
            None => {
                let written = envelope.file.write_at(&buffers.envelopes, envelope.at);
                (Ok(()), written.and_then(|()| envelope.file.sync()))
            }
        };
        // Entries whose bodies did not arrive must not be followed by others.
        envelope.trusted = in_envelope.is_ok() && in_body.is_ok();
        in_envelope.and(in_body)?;
        envelope.at += buffers.envelopes.len() as u64;
        self.through = position(envelope.number, envelope.at);
        Ok(())
    }

    /// The envelope segment, with room for so many bytes.
    fn envelope(&mut self, bytes: usize) -> io::Result<&Active> {
        let tail = &mut self.tail;
        if let Some(active) = &tail.envelope {
            tail.before_end = active.at;
        }
        if !tail.envelope.as_ref().is_some_and(|it| it.takes(bytes)) {
            let number = tail.next_envelope;
            let files = &self.setup.files;
            let prepared = files.prepare(Kind::Envelope, number, tail.before_end, bytes)?;
            // A file of that name may be there even if naming it fails. It says
            // where this one ends: what is written here from now on would be lost.
            if let Some(active) = &mut tail.envelope {
                active.trusted = false;
            }
            let begun = files.name(prepared);
            tail.next_envelope = number + u32::from(begun.is_ok());
            tail.envelope = Some(begun?);
            tail.before_end = HEADER;
            let _ = self.setup.used_spare.send(Chore::Spare(Kind::Envelope));
        }
        let active = tail.envelope.as_ref();
        active.ok_or_else(|| io::Error::other("no segment was begun"))
    }

    /// The body segment, with room for so many bytes.
    fn body(&mut self, bytes: usize) -> io::Result<&Active> {
        let tail = &mut self.tail;
        if !tail.body.as_ref().is_some_and(|it| it.takes(bytes)) {
            let number = tail.next_body;
            tail.next_body += 1;
            tail.body = Some(self.setup.files.begin(Kind::Body, number, 0, bytes)?);
            let _ = self.setup.used_spare.send(Chore::Spare(Kind::Body));
        }
        let active = tail.body.as_ref();
        active.ok_or_else(|| io::Error::other("no segment was begun"))
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
