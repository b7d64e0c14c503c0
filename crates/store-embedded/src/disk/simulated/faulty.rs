//! A disk over another that fails as it is told or as chance has it: it is full,
//! cannot write, sync, rename or remove, or the process that uses it has died.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use outflow_core::entropy::Entropy;

use crate::disk::{Disk, File};
use crate::journal::list::COPIES;

/// How many of a thousand operations fail, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Writes, a part of which may have been written.
    pub write: u32,
    /// Syncs of files: the bytes stay unwritten, or are taken for written.
    pub sync: u32,
    /// Making a file.
    pub create: u32,
    /// Giving a file another name.
    pub rename: u32,
    /// Taking a name away.
    pub remove: u32,
    /// Syncs of names.
    pub names: u32,
}

/// What is done between two operations.
type Between = Box<dyn FnOnce() + Send>;

/// How the disk feels.
#[derive(Default)]
pub struct Mood {
    /// Syncs of files fail.
    pub failing: AtomicBool,
    /// There is no room: no file can be made or grow.
    pub full: AtomicBool,
    /// Syncs of files do nothing and succeed.
    pub lying: AtomicBool,
    /// The process has died: nothing it does reaches the disk.
    pub dead: AtomicBool,
    /// Dies before the operation with this number, counted from 1.
    pub dies_at: AtomicU64,
    /// Operations that change something, so far.
    pub operations: AtomicU64,
    /// So many more syncs of names fail.
    pub names_failing: AtomicU64,
    /// So many more renames of files whose names end like this fail.
    pub renames_failing: AtomicU64,
    /// See [`Self::renames_failing`].
    pub rename_ending: Mutex<&'static str>,
    /// Who holds this keeps all files from being synced.
    pub gate: Mutex<()>,
    chance: Mutex<(Shares, Entropy)>,
    /// What a platter calls [`failing`](super::Platter::failing).
    losing: Option<Arc<AtomicBool>>,
    between: Mutex<Option<(u64, Between)>>,
}

impl fmt::Debug for Mood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mood").finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|it| it.into_inner())
}

/// Whether one is left; then it is taken.
fn take_one(left: &AtomicU64) -> bool {
    left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
        .is_ok()
}

impl Mood {
    /// Of a platter, whose [`failing`](super::Platter::failing) this is.
    pub fn of(losing: Arc<AtomicBool>) -> Self {
        Self {
            losing: Some(losing),
            ..Self::default()
        }
    }

    /// From now on so many operations fail, as chance has it.
    pub fn fail(&self, shares: Shares, seed: u64) {
        *locked(&self.chance) = (shares, Entropy(seed));
    }

    /// Does something before the `steps`th operation from now on, counted from
    /// 1, instead of what was to be done between others.
    pub fn between(&self, steps: u64, work: impl FnOnce() + Send + 'static) {
        let at = self.operations.load(SeqCst) + steps;
        *locked(&self.between) = Some((at, Box::new(work)));
    }

    /// Nothing is done between operations. Whether something still was to be.
    pub fn nothing_between(&self) -> bool {
        locked(&self.between).take().is_some()
    }

    /// The process dies before the `steps`th operation from now on.
    pub fn die_in(&self, steps: u64) {
        let at = self.operations.load(SeqCst) + steps;
        self.dies_at.store(at, SeqCst);
    }

    /// Another process uses the disk.
    pub fn reborn(&self) {
        self.dies_at.store(0, SeqCst);
        self.dead.store(false, SeqCst);
    }

    fn strikes(&self, share: impl FnOnce(&Shares) -> u32) -> bool {
        let mut chance = locked(&self.chance);
        let share = share(&chance.0);
        share > 0 && chance.1.between(0, 999) < u64::from(share)
    }

    fn change(&self, waits: Waits) -> io::Result<()> {
        let no = self.operations.fetch_add(1, SeqCst) + 1;
        if waits == Waits::ForOthers {
            let due = locked(&self.between).take_if(|(at, _)| *at <= no);
            if let Some((_, work)) = due {
                work();
            }
        }
        if no == self.dies_at.load(SeqCst) {
            self.dead.store(true, SeqCst);
        }
        if self.dead.load(SeqCst) {
            return Err(io::Error::other("the process has died"));
        }
        Ok(())
    }

    fn grow(&self) -> io::Result<()> {
        if self.full.load(SeqCst) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }
}

/// Whether other work may be done before an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    ForOthers,
    /// Who writes the list of segments holds it against all others: they would
    /// wait for it, and are simulated on the same thread.
    ForNobody,
}

impl Waits {
    fn of(name: &str) -> Self {
        match COPIES.contains(&name) {
            true => Self::ForNobody,
            false => Self::ForOthers,
        }
    }
}

/// A disk that fails.
#[derive(Clone)]
pub struct Faulty {
    /// The disk below.
    pub inner: Arc<dyn Disk>,
    /// How it feels.
    pub mood: Arc<Mood>,
}

struct FaultyFile {
    inner: Arc<dyn File>,
    mood: Arc<Mood>,
    waits: Waits,
}

impl Faulty {
    fn file(&self, name: &str, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile {
            inner,
            mood: Arc::clone(&self.mood),
            waits: Waits::of(name),
        })
    }
}

fn refuses(what: &str) -> io::Error {
    io::Error::other(format!("the disk does not {what}"))
}

impl Disk for Faulty {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.mood.change(Waits::of(name))?;
        self.mood.grow()?;
        if self.mood.strikes(|it| it.create) {
            return Err(refuses("make files"));
        }
        self.inner.create(name).map(|file| self.file(name, file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.inner.open(name).map(|file| self.file(name, file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.mood.change(Waits::ForOthers)?;
        let is_meant = from.ends_with(*locked(&self.mood.rename_ending));
        let is_told = is_meant && take_one(&self.mood.renames_failing);
        if is_told || self.mood.strikes(|it| it.rename) {
            return Err(refuses("rename"));
        }
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.mood.change(Waits::ForOthers)?;
        if self.mood.strikes(|it| it.remove) {
            return Err(refuses("remove"));
        }
        self.inner.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.mood.change(Waits::ForOthers)?;
        let is_told = take_one(&self.mood.names_failing);
        if is_told || self.mood.strikes(|it| it.names) {
            return Err(refuses("sync names"));
        }
        self.inner.sync_names()
    }

    fn free(&self) -> io::Result<u64> {
        if self.mood.full.load(SeqCst) {
            return Ok(0);
        }
        self.inner.free()
    }
}

impl FaultyFile {
    /// A sync that chance lets fail: the bytes may count as written.
    fn fail_sync(&self) -> io::Result<()> {
        let is_lost = locked(&self.mood.chance).1.between(0, 1) == 0;
        if let Some(losing) = self.mood.losing.as_ref().filter(|_| is_lost) {
            losing.store(true, SeqCst);
            let failed = self.inner.sync();
            losing.store(false, SeqCst);
            return failed;
        }
        Err(refuses("sync"))
    }
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_cached_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.mood.change(self.waits)?;
        if offset + bytes.len() as u64 > self.inner.size()? {
            self.mood.grow()?;
        }
        if self.mood.strikes(|it| it.write) {
            let written = locked(&self.mood.chance).1.between(0, bytes.len() as u64);
            let part = bytes.get(..written as usize).unwrap_or_default();
            self.inner.write_at(part, offset)?;
            return Err(refuses("write"));
        }
        self.inner.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        drop(locked(&self.mood.gate));
        self.mood.change(self.waits)?;
        if self.mood.failing.load(SeqCst) {
            return Err(refuses("sync"));
        }
        if self.mood.strikes(|it| it.sync) {
            return self.fail_sync();
        }
        if self.mood.lying.load(SeqCst) {
            return Ok(());
        }
        self.inner.sync()
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
}
