//! A log that others rotate.
//!
//! Whoever rotates logs moves the file away and expects a new one at its place.
//! So each piece is written to whatever is at the path: if that is no longer the
//! file that is open, it is opened anew, without anybody having to say so.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The end of a file, wherever that file is now.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl LogFile {
    /// Appends to the file at `path`, which is made if need be.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o640);
        let file = options.open(path)?;
        let identity = identity(&file.metadata()?);
        Ok(Self {
            path: path.to_owned(),
            file,
            identity,
        })
    }

    /// Goes on in the file that is at the path now. If there can be none, in
    /// the one that is open: a line in the wrong file is better than none.
    fn follow(&mut self) {
        let there = fs::metadata(&self.path).map(|there| identity(&there));
        if there.is_ok_and(|there| there == self.identity) {
            return;
        }
        if let Ok(new) = Self::open(&self.path) {
            *self = new;
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    /// A piece of whole lines.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.follow();
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
