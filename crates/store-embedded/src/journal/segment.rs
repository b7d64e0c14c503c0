//! Segments: the files that a journal consists of.
//!
//! A header says which segment of which kind this is, how far the one before
//! it is to be read, and its epoch, which every check covers. Behind it stand
//! frames up to the first that does not hold.

use outflow_core::time::Wall;
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{In, Out};
use super::entry::{COMMIT, Commit, Entry};
use super::frame::{self, FRAME_HEAD, Frame};
use super::place::ALIGN;

/// The version of all that is written. Since format 2 there is a list of the
/// segments; what is in them is the same.
pub const FORMAT: u16 = 2;
/// The earliest version that is read.
const FORMAT_MIN: u16 = 1;
/// Bytes of a header.
pub const HEADER: u64 = 64;
const MAGIC: &[u8; 8] = b"outflow\n";

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All but bodies: what a start reads.
    Envelope,
    /// Bodies.
    Body,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Envelope => "envelope",
            Self::Body => "body",
        }
    }

    /// The kind that is written as this number.
    pub(crate) const fn of(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Envelope),
            1 => Some(Self::Body),
            _ => None,
        }
    }

    /// What the file of a segment is called.
    pub fn name(self, number: u32) -> String {
        format!("{}-{number:08x}.segment", self.word())
    }

    /// What a file is called that waits to become a segment.
    pub fn spare_name(self, number: u64) -> String {
        format!("{}-{number:08x}.spare", self.word())
    }

    /// Which segment a file is, by its name.
    pub fn parse(name: &str) -> Option<(Self, u32)> {
        let stem = name.strip_suffix(".segment")?;
        let (word, number) = stem.split_once('-')?;
        let kind = [Self::Envelope, Self::Body]
            .into_iter()
            .find(|kind| kind.word() == word)?;
        let number = u32::from_str_radix(number, 16).ok()?;
        (number > 0 && kind.name(number) == name).then_some((kind, number))
    }
}

/// The beginning of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it holds.
    pub kind: Kind,
    /// The version that wrote it.
    pub format: u16,
    /// Its number among its kind.
    pub number: u32,
    /// Different each time a file is used.
    pub epoch: u64,
    /// How far the segment before it counts.
    pub before_end: u64,
    /// What idempotency keys are hashed with.
    pub key_seed: u64,
    /// Nothing in it was dead before this. Earlier versions wrote 1970.
    pub since: Wall,
}

/// Why a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Not ours, or damaged.
    #[error("its header is damaged")]
    Damaged,
    /// Written by a version that this one does not know.
    #[error("it has format {0}, this version reads formats up to {FORMAT}")]
    Version(u16),
}

impl Header {
    /// As it is written.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER as usize);
        bytes.extend_from_slice(MAGIC);
        let mut out = Out(&mut bytes);
        out.u16(self.format)
            .u8(self.kind as u8)
            .u8(0)
            .u32(self.number);
        out.u64(self.epoch).u64(self.before_end).u64(self.key_seed);
        out.i64(self.since.0);
        bytes.resize(HEADER as usize - 8, 0);
        let check = xxh3_64(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes
    }

    /// As it was written.
    pub fn read(bytes: &[u8]) -> Result<Self, HeaderError> {
        Self::parse(bytes).unwrap_or(Err(HeaderError::Damaged))
    }

    fn parse(bytes: &[u8]) -> Option<Result<Self, HeaderError>> {
        let (covered, check) = bytes.get(..HEADER as usize)?.split_last_chunk::<8>()?;
        let fields = covered.strip_prefix(MAGIC)?;
        if xxh3_64(covered) != u64::from_le_bytes(*check) {
            return None;
        }
        let mut from = In(fields);
        let version = from.u16()?;
        if !(FORMAT_MIN..=FORMAT).contains(&version) {
            return Some(Err(HeaderError::Version(version)));
        }
        let kind = Kind::of(from.u8()?)?;
        from.u8()?;
        Some(Ok(Self {
            kind,
            format: version,
            number: from.u32()?,
            epoch: from.u64()?,
            before_end: from.u64()?,
            key_seed: from.u64()?,
            since: Wall(from.i64()?),
        }))
    }
}

/// The frames of a segment that hold, up to the first that does not.
pub struct Frames<'a> {
    bytes: &'a [u8],
    epoch: u64,
    at: usize,
}

impl<'a> Frames<'a> {
    /// The frames behind the header of a whole segment.
    pub fn new(bytes: &'a [u8], epoch: u64) -> Self {
        Self {
            bytes,
            epoch,
            at: HEADER as usize,
        }
    }

    /// Where the next frame would stand.
    pub const fn offset(&self) -> u64 {
        self.at as u64
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let frame = frame::read(self.bytes, self.at, 0, self.epoch)?;
        self.at = frame.end as usize;
        Some(frame)
    }
}

/// Whether a commit beyond `from` says that bytes beyond it were durable: then
/// what does not hold there is damage and no torn end.
pub fn is_vouched_for(bytes: &[u8], epoch: u64, from: u64) -> bool {
    let mut commits = (from as usize..bytes.len()).step_by(ALIGN as usize);
    commits.any(|at| commit_at(bytes, at, epoch).is_some_and(|(_, it)| it.durable > from))
}

/// How far a segment was written whose frames hold up to `from`: a commit that
/// holds beyond it has lost what stood before it.
pub fn written_to(bytes: &[u8], epoch: u64, from: u64) -> u64 {
    let commits = (from as usize..bytes.len()).step_by(ALIGN as usize);
    let end = commits.rev().find_map(|at| commit_at(bytes, at, epoch));
    end.map_or(from, |(end, _)| end)
}

/// The commit that stands at `at` and where it ends, if one holds there.
fn commit_at(bytes: &[u8], at: usize, epoch: u64) -> Option<(u64, Commit)> {
    let looks_like_one = frame::length_at(bytes, at) == Some(Commit::BYTES + 1)
        && bytes.get(at + FRAME_HEAD) == Some(&COMMIT);
    let frame = looks_like_one.then(|| frame::read(bytes, at, 0, epoch))??;
    match Entry::read(frame.kind, frame.payload) {
        Some(Entry::Commit(commit)) => Some((frame.end, commit)),
        _ => None,
    }
}

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentReport {
    /// Frames that hold.
    pub frames: u64,
    /// Of these, such as this version understands.
    pub entries: u64,
    /// Where the frames end.
    pub end: u64,
    /// Whether what follows was durable once: then it is damaged.
    pub damaged: bool,
}

/// Makes the checks of all frames, and of the header, agree with what stands
/// there. Whoever damages a segment on purpose gets past the checks with this,
/// to what they guard.
pub fn reseal_segment(bytes: &mut [u8]) {
    let Some((header, frames)) = bytes.split_at_mut_checked(HEADER as usize) else {
        return;
    };
    let epoch = header.get(16..24).and_then(|epoch| epoch.try_into().ok());
    let epoch = epoch.map_or(0, u64::from_le_bytes);
    if let Some((covered, check)) = header.split_last_chunk_mut::<8>() {
        *check = xxh3_64(covered).to_le_bytes();
    }
    frame::seal(frames, epoch, HEADER);
}

/// Reads the bytes of one segment, whatever they are.
pub fn read_segment(bytes: &[u8]) -> Result<(Header, SegmentReport), HeaderError> {
    let header = Header::read(bytes)?;
    let mut report = SegmentReport::default();
    let mut frames = Frames::new(bytes, header.epoch);
    for frame in frames.by_ref() {
        report.frames += 1;
        report.entries += u64::from(Entry::read(frame.kind, frame.payload).is_some());
    }
    report.end = frames.offset();
    report.damaged =
        header.kind == Kind::Envelope && is_vouched_for(bytes, header.epoch, report.end);
    Ok((header, report))
}
