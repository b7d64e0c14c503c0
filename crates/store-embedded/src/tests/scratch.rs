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

    /// A copy of all files in it.
    pub fn copy(&self) -> Self {
        let copy = Self::in_memory();
        copy_into(&self.0, &copy.0);
        copy
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

fn copy_into(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_into(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
