//! A directory of the file system.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, File};
use crate::private;

/// A directory of the file system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: fs::File,
}

impl Directory {
    /// The directory at this path, made if need be.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        // A directory without a durable name is lost with all that is in it.
        // One that we may not read is somebody else's, and older than this.
        for parent in path.ancestors().skip(1).take(2) {
            if let Ok(parent) = fs::File::open(parent) {
                parent.sync_all()?;
            }
        }
        private::all_in(path)?;
        Ok(Self {
            path: path.to_owned(),
            handle: fs::File::open(path)?,
        })
    }
}

impl Disk for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options.mode(private::MODE);
        Ok(Arc::new(options.open(self.path.join(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        Ok(Arc::new(options.open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn free(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.handle)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl File for fs::File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    #[cfg(target_os = "linux")]
    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut buffers = [io::IoSliceMut::new(buffer)];
        let flags = rustix::io::ReadWriteFlags::NOWAIT;
        match rustix::io::preadv2(self, &mut buffers, offset, flags) {
            // Not every file system can say.
            Err(rustix::io::Errno::OPNOTSUPP) => Err(io::ErrorKind::WouldBlock.into()),
            read => Ok(read?),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
