//! The list of the segments that exist, and the mark of a clean stop.
//!
//! Without it a start cannot tell a segment that somebody deleted from one that
//! never was, nor a damaged end from one that a crash tore. The list stands in
//! two files, which are written in place one after the other, so that one is
//! whole whenever the power goes and a full disk is no hindrance.
//!
//! The list never names what may not be there: a segment is listed when its name
//! is durable and before anything is written into it, and struck off before its
//! name goes. A segment that is there and not listed holds nothing that anybody
//! was told of, or nothing that is needed any more.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_core::time::Wall;
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{In, Out};
use super::segment::{FORMAT, Kind};
use crate::disk::{Disk, File, read_range};

/// The files of the list.
pub const COPIES: [&str; 2] = ["segments.list", "segments.copy"];
const MAGIC: &[u8; 8] = b"outflist";
/// Magic, format, nothing, and how long what follows is.
const HEAD: usize = 16;
/// A file of the list has a multiple of so many bytes: it hardly ever grows.
const GRAIN: usize = 1 << 16;
/// No list is longer than this.
const BYTES_MAX: u64 = 1 << 30;

/// What is known of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its file has at least so many bytes.
    pub bytes: u64,
    /// Its epoch, unless it is a body segment that was rewritten.
    pub epoch: u64,
}

/// Where the store stood when it was closed in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanStop {
    /// Everything up to this position of the journal was durable, and nothing
    /// was written behind it.
    pub through: u64,
    /// The record covered the journal up to here.
    pub applied: u64,
}

/// Counts of limits may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountsLost {
    /// When that was found.
    pub at: Wall,
    /// What was written before this position is not to be relied on.
    pub before: u64,
}

/// What the list says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// One higher each time it is written.
    pub generation: u64,
    /// Which store this is; the record says the same.
    pub id: u64,
    /// Whether the record says so already.
    pub is_paired: bool,
    pub key_seed: u64,
    /// If this store was made out of a damaged one.
    pub counts_lost: Option<CountsLost>,
    pub clean: Option<CleanStop>,
    pub segments: BTreeMap<(Kind, u32), Listed>,
}

/// Why a file of the list says nothing.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("is missing")]
    Missing,
    #[error("is damaged")]
    Damaged,
    #[error("has format {0}, this version reads format {FORMAT}")]
    Version(u16),
    #[error("cannot be read: {0}")]
    Io(io::Error),
}

/// What the files of the list say together.
#[derive(Debug, Default)]
pub struct Loaded {
    /// None if there is no list that holds.
    pub contents: Option<Contents>,
    /// Files that do not agree, and what is wrong with them.
    pub faults: Vec<(&'static str, ListError)>,
    /// A file is an earlier one than the other.
    pub is_behind: bool,
}

impl Contents {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + 64 + self.segments.len() * 24);
        bytes.extend_from_slice(MAGIC);
        let mut out = Out(&mut bytes);
        out.u16(FORMAT).u16(0).u32(0);
        out.u64(self.generation).u64(self.id).u64(self.key_seed);
        out.u8(u8::from(self.is_paired));
        let lost = self.counts_lost.unwrap_or(CountsLost {
            at: Wall(i64::MAX),
            before: 0,
        });
        out.i64(lost.at.0).u64(lost.before);
        let clean = self.clean.unwrap_or(CleanStop {
            through: u64::MAX,
            applied: u64::MAX,
        });
        out.u64(clean.through).u64(clean.applied);
        out.u32(self.segments.len() as u32);
        for ((kind, number), listed) in &self.segments {
            out.u8(*kind as u8).u32(*number);
            out.u64(listed.bytes).u64(listed.epoch);
        }
        let length = (bytes.len() - HEAD) as u32;
        if let Some(place) = bytes.get_mut(12..HEAD) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        let check = xxh3_64(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(GRAIN), 0);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Self, ListError> {
        Self::parse(bytes).unwrap_or(Err(ListError::Damaged))
    }

    fn parse(bytes: &[u8]) -> Option<Result<Self, ListError>> {
        let mut from = In(bytes.strip_prefix(MAGIC)?);
        let (version, _, length) = (from.u16()?, from.u16()?, from.u32()?);
        let end = HEAD + length as usize;
        let check = bytes.get(end..end + 8)?.try_into().ok()?;
        if xxh3_64(bytes.get(..end)?) != u64::from_le_bytes(check) {
            return None;
        }
        if version != FORMAT {
            return Some(Err(ListError::Version(version)));
        }
        let mut contents = Self {
            generation: from.u64()?,
            id: from.u64()?,
            key_seed: from.u64()?,
            is_paired: from.u8()? != 0,
            ..Self::default()
        };
        let (at, before) = (Wall(from.i64()?), from.u64()?);
        contents.counts_lost = (at.0 != i64::MAX).then_some(CountsLost { at, before });
        let (through, applied) = (from.u64()?, from.u64()?);
        let clean = CleanStop { through, applied };
        contents.clean = (through != u64::MAX).then_some(clean);
        for _ in 0..from.u32()? {
            let kind = Kind::of(from.u8()?)?;
            let number = from.u32()?;
            let (bytes, epoch) = (from.u64()?, from.u64()?);
            contents
                .segments
                .insert((kind, number), Listed { bytes, epoch });
        }
        Some(Ok(contents))
    }
}

fn load_copy(disk: &dyn Disk, name: &str) -> Result<Contents, ListError> {
    let bytes = disk.open(name).and_then(|file| {
        let size = file.size()?.min(BYTES_MAX);
        read_range(&*file, 0, size)
    });
    match bytes {
        Ok(bytes) => Contents::read(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ListError::Missing),
        Err(error) => Err(ListError::Io(error)),
    }
}

/// Reads the list; the later of its files counts.
pub fn load(disk: &dyn Disk) -> Loaded {
    let mut loaded = Loaded::default();
    for name in COPIES {
        match load_copy(disk, name) {
            Ok(contents) => {
                let other = loaded.contents.as_ref().map(|other| other.generation);
                loaded.is_behind |= other.is_some_and(|other| other != contents.generation);
                if other.is_none_or(|other| other < contents.generation) {
                    loaded.contents = Some(contents);
                }
            }
            Err(error) => loaded.faults.push((name, error)),
        }
    }
    loaded
}

struct Written {
    contents: Contents,
    files: [Option<Arc<dyn File>>; 2],
}

/// The list of an open store.
pub struct SegmentList {
    disk: Arc<dyn Disk>,
    written: Mutex<Written>,
}

impl SegmentList {
    /// Writes the list, also over files that do not hold.
    pub fn begin(disk: Arc<dyn Disk>, contents: Contents) -> io::Result<Self> {
        let list = Self {
            disk,
            written: Mutex::new(Written {
                contents,
                files: [None, None],
            }),
        };
        list.change(|_| ())?;
        Ok(list)
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the list on the disk. If that fails the change is taken back, and
    /// the disk may have either.
    fn change(&self, change: impl FnOnce(&mut Contents)) -> io::Result<()> {
        let mut written = self.lock();
        let Written { contents, files } = &mut *written;
        let mut next = contents.clone();
        change(&mut next);
        // Also after a failure: what is written later must count as later.
        contents.generation += 1;
        next.generation = contents.generation;
        let bytes = next.to_bytes();
        let mut is_new = false;
        for (name, file) in COPIES.into_iter().zip(files) {
            let open = match file.take() {
                Some(open) => open,
                None => match self.disk.open(name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        is_new = true;
                        self.disk.create(name)?
                    }
                    opened => opened?,
                },
            };
            let put = open.write_at(&bytes, 0).and_then(|()| open.sync());
            *file = Some(open);
            put?;
        }
        if is_new {
            self.disk.sync_names()?;
        }
        *contents = next;
        Ok(())
    }

    /// A segment has its name. Nothing is in it yet.
    pub fn add(&self, kind: Kind, number: u32, listed: Listed) -> io::Result<()> {
        self.change(|contents| {
            contents.segments.insert((kind, number), listed);
        })
    }

    /// A segment is about to lose its name.
    pub fn remove(&self, kind: Kind, number: u32) -> io::Result<()> {
        if !self.lock().contents.segments.contains_key(&(kind, number)) {
            return Ok(());
        }
        self.change(|contents| {
            contents.segments.remove(&(kind, number));
        })
    }

    /// Another file is about to take the name of a segment, if there is one.
    pub fn expect(&self, kind: Kind, number: u32, bytes: u64) -> io::Result<()> {
        let known = self.lock().contents.segments.get(&(kind, number)).copied();
        if known.is_none_or(|known| known.bytes <= bytes) {
            return Ok(());
        }
        self.change(|contents| {
            if let Some(listed) = contents.segments.get_mut(&(kind, number)) {
                listed.bytes = bytes;
            }
        })
    }

    /// Which store this is.
    pub fn id(&self) -> u64 {
        self.lock().contents.id
    }

    /// The record says which store this is.
    pub fn pair(&self) -> io::Result<()> {
        if self.lock().contents.is_paired {
            return Ok(());
        }
        self.change(|contents| contents.is_paired = true)
    }

    /// All is written, and nothing will be any more.
    pub fn stop(&self, clean: CleanStop) -> io::Result<()> {
        self.change(|contents| contents.clean = Some(clean))
    }
}
