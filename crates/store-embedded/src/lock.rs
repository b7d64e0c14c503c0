//! One process at a time: who opens a directory locks it.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::private;

/// Why a directory cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{dir} is in use by another outflow process{holder}: stop that one first, or give this one another data directory", dir = .dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// Who has it, if that is known.
        holder: String,
    },
    /// The disk.
    #[error("{path} cannot be locked: {error}", path = .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// A lock on a directory; the end of the process ends it too.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a directory.
    pub fn take(dir: &Path) -> Result<Self, LockError> {
        let path = dir.join("lock");
        match Self::try_take(&path) {
            Ok(Ok(file)) => Ok(Self { _file: file }),
            Ok(Err(holder)) => Err(LockError::InUse {
                dir: dir.to_owned(),
                holder,
            }),
            Err(error) => Err(LockError::Io { path, error }),
        }
    }

    /// Sees to it that no process has a directory, without a change to it.
    pub fn look(dir: &Path) -> Result<Option<Self>, LockError> {
        let path = dir.join("lock");
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| LockError::Io {
                path: path.clone(),
                error,
            })?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Err(LockError::InUse {
                dir: dir.to_owned(),
                holder: String::new(),
            }),
            Err(TryLockError::Error(error)) => Err(LockError::Io { path, error }),
        }
    }

    fn try_take(path: &Path) -> io::Result<Result<File, String>> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(private::MODE).open(path)?;
        private::tighten(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                writeln!(file, "{}", std::process::id())?;
                Ok(Ok(file))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.take(32).read_to_string(&mut text)?;
                let holder: Option<u32> = text.trim().parse().ok();
                let holder = holder.map_or_else(String::new, |id| format!(" (process {id})"));
                Ok(Err(holder))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
