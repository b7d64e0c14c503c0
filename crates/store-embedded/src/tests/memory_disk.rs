//! A disk in memory that loses power: what was not synced is lost, or half of
//! it is, in blocks of 512 bytes and in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use outflow_core::entropy::Entropy;

use crate::disk::{Disk, File};

const BLOCK: usize = 512;

#[derive(Clone, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Blocks that a sync has to write.
    dirty: BTreeSet<usize>,
}

type Shared = Arc<Mutex<Content>>;

#[derive(Default)]
struct State {
    /// Files cannot be synced; what they should have written counts as written.
    failing: Arc<AtomicBool>,
    names: BTreeMap<String, Shared>,
    durable: BTreeMap<String, Shared>,
}

#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<State>>);

struct MemoryFile(Shared, Arc<AtomicBool>);

impl MemoryDisk {
    /// The power goes, and comes back.
    pub fn lose_power(&self, entropy: &mut Entropy) {
        let mut state = self.0.lock().unwrap();
        // A name that was changed and not synced may be the old or the new one.
        if entropy.between(0, 1) == 0 {
            state.names = state.durable.clone();
        }
        state.durable = state.names.clone();
        for content in state.names.values() {
            let mut content = content.lock().unwrap();
            let Content {
                now,
                durable,
                dirty,
            } = &mut *content;
            if now.len() != durable.len() && entropy.between(0, 1) == 0 {
                now.resize(durable.len(), 0);
            }
            durable.resize(now.len(), 0);
            let blocks = now.chunks_mut(BLOCK).zip(durable.chunks_mut(BLOCK));
            let share = entropy.between(0, 3);
            for (no, (now, durable)) in blocks.enumerate() {
                if now != durable && (!dirty.contains(&no) || entropy.between(1, 3) > share) {
                    now.copy_from_slice(durable);
                }
            }
            dirty.clear();
            durable.copy_from_slice(now);
        }
    }

    /// Syncs of files fail from now on, or succeed.
    pub fn fail_syncs(&self, failing: bool) {
        self.0.lock().unwrap().failing.store(failing, SeqCst);
    }

    /// Whether these bytes stand in any file.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let state = self.0.lock().unwrap();
        let holds = |file: &Shared| {
            let content = file.lock().unwrap();
            content.now.windows(bytes.len()).any(|it| it == bytes)
        };
        state.names.values().any(holds)
    }

    /// Turns one bit of a file.
    pub fn damage(&self, name: &str, at: usize) {
        let state = self.0.lock().unwrap();
        let mut content = state.names[name].lock().unwrap();
        content.now[at] ^= 1;
        content.durable[at] ^= 1;
    }

    /// All files together, at one moment: others come and go meanwhile.
    pub fn total_bytes(&self) -> usize {
        let state = self.0.lock().unwrap();
        let files = state.names.values();
        files.map(|file| file.lock().unwrap().now.len()).sum()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let state = self.0.lock().unwrap();
        state.names[name].lock().unwrap().now.clone()
    }
}

fn missing() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl Disk for MemoryDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.0.lock().unwrap();
        if state.names.contains_key(name) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let content = Shared::default();
        state.names.insert(name.into(), Arc::clone(&content));
        Ok(Arc::new(MemoryFile(content, Arc::clone(&state.failing))))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let state = self.0.lock().unwrap();
        let content = state.names.get(name).ok_or_else(missing)?;
        let failing = Arc::clone(&state.failing);
        Ok(Arc::new(MemoryFile(Arc::clone(content), failing)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let content = state.names.remove(from).ok_or_else(missing)?;
        state.names.insert(to.into(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.names.remove(name).map(|_| ()).ok_or_else(missing)
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.durable = state.names.clone();
        Ok(())
    }

    fn free(&self) -> io::Result<u64> {
        Ok(1 << 40)
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.0.lock().unwrap();
        let rest = content.now.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut content = self.0.lock().unwrap();
        let end = offset as usize + bytes.len();
        if content.now.len() < end {
            content.now.resize(end, 0);
        }
        content.now[offset as usize..end].copy_from_slice(bytes);
        content
            .dirty
            .extend(offset as usize / BLOCK..end.div_ceil(BLOCK));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut content = self.0.lock().unwrap();
        let Content {
            now,
            durable,
            dirty,
        } = &mut *content;
        let dirty = std::mem::take(dirty);
        if self.1.load(SeqCst) {
            return Err(io::Error::other("the disk does not sync"));
        }
        durable.resize(now.len(), 0);
        for no in dirty {
            let block = no * BLOCK..((no + 1) * BLOCK).min(now.len());
            durable[block.clone()].copy_from_slice(&now[block]);
        }
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }
}
