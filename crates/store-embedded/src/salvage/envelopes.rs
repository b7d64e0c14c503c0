//! The envelope segments, mended one by one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use outflow_core::message::Seq;
use outflow_core::time::Wall;

use super::mend::{mend, parts};
use super::{SalvageError, Salvaged, at, random, read_all, write_file};
use crate::disk::Disk;
use crate::journal::frame;
use crate::journal::list::{Contents, Listed};
use crate::journal::segment::{FORMAT, HEADER, Header, HeaderError, Kind};
use crate::recovery::numbers;

/// What is behind the segments that were copied.
pub struct End {
    /// The header of the segment that is still to be filled.
    pub header: Header,
    /// The highest number given, or more.
    pub last: Seq,
}

/// What was copied.
pub struct Copied {
    pub segments: BTreeMap<(Kind, u32), Listed>,
    pub key_seed: u64,
    pub first: u32,
    /// The last of the old ones.
    pub last: u32,
    /// Whether anything is lost.
    pub is_damaged: bool,
    pub end: End,
}

/// Numbers that are left out when the last ones given may be unknown.
const MARGIN: u64 = 1 << 20;

/// A segment as it was found.
#[derive(Default)]
struct Source {
    bytes: Vec<u8>,
    header: Option<Header>,
    epoch: Option<u64>,
}

struct Work<'a> {
    from: &'a dyn Disk,
    old: Option<&'a Contents>,
    salvaged: &'a mut Salvaged,
    is_damaged: bool,
}

impl Work<'_> {
    fn lose(&mut self, text: String) {
        self.is_damaged = true;
        self.salvaged.lose(text);
    }

    fn source(&mut self, number: u32) -> Result<Source, SalvageError> {
        let name = Kind::Envelope.name(number);
        let bytes = match read_all(self.from, &name, self.salvaged) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.lose(format!("{name} is missing: all that stood in it"));
                return Ok(Source::default());
            }
            Err(error) => {
                self.lose(format!("{name}: {error}: all that stood in it"));
                return Ok(Source::default());
            }
        };
        let key = (Kind::Envelope, number);
        let listed = self.old.and_then(|old| old.segments.get(&key));
        if let Some(listed) = listed
            && (bytes.len() as u64) < listed.bytes
        {
            self.lose(format!(
                "{name} was cut to {} of {} bytes",
                bytes.len(),
                listed.bytes
            ));
        }
        let header = match Header::read(&bytes) {
            Ok(header) if (header.kind, header.number) == key => Some(header),
            Err(error @ HeaderError::Version(_)) => {
                return Err(SalvageError::Newer(format!("{name}: {error}")));
            }
            _ => None,
        };
        let epoch = header.map(|header| header.epoch);
        let epoch = epoch.or(listed.map(|listed| listed.epoch));
        match (header, epoch) {
            (None, None) => self.lose(format!(
                "{name}: its header is damaged, and no list knows it: all that stood in it"
            )),
            (None, Some(_)) => self
                .salvaged
                .lose(format!("{name}: its header, which is known from the list")),
            _ => {}
        }
        Ok(Source {
            bytes,
            header,
            epoch,
        })
    }

    /// Up to where a segment counts, if that is known from elsewhere.
    fn end(&self, number: u32, next: Option<&Source>) -> Option<u64> {
        let next = next.and_then(|next| next.header);
        let clean = self.old.and_then(|old| old.clean);
        let clean = clean.filter(|clean| clean.through >> 32 == u64::from(number));
        next.map(|next| next.before_end)
            .or(clean.map(|clean| clean.through & u64::from(u32::MAX)))
            .map(|end| end.max(HEADER))
    }
}

/// Copies what holds of all envelope segments, and begins one behind them.
pub fn save(
    from: &dyn Disk,
    old: Option<&Contents>,
    to: &dyn Disk,
    salvaged: &mut Salvaged,
) -> Result<Copied, SalvageError> {
    let mut there = numbers(from, Kind::Envelope)?;
    let listed = old.into_iter().flat_map(|old| old.segments.keys());
    there.extend(
        listed
            .filter(|key| key.0 == Kind::Envelope)
            .map(|key| key.1),
    );
    let first = there.iter().copied().min().unwrap_or(1);
    let last = there.iter().copied().max().unwrap_or(0);
    let mut work = Work {
        from,
        old,
        salvaged,
        is_damaged: false,
    };
    if last == 0 && old.is_none() {
        work.lose("the journal is missing: all messages".to_owned());
    }
    let key_seed = old.map_or(0, |old| old.key_seed);
    let mut copied = Copied {
        segments: BTreeMap::new(),
        key_seed,
        first,
        last,
        is_damaged: false,
        end: End {
            header: header_of(1, 0, HEADER, key_seed),
            last: Seq(0),
        },
    };
    let mut before_end = HEADER;
    let mut given = None;
    let mut next = match last {
        0 => None,
        _ => Some(work.source(first)?),
    };
    for number in first..=last {
        let source = next.take().unwrap_or_default();
        if number < last {
            next = Some(work.source(number + 1)?);
        }
        let epoch = source.epoch.unwrap_or_else(random);
        let known_end = work.end(number, next.as_ref());
        let found = parts(&source.bytes, epoch, known_end);
        let end = known_end.unwrap_or(found.commit_end);
        // What was given before the first segment is not to be found here.
        let before = given.unwrap_or_else(|| match number {
            1 => (0, false),
            _ => (first_given(&found), false),
        });
        let mut mended = mend(&found, end, before);
        given = Some((mended.last, mended.is_open));
        let name = Kind::Envelope.name(number);
        if let Some(torn) = found.frames.iter().find(|frame| frame.offset >= end) {
            // As after any crash: nobody was told that it was stored.
            let line = format!("{name}: a commit at {} that was not finished", torn.offset);
            work.salvaged.lose(line);
        }
        for (from, to) in &mended.gaps {
            work.lose(format!("{name}: bytes {from} to {to}"));
        }
        work.salvaged.missing.append(&mut mended.messages);
        if let Some(header) = source.header {
            copied.key_seed = header.key_seed;
        }
        let since = source.header.map(|header| header.since);
        let header = Header {
            since: since.unwrap_or(Wall(0)),
            ..header_of(number, epoch, before_end, copied.key_seed)
        };
        frame::seal(&mut mended.bytes, epoch, HEADER);
        let bytes = write_file(to, &name, [&header.to_bytes(), &mended.bytes])
            .map_err(at(Path::new(&name)))?;
        let listed = Listed { bytes, epoch };
        copied.segments.insert((Kind::Envelope, number), listed);
        before_end = end;
    }
    let margin = if work.is_damaged { MARGIN } else { 0 };
    copied.is_damaged = work.is_damaged;
    let header = header_of(last + 1, random(), before_end, copied.key_seed);
    copied.end = End {
        header,
        last: Seq(given.map_or(0, |given| given.0) + margin),
    };
    let name = Kind::Envelope.name(last + 1);
    let bytes = write_file(to, &name, [&header.to_bytes(), &[]]).map_err(at(Path::new(&name)))?;
    let listed = Listed {
        bytes,
        epoch: header.epoch,
    };
    copied.segments.insert((Kind::Envelope, last + 1), listed);
    Ok(copied)
}

fn header_of(number: u32, epoch: u64, before_end: u64, key_seed: u64) -> Header {
    Header {
        kind: Kind::Envelope,
        format: FORMAT,
        number,
        epoch,
        before_end,
        key_seed,
        since: Wall(0),
    }
}

/// What was given before the first commit that is left, as far as that says.
fn first_given(found: &super::mend::Parts<'_>) -> u64 {
    use crate::journal::entry::Entry;
    let mut messages = 0;
    for frame in &found.frames {
        match Entry::read(frame.kind, frame.payload) {
            Some(Entry::Message(_)) => messages += 1,
            Some(Entry::Commit(commit)) => return commit.last.0.saturating_sub(messages),
            _ => {}
        }
    }
    0
}
