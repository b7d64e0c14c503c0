//! New segments, from spare files.
//!
//! A spare is a file of full length: zeros, or a segment that was given up.
//! Writing into it changes no metadata, so a sync of it is one write, and it
//! has room when the disk is full. A spare gets its header and is synced before
//! it gets the name of a segment, so a segment always has a header. Then it is
//! listed, and only then written to; it is struck off before its name goes.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outflow_core::time::{Mono, Wall};

use super::list::{Listed, SegmentList};
use super::place::{SEGMENT_BYTES_MAX, SEGMENTS_MAX};
use super::segment::{FORMAT, HEADER, Header, Kind};
use crate::boot::BootClock;
use crate::disk::{Disk, File};
use crate::library::{Library, Shelf};

/// A page at a time: in what pieces a kernel keeps a file in memory follows the
/// writes that filled it, and each little write later on makes its whole piece
/// dirty. In pieces of 64 KB a commit of 200 bytes counted as 64 KB written.
static ZEROS: [u8; 1 << 12] = [0; 1 << 12];
/// Spares of one kind that are kept; more are removed.
const SPARES_MAX: usize = 2;

/// A file that waits to become a segment.
pub struct Spare {
    kind: Kind,
    name: String,
    file: Arc<dyn File>,
    bytes: u64,
}

/// A spare with the header of a segment.
pub struct Prepared {
    spare: Spare,
    header: Header,
}

/// A segment that is being written.
pub struct Active {
    pub number: u32,
    pub epoch: u64,
    pub file: Arc<dyn File>,
    pub bytes: u64,
    /// Where the next frame goes, and up to where all is durable.
    pub at: u64,
    /// Whether writes and syncs went well so far.
    pub trusted: bool,
}

impl Active {
    /// Whether so many more bytes can be written here.
    pub fn takes(&self, bytes: usize) -> bool {
        self.trusted && self.at + bytes as u64 <= self.bytes
    }
}

/// Makes segments and keeps spares.
pub struct Files {
    pub disk: Arc<dyn Disk>,
    pub library: Arc<Library>,
    pub list: Arc<SegmentList>,
    pub key_seed: u64,
    boot: Arc<dyn BootClock>,
    bytes: [u64; 2],
    spares: Mutex<Vec<Spare>>,
    names: AtomicU64,
    epochs: AtomicU64,
}

impl Files {
    pub fn new(
        disk: Arc<dyn Disk>,
        library: Arc<Library>,
        list: Arc<SegmentList>,
        key_seed: u64,
        epoch: u64,
        boot: Arc<dyn BootClock>,
        bytes: [u64; 2],
    ) -> Self {
        Self {
            disk,
            library,
            list,
            key_seed,
            boot,
            bytes: bytes.map(|bytes| bytes.clamp(4_096, SEGMENT_BYTES_MAX)),
            spares: Mutex::default(),
            names: AtomicU64::new(1),
            epochs: AtomicU64::new(epoch),
        }
    }

    fn spares(&self) -> std::sync::MutexGuard<'_, Vec<Spare>> {
        self.spares.lock().unwrap_or_else(|it| it.into_inner())
    }

    fn usual_bytes(&self, kind: Kind) -> u64 {
        let [envelope, body] = self.bytes;
        match kind {
            Kind::Envelope => envelope,
            Kind::Body => body,
        }
    }

    /// Whether a spare should be made ahead of its use.
    pub fn wants_spare(&self, kind: Kind) -> bool {
        !self.spares().iter().any(|spare| spare.kind == kind)
    }

    /// Makes a spare ahead of its use.
    pub fn add_spare(&self, kind: Kind) -> io::Result<()> {
        let spare = self.make_spare(kind, self.usual_bytes(kind))?;
        self.spares().push(spare);
        Ok(())
    }

    fn make_spare(&self, kind: Kind, bytes: u64) -> io::Result<Spare> {
        let name = self.spare_name(kind);
        let file = self.disk.create(&name)?;
        let filled = (|| {
            let mut at = 0;
            while at < bytes {
                let zeros = ZEROS.get(..(bytes - at).min(ZEROS.len() as u64) as usize);
                file.write_at(zeros.unwrap_or(&ZEROS), at)?;
                at += ZEROS.len() as u64;
            }
            file.sync()
        })();
        if let Err(error) = filled {
            // What is left of it is removed at the next start, if not now.
            let _ = self.disk.remove(&name);
            return Err(error);
        }
        Ok(Spare {
            kind,
            name,
            file,
            bytes,
        })
    }

    fn spare_name(&self, kind: Kind) -> String {
        kind.spare_name(self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes a spare of a segment that was given up, or removes it.
    pub fn recycle(&self, kind: Kind, number: u32, file: &Arc<dyn File>) -> io::Result<()> {
        let bytes = file.size()?;
        let name = &kind.name(number);
        // While it is listed, its absence would be damage.
        self.list.remove(kind, number)?;
        let enough = {
            let spares = self.spares();
            let count = spares.iter().filter(|spare| spare.kind == kind).count();
            // A body that is freed leaves the disk; what was in an envelope
            // segment is overwritten in its next life.
            kind == Kind::Body || count >= SPARES_MAX || bytes != self.usual_bytes(kind)
        };
        if enough {
            gone_or(self.disk.remove(name))?;
            return self.disk.sync_names();
        }
        let spare = self.spare_name(kind);
        match self.disk.rename(name, &spare) {
            // It was renamed before, and then the names could not be synced.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.disk.sync_names();
            }
            renamed => renamed?,
        }
        // Nothing may be written into it while a crash could bring its old name
        // back.
        if let Err(error) = self.disk.sync_names() {
            // The caller tries again and finds that it is gone.
            let _ = self.disk.remove(&spare);
            return Err(error);
        }
        self.spares().push(Spare {
            kind,
            name: spare,
            file: Arc::clone(file),
            bytes,
        });
        Ok(())
    }

    /// Begins a segment with room for `needed` bytes of frames.
    pub fn begin(
        &self,
        kind: Kind,
        number: u32,
        before_end: u64,
        needed: usize,
    ) -> io::Result<Active> {
        self.name(self.prepare(kind, number, before_end, needed)?)
    }

    /// A segment that lacks nothing but its name.
    pub fn prepare(
        &self,
        kind: Kind,
        number: u32,
        before_end: u64,
        needed: usize,
    ) -> io::Result<Prepared> {
        if number >= SEGMENTS_MAX {
            return Err(io::Error::other("the journal has used all its numbers"));
        }
        let bytes = self.usual_bytes(kind).max(HEADER + needed as u64);
        let spare = {
            let mut spares = self.spares();
            let fitting = spares
                .iter()
                .position(|spare| spare.kind == kind && spare.bytes >= bytes);
            fitting.map(|at| spares.swap_remove(at))
        };
        let spare = match spare {
            Some(spare) => spare,
            None => self.make_spare(kind, bytes)?,
        };
        let header = Header {
            kind,
            format: FORMAT,
            number,
            epoch: self.new_epoch(),
            before_end,
            key_seed: self.key_seed,
            since: self.now(),
        };
        spare.file.write_at(&header.to_bytes(), 0)?;
        spare.file.sync()?;
        Ok(Prepared { spare, header })
    }

    /// Names a segment. If this fails it may have its name all the same, and what
    /// its header says of the one before it holds.
    pub fn name(&self, prepared: Prepared) -> io::Result<Active> {
        let Prepared { spare, header } = prepared;
        let (kind, number) = (header.kind, header.number);
        // A try before this one may have left a segment of that name.
        self.list.expect(kind, number, spare.bytes)?;
        self.disk.rename(&spare.name, &kind.name(number))?;
        self.disk.sync_names()?;
        let listed = Listed {
            bytes: spare.bytes,
            epoch: header.epoch,
        };
        self.list.add(kind, number, listed)?;
        let shelf = Shelf {
            file: Arc::clone(&spare.file),
            epoch: header.epoch,
            moved: None,
        };
        self.library.put(kind, number, shelf);
        Ok(Active {
            number,
            epoch: header.epoch,
            file: spare.file,
            bytes: spare.bytes,
            at: HEADER,
            trusted: true,
        })
    }

    /// The time that a segment which is written now carries.
    pub fn now(&self) -> Wall {
        self.boot.wall()
    }

    /// The clock by which this process waits.
    pub fn mono(&self) -> Mono {
        self.boot.mono()
    }

    /// An epoch that no file of this directory had before.
    pub fn new_epoch(&self) -> u64 {
        let next = self.epochs.fetch_add(1, Ordering::Relaxed);
        next.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }
}

/// A file that is not there any more needs no removal.
pub fn gone_or(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
