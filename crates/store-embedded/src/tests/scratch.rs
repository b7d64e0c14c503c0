//! A directory of one test, gone with it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Scratch(PathBuf);

impl Scratch {
    /// On the disk.
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// In memory, where there is such a place: for tests that lose power anyway.
    pub fn in_memory() -> Self {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() {
            Self::below(shared)
        } else {
            Self::new()
        }
    }

    fn below(parent: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let no = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outflow-store-{}-{no}", std::process::id());
        let path = parent.join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
