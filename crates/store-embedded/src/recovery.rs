//! What a start finds: the journal is read from its oldest segment on.
//!
//! Old segments are given up as their messages are, so what is read is bounded
//! by what is alive. Of the last segment the end may be torn: what does not
//! hold there and was never known to be durable is cut. Anything else that does
//! not hold is damage, and the start fails and names it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use outflow_core::message::Seq;
use outflow_core::time::Wall;

use crate::boot::{BootTime, LastRecord};
use crate::disk::{Disk, File, read_range};
use crate::index::Index;
use crate::journal::codec::In;
use crate::journal::entry::{Commit, Entry, body_check};
pub use crate::journal::error::JournalError;
use crate::journal::files::Active;
use crate::journal::frame::{Frame, frame_bytes};
use crate::journal::list::{self, CleanStop, Contents, Listed, Loaded};
use crate::journal::place::{Place, position};
use crate::journal::segment::{
    Frames, HEADER, Header, HeaderError, Kind, is_vouched_for, written_to,
};
use crate::journal::writer::Tail;
use crate::library::{Library, Moves, Shelf};
use crate::read_ahead::{Ahead, each_whole};
use crate::resync::InDoubt;
use crate::settings::Settings;

/// A body segment as a start finds it.
#[derive(Clone, Copy, Debug)]
pub struct BodyFile {
    pub bytes: u64,
    /// Nothing in it was dead before this.
    pub since: Wall,
    /// How many bodies it has, if it was rewritten; else nobody has counted.
    pub count: Option<u64>,
}

/// What a start found.
pub struct Recovery {
    pub index: Index,
    pub library: Arc<Library>,
    pub tail: Tail,
    pub last_record: Option<LastRecord>,
    pub key_seed: Option<u64>,
    /// Whether keys were handed to the record.
    pub keys_moved: bool,
    /// Envelope segments, oldest first, and body segments with their bytes.
    pub envelopes: Vec<u32>,
    pub bodies: BTreeMap<u32, BodyFile>,
    /// Bytes of the journal that were read, and that were cut.
    pub bytes_read: u64,
    pub bytes_cut: u64,
    /// Up to where the journal counts.
    pub through: u64,
    /// What was read and may be in the machine's memory only.
    pub in_doubt: InDoubt,
    /// What the list says, and what is wrong with its files.
    pub listed: Loaded,
    /// All segments that are there.
    segments: BTreeMap<(Kind, u32), Listed>,
    /// The latest version that wrote any of them.
    format: u16,
}

fn at_file<T>(name: &str, result: io::Result<T>) -> Result<T, JournalError> {
    result.map_err(|error| JournalError::Io {
        name: name.to_owned(),
        error,
    })
}

/// A segment that was opened.
pub(crate) struct Opened {
    pub name: String,
    pub number: u32,
    pub header: Header,
    pub file: Arc<dyn File>,
    pub bytes: u64,
}

fn open(disk: &dyn Disk, kind: Kind, number: u32) -> Result<Opened, JournalError> {
    let name = kind.name(number);
    let file = at_file(&name, disk.open(&name))?;
    let bytes = at_file(&name, file.size())?;
    let header = at_file(&name, read_range(&*file, 0, HEADER))?;
    let header = Header::read(&header).and_then(|header| {
        let is_it = (header.kind, header.number) == (kind, number);
        is_it.then_some(header).ok_or(HeaderError::Damaged)
    });
    let header = header.map_err(|error| JournalError::Header {
        name: name.clone(),
        error,
    })?;
    Ok(Opened {
        name,
        number,
        header,
        file,
        bytes,
    })
}

/// The segments of a kind by number.
pub fn numbers(disk: &dyn Disk, kind: Kind) -> Result<Vec<u32>, JournalError> {
    let names = at_file("the directory", disk.list())?;
    let numbers = names.iter().filter_map(|name| Kind::parse(name));
    let numbers = numbers.filter(|(of, _)| *of == kind);
    let mut numbers: Vec<u32> = numbers.map(|(_, number)| number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl Recovery {
    /// Reads the journal in `disk`. Messages done with at positions up to
    /// `applied` have their receipts already.
    pub fn read(
        disk: &dyn Disk,
        settings: &Settings,
        applied: u64,
        ahead: Ahead,
    ) -> Result<Self, JournalError> {
        let mut found = Self {
            index: Index::new(settings),
            library: Arc::default(),
            tail: Tail::default(),
            last_record: None,
            key_seed: None,
            keys_moved: false,
            envelopes: Vec::new(),
            bodies: BTreeMap::new(),
            bytes_read: 0,
            bytes_cut: 0,
            through: 0,
            in_doubt: InDoubt::default(),
            listed: list::load(disk),
            segments: BTreeMap::new(),
            format: 0,
        };
        found.open_bodies(disk)?;
        found.read_envelopes(disk, applied, ahead)?;
        found.find_body_end(disk)?;
        Ok(found)
    }

    /// Notes a segment that is there.
    fn note(&mut self, opened: &Opened) -> Result<(), JournalError> {
        let key = (opened.header.kind, opened.number);
        let listed = Listed {
            bytes: opened.bytes,
            epoch: opened.header.epoch,
        };
        self.segments.insert(key, listed);
        self.format = self.format.max(opened.header.format);
        let contents = self.listed.contents.as_ref();
        let before = contents.and_then(|contents| contents.segments.get(&key));
        match before {
            Some(before) if opened.bytes < before.bytes => Err(JournalError::Cut {
                name: opened.name.clone(),
                bytes: opened.bytes,
                listed: before.bytes,
            }),
            _ => Ok(()),
        }
    }

    fn compare_with_list(&self) -> Result<(), JournalError> {
        let Some(contents) = &self.listed.contents else {
            // A crash may have left half a list when there was nothing to list.
            let faults = self.listed.faults.iter();
            let faults = faults.map(|(name, error)| format!("{name} {error}"));
            return match self.format {
                0 | 1 => Ok(()),
                _ => Err(JournalError::NoList(faults.collect::<Vec<_>>().join(", "))),
            };
        };
        let gone = contents.segments.keys();
        if let Some((kind, number)) = { gone }.find(|key| !self.segments.contains_key(key)) {
            return Err(JournalError::Missing(kind.name(*number)));
        }
        Ok(())
    }

    fn clean(&self) -> Option<CleanStop> {
        self.listed.contents.as_ref()?.clean
    }

    /// The list of what is there, for a store that goes on. What was not listed
    /// is from now on.
    pub fn list(&mut self, id: u64, key_seed: u64) -> Contents {
        let before = self.listed.contents.take();
        if before.is_none() && self.format == 1 {
            // So that there is a segment that knows of the list.
            self.tail.envelope = None;
        }
        let before = before.unwrap_or_else(|| Contents {
            id,
            ..Contents::default()
        });
        Contents {
            key_seed,
            clean: None,
            segments: std::mem::take(&mut self.segments),
            ..before
        }
    }

    fn open_bodies(&mut self, disk: &dyn Disk) -> Result<(), JournalError> {
        for number in numbers(disk, Kind::Body)? {
            self.tail.next_body = number + 1;
            let opened = open(disk, Kind::Body, number)?;
            self.note(&opened)?;
            let moved = moved_table(&opened)?;
            let body_file = BodyFile {
                bytes: opened.bytes,
                since: opened.header.since,
                count: moved.as_ref().map(|moved| moved.len() as u64),
            };
            self.bodies.insert(number, body_file);
            let shelf = Shelf {
                file: Arc::clone(&opened.file),
                epoch: opened.header.epoch,
                moved,
            };
            self.library.put(Kind::Body, number, shelf);
        }
        Ok(())
    }

    fn read_envelopes(
        &mut self,
        disk: &dyn Disk,
        applied: u64,
        ahead: Ahead,
    ) -> Result<(), JournalError> {
        let numbers = numbers(disk, Kind::Envelope)?;
        let mut opened = Vec::new();
        for &number in &numbers {
            if opened
                .last()
                .is_some_and(|last: &Opened| last.number + 1 != number)
            {
                return Err(JournalError::Missing(Kind::Envelope.name(number - 1)));
            }
            let segment = open(disk, Kind::Envelope, number)?;
            self.note(&segment)?;
            let shelf = Shelf {
                file: Arc::clone(&segment.file),
                epoch: segment.header.epoch,
                moved: None,
            };
            self.library.put(Kind::Envelope, number, shelf);
            opened.push(segment);
        }
        self.compare_with_list()?;
        self.envelopes = numbers;
        self.key_seed = opened.last().map(|last| last.header.key_seed);
        each_whole(&opened, ahead, |segment, end, bytes| {
            let bytes = at_file(&segment.name, bytes)?;
            self.bytes_read += bytes.len() as u64;
            match end {
                Some(end) => self.read_whole(segment, &bytes, end, applied),
                None => self.read_last(segment, &bytes, applied),
            }
        })
    }

    /// Reads a segment that has a next one: up to its end all must hold.
    fn read_whole(
        &mut self,
        segment: &Opened,
        bytes: &[u8],
        end: u64,
        applied: u64,
    ) -> Result<(), JournalError> {
        let mut frames = Frames::new(bytes, segment.header.epoch);
        for frame in frames.by_ref() {
            self.replay(segment, &frame, applied)?;
        }
        self.through = position(segment.number, end);
        if frames.offset() == end || end < HEADER {
            return Ok(());
        }
        Err(JournalError::Damaged {
            name: segment.name.clone(),
            offset: frames.offset(),
        })
    }

    /// Reads the last segment: its end may be torn.
    fn read_last(
        &mut self,
        segment: &Opened,
        bytes: &[u8],
        applied: u64,
    ) -> Result<(), JournalError> {
        let mut group: Vec<Frame<'_>> = Vec::new();
        let mut last_group: Vec<Frame<'_>> = Vec::new();
        let clean = self.clean().map(|clean| clean.through);
        let is_before = |offset| clean.is_none_or(|end| position(segment.number, offset) < end);
        let epoch = segment.header.epoch;
        let mut frames = Frames::new(bytes, epoch);
        for frame in frames.by_ref() {
            // What failed to be written before a clean stop may be there too.
            if !is_before(frame.offset) {
                break;
            }
            let entry = Entry::read(frame.kind, frame.payload);
            let is_commit = matches!(entry, Some(Entry::Commit(_)));
            group.push(frame);
            if is_commit {
                for frame in std::mem::take(&mut last_group) {
                    self.replay(segment, &frame, applied)?;
                }
                last_group = std::mem::take(&mut group);
            }
        }
        let bad = frames.offset();
        let whole_end = last_group.last().map_or(HEADER, |frame| frame.end);
        if clean.is_some_and(|end| position(segment.number, whole_end) < end) {
            return Err(JournalError::Damaged {
                name: segment.name.clone(),
                offset: whole_end.max(bad),
            });
        }
        if is_vouched_for(bytes, epoch, bad) {
            return Err(JournalError::Damaged {
                name: segment.name.clone(),
                offset: bad,
            });
        }
        // Only the last commit can lack its bodies: all before it were synced.
        let start = last_group.first().map_or(HEADER, |frame| frame.offset);
        let mut end = last_group.last().map_or(start, |frame| frame.end);
        // A body that was whole at a clean stop was damaged since: its message
        // is not forgotten for that.
        let whole = clean.is_some() || last_group.iter().all(|frame| self.has_body(frame));
        if whole {
            for frame in &last_group {
                self.replay(segment, frame, applied)?;
            }
        } else {
            end = start;
        }
        let rest = bytes.get(end as usize..).unwrap_or_default();
        // Nothing may be written in front of what a torn commit left behind: it
        // would hold again. (Nor of what a recycled file had; that costs room.)
        let is_torn = bad > end || !whole || rest.iter().any(|byte| *byte != 0);
        if is_torn {
            self.bytes_cut = written_to(bytes, epoch, bad).max(end) - end;
        }
        if whole {
            self.in_doubt = InDoubt::of(&last_group, &self.library);
            self.in_doubt.add(&segment.file, start, end);
        }
        self.through = position(segment.number, end);
        self.tail.next_envelope = segment.number + 1;
        self.tail.before_end = end;
        self.tail.envelope = (!is_torn).then(|| Active {
            number: segment.number,
            epoch,
            file: Arc::clone(&segment.file),
            bytes: segment.bytes,
            at: end,
            trusted: true,
        });
        Ok(())
    }

    fn has_body(&self, frame: &Frame<'_>) -> bool {
        match Entry::read(frame.kind, frame.payload) {
            Some(Entry::Message(message)) => {
                let shelf = self.library.shelf(Kind::Body, message.body.segment());
                let body = shelf.map(|shelf| shelf.read(message.body));
                match body {
                    Some(Ok(Some((_, body)))) => body_check(&body) == message.body_check,
                    _ => false,
                }
            }
            _ => true,
        }
    }

    fn replay(
        &mut self,
        segment: &Opened,
        frame: &Frame<'_>,
        applied: u64,
    ) -> Result<(), JournalError> {
        let Some(entry) = Entry::read(frame.kind, frame.payload) else {
            return Err(JournalError::Damaged {
                name: segment.name.clone(),
                offset: frame.offset,
            });
        };
        match &entry {
            Entry::Commit(commit) => self.note_commit(commit),
            Entry::Keys { moved, .. } => self.keys_moved |= moved,
            _ => {}
        }
        let size = frame.end - frame.offset;
        let place = Place::new(segment.number, frame.offset, size);
        self.index.replay(entry, place);
        if place.position() < applied {
            self.index.finished.clear();
            self.index.feedback.clear();
        }
        Ok(())
    }

    fn note_commit(&mut self, commit: &Commit) {
        self.tail.last = self.tail.last.max(commit.last);
        self.last_record = Some(LastRecord {
            wall: commit.at,
            boot: BootTime {
                id: commit.boot_id,
                time: commit.boot_time,
            },
        });
    }

    /// Goes on writing the last body segment behind the last body in it that
    /// an entry speaks of.
    fn find_body_end(&mut self, disk: &dyn Disk) -> Result<(), JournalError> {
        self.tail.next_envelope = self.tail.next_envelope.max(1);
        self.tail.next_body = self.tail.next_body.max(self.index.bodies.next_segment());
        let Some((&number, &BodyFile { bytes, .. })) = self.bodies.last_key_value() else {
            return Ok(());
        };
        let Some(last) = self.index.bodies.last_in(number) else {
            return Ok(());
        };
        let opened = open(disk, Kind::Body, number)?;
        if opened.header.before_end != 0 {
            return Ok(());
        }
        at_file(&opened.name, opened.file.sync())?;
        let body = self.library.read(Kind::Body, last);
        let Ok((_, body)) = body else {
            return Ok(());
        };
        self.tail.body = Some(Active {
            number,
            epoch: opened.header.epoch,
            file: opened.file,
            bytes,
            at: last.offset() + frame_bytes(body.len()) as u64,
            trusted: true,
        });
        Ok(())
    }

    /// The highest number given so far.
    pub fn last_seq(&self) -> Seq {
        self.tail.last
    }
}

/// The table of a rewritten body segment: where each body stood and stands.
fn moved_table(opened: &Opened) -> Result<Option<Moves>, JournalError> {
    let at = opened.header.before_end;
    if at == 0 {
        return Ok(None);
    }
    let shelf = Shelf {
        file: Arc::clone(&opened.file),
        epoch: opened.header.epoch,
        moved: None,
    };
    let place = Place::new(opened.number, at, opened.bytes.saturating_sub(at));
    let table = at_file(&opened.name, shelf.read(place))?;
    let pairs = table.and_then(|(_, payload)| {
        let numbers = In(&payload).numbers()?;
        let (pairs, _) = numbers.as_chunks::<2>();
        Some(pairs.iter().map(|[from, to]| (*from, *to)).collect())
    });
    match pairs {
        Some(pairs) => Ok(Some(pairs)),
        None => Err(JournalError::Damaged {
            name: opened.name.clone(),
            offset: at,
        }),
    }
}
