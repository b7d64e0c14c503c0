//! The little of a file system that the journal needs.
//!
//! The journal speaks to a [`Disk`], so that tests can run it on one that loses
//! what was not synced, tears the end of a file, fails to sync or is full.
//! What is promised is what a real disk promises: bytes are durable after
//! [`File::sync`], names after [`Disk::sync_names`].

mod real;
pub mod simulated;

use std::io;
use std::sync::Arc;

pub use self::real::Directory;

/// One directory.
pub trait Disk: Send + Sync {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file that is not there yet.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Gives a file another name; one that had that name is gone.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a name away; who has the file open can still read it.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes names durable.
    fn sync_names(&self) -> io::Result<()>;

    /// How many bytes are free for us.
    fn free(&self) -> io::Result<u64>;
}

/// One file. Written by one thread, read by many.
pub trait File: Send + Sync {
    /// Fills `buffer` from `offset` on; fewer bytes at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The same from memory alone: `WouldBlock` if the disk must be asked.
    fn read_cached_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Writes all of it.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the bytes written so far durable.
    fn sync(&self) -> io::Result<()>;

    /// How many bytes it has.
    fn size(&self) -> io::Result<u64>;
}

/// Whether a reader may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    AsNeeded,
    /// What is not in memory is `WouldBlock`.
    Never,
}

/// Reads all of a file from `offset` up to `end`, or less if it is shorter.
pub(crate) fn read_range(file: &dyn File, offset: u64, end: u64) -> io::Result<Vec<u8>> {
    read_range_as(file, offset, end, Wait::AsNeeded)
}

/// The same, for a reader who may not be able to wait.
pub(crate) fn read_range_as(
    file: &dyn File,
    offset: u64,
    end: u64,
    wait: Wait,
) -> io::Result<Vec<u8>> {
    let wanted = usize::try_from(end.saturating_sub(offset))
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut bytes = vec![0; wanted];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = offset + filled as u64;
        let read = match wait {
            Wait::AsNeeded => file.read_at(rest, at),
            Wait::Never => file.read_cached_at(rest, at),
        };
        match read {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
