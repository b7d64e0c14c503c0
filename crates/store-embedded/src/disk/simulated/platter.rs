//! Bytes and names in memory, and which of them outlive a loss of power: what
//! was not synced is lost, or a part of it is, in blocks of 512 bytes and in any
//! order. Changes of names are lost from the last one back.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use outflow_core::entropy::Entropy;

use crate::disk::{Disk, File};

/// What is written as a whole or not at all.
const BLOCK: usize = 512;
/// How many bytes there is room for.
const CAPACITY: u64 = 1 << 40;

/// A block as the disk has it, while the machine's memory has another.
struct Before {
    bytes: Vec<u8>,
    /// A sync failed: the system takes it for written and never tries again.
    is_lost: bool,
}

#[derive(Default)]
struct Content {
    now: Vec<u8>,
    before: BTreeMap<usize, Before>,
    /// How long the file is on the disk.
    durable_bytes: usize,
}

type Shared = Arc<Mutex<Content>>;

enum Change {
    Created(String, Shared),
    Renamed(String, String),
    Removed(String),
}

#[derive(Default)]
struct Names {
    now: BTreeMap<String, Shared>,
    durable: BTreeMap<String, Shared>,
    /// What happened to names since they were synced.
    changes: Vec<Change>,
}

/// A disk in memory that loses power.
#[derive(Clone, Default)]
pub struct Platter {
    names: Arc<Mutex<Names>>,
    failing: Arc<AtomicBool>,
}

struct PlatterFile {
    content: Shared,
    failing: Arc<AtomicBool>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|it| it.into_inner())
}

fn missing() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl Content {
    fn block(&self, no: usize) -> Range<usize> {
        let end = (no + 1) * BLOCK;
        (no * BLOCK).min(self.now.len())..end.min(self.now.len())
    }

    fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        for no in offset / BLOCK..end.div_ceil(BLOCK) {
            let block = self.block(no);
            let was = || self.now.get(block).unwrap_or_default().to_vec();
            let before = self.before.entry(no).or_insert_with(|| Before {
                bytes: was(),
                is_lost: false,
            });
            before.is_lost = false;
        }
        if self.now.len() < end {
            self.now.resize(end, 0);
        }
        if let Some(place) = self.now.get_mut(offset..end) {
            place.copy_from_slice(bytes);
        }
    }

    fn lose_power(&mut self, entropy: &mut Entropy) {
        if self.now.len() != self.durable_bytes && entropy.between(0, 1) == 0 {
            self.now.resize(self.durable_bytes, 0);
        }
        let share = entropy.between(0, 3);
        for (no, before) in std::mem::take(&mut self.before) {
            let is_kept = entropy.between(1, 3) <= share;
            if is_kept && !before.is_lost {
                continue;
            }
            let block = self.block(no);
            if let Some(now) = self.now.get_mut(block) {
                now.fill(0);
                for (now, before) in now.iter_mut().zip(before.bytes) {
                    *now = before;
                }
            }
        }
        self.durable_bytes = self.now.len();
    }
}

impl Names {
    /// Those that a loss of power leaves: a file system keeps the order of what
    /// happens to names, but not all of it is on the disk.
    fn left(&mut self, entropy: &mut Entropy) {
        let count = self.changes.len() as u64;
        let kept = match entropy.between(0, 2) {
            0 => 0,
            1 => count,
            _ => entropy.between(0, count),
        };
        let mut names = std::mem::take(&mut self.durable);
        for change in self.changes.drain(..).take(kept as usize) {
            match change {
                Change::Created(name, content) => {
                    names.insert(name, content);
                }
                Change::Renamed(from, to) => {
                    if let Some(content) = names.remove(&from) {
                        names.insert(to, content);
                    }
                }
                Change::Removed(name) => {
                    names.remove(&name);
                }
            }
        }
        self.durable = names.clone();
        self.now = names;
    }
}

impl Platter {
    /// The power goes, and comes back.
    pub fn lose_power(&self, entropy: &mut Entropy) {
        let mut names = locked(&self.names);
        names.left(entropy);
        for content in names.now.values() {
            locked(content).lose_power(entropy);
        }
    }

    /// While this is set, files cannot be synced, and what they should have
    /// written counts as written.
    pub fn failing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.failing)
    }

    /// Syncs of files fail from now on, or succeed.
    pub fn fail_syncs(&self, failing: bool) {
        self.failing.store(failing, SeqCst);
    }

    /// Whether these bytes stand in any file.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let names = locked(&self.names);
        let holds = |file: &Shared| locked(file).now.windows(bytes.len()).any(|it| it == bytes);
        names.now.values().any(holds)
    }

    /// Turns one bit of a file, in memory and on the disk.
    pub fn damage(&self, name: &str, at: usize) {
        let names = locked(&self.names);
        let Some(content) = names.now.get(name) else {
            return;
        };
        let mut content = locked(content);
        content.before.remove(&(at / BLOCK));
        if let Some(byte) = content.now.get_mut(at) {
            *byte ^= 1;
        }
    }

    /// All files together, at one moment: others come and go meanwhile.
    pub fn total_bytes(&self) -> usize {
        let names = locked(&self.names);
        names.now.values().map(|it| locked(it).now.len()).sum()
    }

    /// What a file holds; nothing if it is not there.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let names = locked(&self.names);
        let content = names.now.get(name);
        content.map_or_else(Vec::new, |it| locked(it).now.clone())
    }

    fn file(&self, content: &Shared) -> Arc<dyn File> {
        Arc::new(PlatterFile {
            content: Arc::clone(content),
            failing: Arc::clone(&self.failing),
        })
    }
}

impl Disk for Platter {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(locked(&self.names).now.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut names = locked(&self.names);
        if names.now.contains_key(name) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let content = Shared::default();
        let created = Change::Created(name.into(), Arc::clone(&content));
        names.changes.push(created);
        names.now.insert(name.into(), Arc::clone(&content));
        Ok(self.file(&content))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let names = locked(&self.names);
        let content = names.now.get(name).ok_or_else(missing)?;
        Ok(self.file(content))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut names = locked(&self.names);
        let content = names.now.remove(from).ok_or_else(missing)?;
        names.now.insert(to.into(), content);
        names.changes.push(Change::Renamed(from.into(), to.into()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut names = locked(&self.names);
        names.now.remove(name).ok_or_else(missing)?;
        names.changes.push(Change::Removed(name.into()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut names = locked(&self.names);
        names.durable = names.now.clone();
        names.changes.clear();
        Ok(())
    }

    fn free(&self) -> io::Result<u64> {
        Ok(CAPACITY)
    }
}

impl File for PlatterFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = locked(&self.content);
        let rest = content.now.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        locked(&self.content).write(bytes, offset as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut content = locked(&self.content);
        if self.failing.load(SeqCst) {
            for before in content.before.values_mut() {
                before.is_lost = true;
            }
            return Err(io::Error::other("the disk does not sync"));
        }
        content.before.retain(|_, before| before.is_lost);
        content.durable_bytes = content.now.len();
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(locked(&self.content).now.len() as u64)
    }
}
