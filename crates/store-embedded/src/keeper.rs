//! Who tidies up: makes spare segments ahead of their use, rewrites body
//! segments in which little is alive, and gives old ones up. In production that
//! is a thread.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use outflow_core::time::{Mono, Nanos};

use crate::journal::codec::Out;
use crate::journal::entry;
use crate::journal::files::{Files, gone_or};
use crate::journal::frame::{self, frame_bytes};
use crate::journal::place::Place;
use crate::journal::segment::{FORMAT, HEADER, Header, Kind};
use crate::library::Shelf;

/// How often the keeper looks around by itself.
pub const ROUND: Nanos = Nanos::from_millis(500);
/// Bodies copied in one write.
const COPY_BYTES: usize = 4 << 20;

/// What is to be tidied up.
pub enum Chore {
    /// A segment of this kind was begun: make a spare for the next.
    Spare(Kind),
    /// Give a segment up, when nobody can be reading it any more.
    GiveUp(Kind, u32),
    /// Write a body segment anew with only these bodies.
    Rewrite(u32, Vec<Place>),
}

/// What was tidied up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tidied {
    /// A segment is gone.
    Gone(Kind, u32),
    /// A body segment was rewritten and has so many bytes; none if that failed.
    Rewritten(u32, Option<u64>),
}

/// What the keeper is told once.
pub struct Setup {
    pub files: Arc<Files>,
    pub grace: Nanos,
    pub reserve_bytes: u64,
    pub tidied: Arc<Mutex<Vec<Tidied>>>,
}

/// Starts the thread; it ends when all senders are dropped.
pub fn start(mut keeper: Keeper, chores: Receiver<Chore>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("outflow-keeper".into())
        .spawn(move || keeper.run(&chores))
}

/// Who tidies up.
pub struct Keeper {
    setup: Setup,
    /// Segments that are given up, oldest first, and when nobody reads them any
    /// more.
    leaving: VecDeque<(Mono, Kind, u32)>,
    /// Spares that could not be made yet.
    wanted: Vec<Kind>,
}

impl Keeper {
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            leaving: VecDeque::new(),
            wanted: Vec::new(),
        }
    }

    fn run(&mut self, chores: &Receiver<Chore>) {
        loop {
            match chores.recv_timeout(Duration::from_nanos(ROUND.0)) {
                Ok(chore) => self.step(Some(chore)),
                Err(RecvTimeoutError::Timeout) => self.step(None),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Does a chore, if there is one, and what waits for its time.
    pub fn step(&mut self, chore: Option<Chore>) {
        match chore {
            Some(Chore::Spare(kind)) => self.wanted.push(kind),
            Some(Chore::GiveUp(kind, number)) => {
                let grace = match kind {
                    Kind::Envelope => self.setup.grace,
                    Kind::Body => Nanos::ZERO,
                };
                let end = self.setup.files.mono() + grace;
                self.leaving.push_back((end, kind, number));
            }
            Some(Chore::Rewrite(number, living)) => {
                let bytes = self.rewrite(number, &living).ok();
                self.tell(Tidied::Rewritten(number, bytes));
            }
            None => {}
        }
        self.give_up();
        let files = Arc::clone(&self.setup.files);
        self.wanted
            .retain(|kind| files.wants_spare(*kind) && files.add_spare(*kind).is_err());
        self.wanted.dedup();
    }

    /// Whether something waits for its time, or could not be done.
    pub fn is_waiting(&self) -> bool {
        !self.leaving.is_empty() || !self.wanted.is_empty()
    }

    fn tell(&self, tidied: Tidied) {
        let mut all = self
            .setup
            .tidied
            .lock()
            .unwrap_or_else(|it| it.into_inner());
        all.push(tidied);
    }

    /// Gives up what nobody reads any more; on a full disk at once.
    fn give_up(&mut self) {
        let free = self.setup.files.disk.free();
        let is_short = free.is_ok_and(|free| free < self.setup.reserve_bytes);
        let now = self.setup.files.mono();
        // Envelope segments go oldest first, or a settlement would be gone
        // while its message is still there.
        let mut waits = false;
        for _ in 0..self.leaving.len() {
            let Some(next) = self.leaving.pop_front() else {
                return;
            };
            let (at, kind, number) = next;
            let is_next = kind == Kind::Body || !waits;
            if is_next && (is_short || at <= now) && self.remove(kind, number).is_ok() {
                self.tell(Tidied::Gone(kind, number));
                continue;
            }
            waits |= kind == Kind::Envelope;
            self.leaving.push_back(next);
        }
    }

    fn remove(&self, kind: Kind, number: u32) -> io::Result<()> {
        let files = &self.setup.files;
        let Some(shelf) = files.library.shelf(kind, number) else {
            return Ok(());
        };
        files.recycle(kind, number, &shelf.file)?;
        files.library.take(kind, number);
        Ok(())
    }

    /// Copies the living bodies of a segment to a new file, which then takes
    /// the segment's name; places stay good by a table at its end.
    fn rewrite(&self, number: u32, living: &[Place]) -> io::Result<u64> {
        let disk = &self.setup.files.disk;
        let name = format!("body-{number:08x}.rewrite");
        // One that failed before may have left its file behind.
        gone_or(disk.remove(&name))?;
        let rewritten = self.rewrite_as(&name, number, living);
        if rewritten.is_err() {
            let _ = disk.remove(&name);
        }
        rewritten
    }

    fn rewrite_as(&self, name: &str, number: u32, living: &[Place]) -> io::Result<u64> {
        let files = &self.setup.files;
        let file = files.disk.create(name)?;
        let since = files.now();
        let epoch = files.new_epoch();
        let (mut at, mut buffer) = (HEADER, Vec::new());
        let mut table = Vec::with_capacity(living.len());
        for place in living {
            let (kind, payload) = files.library.read(Kind::Body, *place)?;
            table.push((place.offset(), at + buffer.len() as u64));
            let start = frame::begin(&mut buffer, kind);
            buffer.extend_from_slice(&payload);
            frame::end(&mut buffer, start);
            debug_assert_eq!(buffer.len() - start, frame_bytes(payload.len()));
            if buffer.len() >= COPY_BYTES {
                frame::seal(&mut buffer, epoch, at);
                file.write_at(&buffer, at)?;
                at += buffer.len() as u64;
                buffer.clear();
            }
        }
        let table_at = at + buffer.len() as u64;
        let start = frame::begin(&mut buffer, entry::TABLE);
        let numbers: Vec<u64> = table.iter().flat_map(|(from, to)| [*from, *to]).collect();
        Out(&mut buffer).numbers(numbers.into_iter());
        frame::end(&mut buffer, start);
        frame::seal(&mut buffer, epoch, at);
        file.write_at(&buffer, at)?;
        let header = Header {
            kind: Kind::Body,
            format: FORMAT,
            number,
            epoch,
            before_end: table_at,
            key_seed: files.key_seed,
            since,
        };
        file.write_at(&header.to_bytes(), 0)?;
        file.sync()?;
        let bytes = at + buffer.len() as u64;
        files.list.expect(Kind::Body, number, bytes)?;
        files.disk.rename(name, &Kind::Body.name(number))?;
        files.disk.sync_names()?;
        let shelf = Shelf {
            file,
            epoch,
            moved: Some(table.into()),
        };
        files.library.put(Kind::Body, number, shelf);
        Ok(bytes)
    }
}
