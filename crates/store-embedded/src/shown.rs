//! A directory that is only shown: whoever looks a damaged store over, or saves
//! what is left of it, changes nothing there.

use std::fs::{self, File as FsFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, File};

/// A directory of the file system, for reading. One that is not there is empty.
#[derive(Debug)]
pub struct Shown(PathBuf);

impl Shown {
    /// The directory at this path.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

fn refused() -> io::Error {
    io::Error::from(io::ErrorKind::ReadOnlyFilesystem)
}

impl Disk for Shown {
    fn list(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create(&self, _: &str) -> io::Result<Arc<dyn File>> {
        Err(refused())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(FsFile::open(self.0.join(name))?))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn sync_names(&self) -> io::Result<()> {
        Err(refused())
    }

    fn free(&self) -> io::Result<u64> {
        Ok(0)
    }
}
