//! A disk over another that fails on demand: it is full, cannot sync, or the
//! process that uses it has died.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use crate::disk::{Disk, File};

#[derive(Default)]
pub struct Mood {
    pub failing: AtomicBool,
    pub full: AtomicBool,
    pub dead: AtomicBool,
    /// Dies before the operation with this number, counted from 1.
    pub dies_at: AtomicU64,
    pub operations: AtomicU64,
    /// So many more syncs of names fail.
    pub names_failing: AtomicU64,
    /// So many more renames of files whose names end like this fail.
    pub renames_failing: AtomicU64,
    pub rename_ending: Mutex<&'static str>,
    /// Who holds this keeps all files from being synced.
    pub gate: Mutex<()>,
}

/// Whether one is left; then it is taken.
fn take_one(left: &AtomicU64) -> bool {
    left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
        .is_ok()
}

impl Mood {
    fn change(&self) -> io::Result<()> {
        let no = self.operations.fetch_add(1, SeqCst) + 1;
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

#[derive(Clone)]
pub struct Moody {
    pub inner: Arc<dyn Disk>,
    pub mood: Arc<Mood>,
}

struct MoodyFile {
    inner: Arc<dyn File>,
    mood: Arc<Mood>,
}

impl Moody {
    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(MoodyFile {
            inner,
            mood: Arc::clone(&self.mood),
        })
    }
}

impl Disk for Moody {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.mood.change()?;
        self.mood.grow()?;
        self.inner.create(name).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.inner.open(name).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.mood.change()?;
        let is_meant = from.ends_with(*self.mood.rename_ending.lock().unwrap());
        if is_meant && take_one(&self.mood.renames_failing) {
            return Err(io::Error::other("the disk does not rename"));
        }
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.mood.change()?;
        self.inner.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.mood.change()?;
        if take_one(&self.mood.names_failing) {
            return Err(io::Error::other("the disk does not sync names"));
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

impl File for MoodyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_cached_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.mood.change()?;
        if offset + bytes.len() as u64 > self.inner.size()? {
            self.mood.grow()?;
        }
        self.inner.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        drop(self.mood.gate.lock().unwrap());
        self.mood.change()?;
        if self.mood.failing.load(SeqCst) {
            return Err(io::Error::other("the disk does not sync"));
        }
        self.inner.sync()
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
}
