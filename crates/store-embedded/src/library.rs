//! Where segments are read: by place, from any thread.
//!
//! A place stays good for as long as its message lives. An envelope segment
//! that was given up stays open for a while, since a worker may still hold a
//! place in it. A body segment that was rewritten keeps its places: it knows
//! where each of its bodies stands now.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, RwLock};

use outflow_ports::parcel::{Parcel, ParcelError, ParcelSource};

use crate::disk::{File, Wait, read_range_as};
use crate::journal::entry::{Entry, body_check};
use crate::journal::frame::{self, FRAME_HEAD};
use crate::journal::place::Place;
use crate::journal::segment::Kind;

/// The most bytes that are read by somebody who must not wait: copying and
/// checking them takes time too.
const NOW_BYTES_MAX: u64 = 64 << 10;

/// Where each body of a rewritten segment stood, and stands now, in order.
pub type Moves = Arc<[(u64, u64)]>;

/// One segment, open for reading.
#[derive(Clone)]
pub struct Shelf {
    pub file: Arc<dyn File>,
    pub epoch: u64,
    /// For a rewritten segment.
    pub moved: Option<Moves>,
}

impl Shelf {
    fn offset(&self, place: Place) -> Option<u64> {
        let Some(moved) = &self.moved else {
            return Some(place.offset());
        };
        let at = moved.binary_search_by_key(&place.offset(), |(from, _)| *from);
        moved.get(at.ok()?).map(|(_, to)| *to)
    }

    /// How many bytes the frame at this place has; at least what the place says
    /// if it cannot be read.
    pub fn frame_bytes(&self, place: Place) -> u64 {
        match self.read(place) {
            Ok(Some((_, payload))) => frame::frame_bytes(payload.len()) as u64,
            _ => place.size(),
        }
    }

    /// The kind and payload of the frame at this place, if it holds.
    pub fn read(&self, place: Place) -> io::Result<Option<(u8, Vec<u8>)>> {
        self.read_as(place, Wait::AsNeeded)
    }

    fn read_as(&self, place: Place, wait: Wait) -> io::Result<Option<(u8, Vec<u8>)>> {
        let Some(offset) = self.offset(place) else {
            return Ok(None);
        };
        let mut wanted = place.size().max(FRAME_HEAD as u64);
        loop {
            let bytes = read_range_as(&*self.file, offset, offset + wanted, wait)?;
            let Some(length) = frame::length_at(&bytes, 0) else {
                return Ok(None);
            };
            let needed = (FRAME_HEAD + length) as u64;
            if needed > wanted {
                wanted = needed;
                continue;
            }
            let frame = frame::read(&bytes, 0, offset, self.epoch);
            return Ok(frame.map(|frame| (frame.kind, frame.payload.to_vec())));
        }
    }
}

/// All open segments.
#[derive(Default)]
pub struct Library {
    shelves: RwLock<BTreeMap<(Kind, u32), Shelf>>,
}

impl Library {
    pub fn put(&self, kind: Kind, number: u32, shelf: Shelf) {
        let mut shelves = self.shelves.write().unwrap_or_else(|it| it.into_inner());
        shelves.insert((kind, number), shelf);
    }

    pub fn take(&self, kind: Kind, number: u32) -> Option<Shelf> {
        let mut shelves = self.shelves.write().unwrap_or_else(|it| it.into_inner());
        shelves.remove(&(kind, number))
    }

    pub fn shelf(&self, kind: Kind, number: u32) -> Option<Shelf> {
        let shelves = self.shelves.read().unwrap_or_else(|it| it.into_inner());
        shelves.get(&(kind, number)).cloned()
    }

    /// The frame at this place. A segment may be rewritten under the reader's
    /// hands; the second look sees the new one.
    pub fn read(&self, kind: Kind, place: Place) -> io::Result<(u8, Vec<u8>)> {
        self.read_as(kind, place, Wait::AsNeeded)
    }

    fn read_as(&self, kind: Kind, place: Place, wait: Wait) -> io::Result<(u8, Vec<u8>)> {
        for _ in 0..2 {
            let Some(shelf) = self.shelf(kind, place.segment()) else {
                break;
            };
            if let Some(found) = shelf.read_as(place, wait)? {
                return Ok(found);
            }
        }
        let text = format!("there is no {kind:?} at {place:?}");
        Err(io::Error::new(io::ErrorKind::NotFound, text))
    }
}

impl Library {
    fn envelope(&self, place: Place) -> io::Result<Arc<[u8]>> {
        let (kind, payload) = self.read(Kind::Envelope, place)?;
        match Entry::read(kind, &payload) {
            Some(Entry::Message(message) | Entry::Kept { message, .. }) => {
                Ok(message.envelope.into())
            }
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }
}

impl Library {
    fn parcel(&self, envelope: Place, body: Place, wait: Wait) -> io::Result<Parcel> {
        let (kind, payload) = self.read_as(Kind::Envelope, envelope, wait)?;
        let message = match Entry::read(kind, &payload) {
            Some(Entry::Message(message) | Entry::Kept { message, .. }) => message,
            _ => return Err(io::Error::from(io::ErrorKind::InvalidData)),
        };
        let (_, body) = self.read_as(Kind::Body, body, wait)?;
        if body_check(&body) != message.body_check {
            let text = "this is not the body of this message";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Parcel {
            envelope: message.envelope.into(),
            body: body.into(),
        })
    }
}

impl ParcelSource for Library {
    fn read(&self, envelope: u64, body: u64) -> Result<Parcel, ParcelError> {
        self.parcel(Place(envelope), Place(body), Wait::AsNeeded)
            .map_err(unreadable)
    }

    fn read_envelope(&self, envelope: u64, _: u64) -> Result<Arc<[u8]>, ParcelError> {
        self.envelope(Place(envelope)).map_err(unreadable)
    }

    fn read_now(&self, envelope: u64, body: u64) -> Option<Parcel> {
        let (envelope, body) = (Place(envelope), Place(body));
        if envelope.size() + body.size() > NOW_BYTES_MAX {
            return None;
        }
        self.parcel(envelope, body, Wait::Never).ok()
    }
}

fn unreadable(error: io::Error) -> ParcelError {
    match error.kind() {
        // The disk gave what it has, and that is not what was written.
        io::ErrorKind::NotFound | io::ErrorKind::InvalidData => {
            ParcelError::Damaged(error.to_string())
        }
        _ => ParcelError::Unread(error.to_string()),
    }
}
