//! The bodies of messages, each recognised by the check that its message has.
//!
//! Segments are written anew, with a table of where each body stood, as they are
//! when space is given back.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use outflow_core::time::Wall;

use super::{SalvageError, Salvaged, at, random, read_all, write_file};
use crate::disk::Disk;
use crate::index::Index;
use crate::journal::codec::Out;
use crate::journal::entry::{self, Entry, body_check};
use crate::journal::frame::{self, FRAME_HEAD};
use crate::journal::list::{Listed, SegmentList};
use crate::journal::place::{ALIGN, Place};
use crate::journal::segment::{FORMAT, HEADER, Header, Kind};
use crate::library::Library;
use outflow_core::message::Seq;

/// Who needs a body.
struct Wanted {
    check: u64,
    seqs: Vec<Seq>,
}

/// Copies the bodies that are whole. Messages whose bodies are lost.
pub fn save(
    from: &dyn Disk,
    index: &Index,
    library: &Library,
    to: &dyn Disk,
    list: &SegmentList,
    salvaged: &mut Salvaged,
) -> Result<Vec<Seq>, SalvageError> {
    let mut wanted: BTreeMap<u32, BTreeMap<Place, Wanted>> = BTreeMap::new();
    let mut lost = Vec::new();
    for (seq, slot) in index.slots.iter(Seq(0)) {
        let Some(check) = check_of(library, slot.root) else {
            lost.push(seq);
            continue;
        };
        let segment = wanted.entry(slot.body.segment()).or_default();
        let body = segment.entry(slot.body).or_insert_with(|| Wanted {
            check,
            seqs: Vec::new(),
        });
        body.seqs.push(seq);
    }
    for (number, bodies) in wanted {
        let name = Kind::Body.name(number);
        let bytes = match read_all(from, &name, salvaged) {
            Ok(bytes) => bytes,
            Err(error) => {
                let missing = error.kind() == std::io::ErrorKind::NotFound;
                let error = if missing {
                    "it is missing".to_owned()
                } else {
                    error.to_string()
                };
                salvaged.lose(format!("{name}: {error}: {} bodies", bodies.len()));
                lost.extend(bodies.into_values().flat_map(|body| body.seqs));
                continue;
            }
        };
        let source = Source::new(number, &bytes);
        let mut copy = Copy::default();
        for (place, body) in bodies {
            match source.find(place, body.check) {
                Some(payload) => copy.add(place, payload),
                None => {
                    let offset = place.offset();
                    salvaged.lose(format!("{name}: the body that was written at {offset}"));
                    lost.extend(body.seqs);
                }
            }
        }
        if !copy.table.is_empty() {
            let (bytes, epoch) = copy.write(to, number).map_err(at(Path::new(&name)))?;
            let listed = Listed { bytes, epoch };
            list.add(Kind::Body, number, listed)
                .map_err(at(Path::new(&name)))?;
        }
    }
    Ok(lost)
}

fn check_of(library: &Library, root: Place) -> Option<u64> {
    let (kind, payload) = library.read(Kind::Envelope, root).ok()?;
    match Entry::read(kind, &payload)? {
        Entry::Message(message) | Entry::Kept { message, .. } => Some(message.body_check),
        _ => None,
    }
}

/// A body segment, in whatever state.
struct Source<'a> {
    bytes: &'a [u8],
    /// Whether it was rewritten, as far as its header can be read.
    was_moved: bool,
    /// Where bodies with these checks stand.
    by_check: HashMap<u64, &'a [u8]>,
}

impl<'a> Source<'a> {
    fn new(number: u32, bytes: &'a [u8]) -> Self {
        let header = Header::read(bytes).ok();
        let header = header.filter(|it| (it.kind, it.number) == (Kind::Body, number));
        let was_moved = header.is_none_or(|header| header.before_end != 0);
        let mut by_check = HashMap::new();
        let mut at = HEADER as usize;
        // Without its places, bodies are found one behind the other.
        while was_moved && at < bytes.len() {
            match payload_at(bytes, at) {
                Some(payload) => {
                    by_check.insert(body_check(payload), payload);
                    at += frame::frame_bytes(payload.len());
                }
                None => at += ALIGN as usize,
            }
        }
        Self {
            bytes,
            was_moved,
            by_check,
        }
    }

    fn find(&self, place: Place, check: u64) -> Option<&'a [u8]> {
        let stays = payload_at(self.bytes, place.offset() as usize);
        let stays = stays.filter(|payload| body_check(payload) == check);
        let moved = || self.by_check.get(&check).filter(|_| self.was_moved);
        stays.or_else(|| moved().copied())
    }
}

/// What stands at an offset, if it can be the frame of a body.
fn payload_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length = frame::length_at(bytes, at)?;
    let covered = bytes.get(at + FRAME_HEAD..at + FRAME_HEAD + length)?;
    let (kind, payload) = covered.split_first()?;
    (*kind == entry::BODY).then_some(payload)
}

/// A segment that is written anew.
#[derive(Default)]
struct Copy {
    frames: Vec<u8>,
    /// Where each body stood, and stands.
    table: Vec<u64>,
}

impl Copy {
    fn add(&mut self, place: Place, payload: &[u8]) {
        let to = HEADER + self.frames.len() as u64;
        self.table.extend([place.offset(), to]);
        let start = frame::begin(&mut self.frames, entry::BODY);
        self.frames.extend_from_slice(payload);
        frame::end(&mut self.frames, start);
    }

    fn write(mut self, to: &dyn Disk, number: u32) -> std::io::Result<(u64, u64)> {
        let table_at = HEADER + self.frames.len() as u64;
        let start = frame::begin(&mut self.frames, entry::TABLE);
        Out(&mut self.frames).numbers(self.table.into_iter());
        frame::end(&mut self.frames, start);
        let epoch = random();
        frame::seal(&mut self.frames, epoch, HEADER);
        let header = Header {
            kind: Kind::Body,
            format: FORMAT,
            number,
            epoch,
            before_end: table_at,
            key_seed: 0,
            since: Wall(0),
        };
        let name = Kind::Body.name(number);
        let bytes = write_file(to, &name, [&header.to_bytes(), &self.frames])?;
        Ok((bytes, epoch))
    }
}
