//! One envelope segment of which parts do not hold: what does stays where it is,
//! and fillers take the place of the rest. So places in it stay good.

use std::collections::BTreeSet;

use crate::journal::entry::{Entry, FILLER};
use crate::journal::frame::{self, FRAME_BYTES_MAX, FRAME_HEAD, Frame};
use crate::journal::place::ALIGN;
use crate::journal::segment::HEADER;

/// The shortest frame.
const FRAME_MIN: usize = frame::frame_bytes(0);

/// What a segment consists of.
pub struct Parts<'a> {
    /// Frames that hold, by where they stand.
    pub frames: Vec<Frame<'a>>,
    /// Where the last group that is whole ends: behind it nothing was durable,
    /// as far as the segment itself knows.
    pub commit_end: u64,
}

/// Finds all frames that hold up to `end`, also behind those that do not.
pub fn parts(bytes: &[u8], epoch: u64, end: Option<u64>) -> Parts<'_> {
    let mut found = Parts {
        frames: Vec::new(),
        commit_end: HEADER,
    };
    let end = end.map_or(bytes.len(), |end| bytes.len().min(end as usize));
    let mut at = HEADER as usize;
    while at + FRAME_MIN <= end {
        match frame::read(bytes, at, 0, epoch).filter(|frame| frame.end as usize <= end) {
            Some(frame) => {
                at = frame.end as usize;
                let entry = Entry::read(frame.kind, frame.payload);
                if matches!(entry, Some(Entry::Commit(_))) {
                    found.commit_end = frame.end;
                }
                // An entry that says nothing would keep the store from starting.
                if entry.is_some() {
                    found.frames.push(frame);
                }
            }
            None => at += ALIGN as usize,
        }
    }
    found
}

/// What became of a segment.
#[derive(Default)]
pub struct Mended {
    /// Frames, at their old places, from behind the header on.
    pub bytes: Vec<u8>,
    /// Where something is lost: from here to there.
    pub gaps: Vec<(u64, u64)>,
    /// Messages whose entries may have stood in the gaps.
    pub messages: BTreeSet<u64>,
    /// The highest number that a commit here, or before, speaks of.
    pub last: u64,
    /// Whether something is lost since that commit.
    pub is_open: bool,
}

/// More messages than this are not named one by one.
const NAMED_MAX: u64 = 1 << 16;

/// Puts a segment together anew up to `end`, without seals. `before` is the
/// highest number that was given before it, and whether something is lost since.
pub fn mend(parts: &Parts<'_>, end: u64, before: (u64, bool)) -> Mended {
    let mut mended = Mended {
        last: before.0,
        is_open: before.1,
        ..Mended::default()
    };
    let mut seen = BTreeSet::new();
    let frames = parts.frames.iter().filter(|frame| frame.end <= end);
    for frame in frames {
        fill(&mut mended, frame.offset);
        match Entry::read(frame.kind, frame.payload) {
            Some(Entry::Message(message)) => {
                seen.insert(message.seq.0);
            }
            Some(Entry::Commit(commit)) => {
                let given = mended.last + 1..=commit.last.0;
                if mended.is_open {
                    let given = given.take(NAMED_MAX as usize);
                    mended
                        .messages
                        .extend(given.filter(|seq| !seen.contains(seq)));
                }
                seen.clear();
                mended.is_open = false;
                mended.last = mended.last.max(commit.last.0);
            }
            _ => {}
        }
        copy(&mut mended.bytes, frame);
    }
    fill(&mut mended, end);
    mended
}

fn copy(bytes: &mut Vec<u8>, frame: &Frame<'_>) {
    let start = frame::begin(bytes, frame.kind);
    bytes.extend_from_slice(frame.payload);
    frame::end(bytes, start);
}

/// Fills up to `until`, if there is a gap.
fn fill(mended: &mut Mended, until: u64) {
    let at = HEADER + mended.bytes.len() as u64;
    if until <= at {
        return;
    }
    mended.is_open = true;
    mended.gaps.push((at, until));
    let mut left = (until - at) as usize;
    while left >= FRAME_MIN {
        // What is left over must have room for a frame.
        let mut length = left.min(FRAME_BYTES_MAX / 2);
        if left != length && left - length < FRAME_MIN {
            length -= FRAME_MIN;
        }
        let start = frame::begin(&mut mended.bytes, FILLER);
        mended.bytes.resize(start + length, 0);
        // The payload reaches up to the end, or the frame would end before it.
        debug_assert!(length > FRAME_HEAD);
        frame::end(&mut mended.bytes, start);
        left -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::codec::Out;
    use crate::journal::entry::{COMMIT, Commit, FORGET};

    const EPOCH: u64 = 99;

    fn segment() -> Vec<u8> {
        let mut frames = Vec::new();
        for no in 0..20_u64 {
            let start = frame::begin(&mut frames, FORGET);
            Out(&mut frames).numbers([no; 5].into_iter());
            frame::end(&mut frames, start);
            let start = frame::begin(&mut frames, COMMIT);
            let commit = Commit {
                durable: 64,
                start: 64,
                at: outflow_core::time::Wall(0),
                boot_time: outflow_core::time::Nanos(0),
                boot_id: 0,
                last: outflow_core::message::Seq(no),
            };
            commit.write(&mut Out(&mut frames));
            frame::end(&mut frames, start);
        }
        frame::seal(&mut frames, EPOCH, HEADER);
        let mut bytes = vec![0; HEADER as usize];
        bytes.append(&mut frames);
        bytes
    }

    #[test]
    fn what_holds_stays_where_it_was() {
        let whole = segment();
        let end = whole.len() as u64;
        let all = parts(&whole, EPOCH, None);
        assert_eq!((all.frames.len(), all.commit_end), (40, end));
        let same = mend(&all, end, (0, false));
        assert!(same.gaps.is_empty() && same.bytes == whole_without_seals(&whole));
        for at in HEADER as usize..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            let left = parts(&bytes, EPOCH, Some(end));
            // The zeros behind a frame are not covered.
            if left.frames.len() == 40 {
                continue;
            }
            assert_eq!(left.frames.len(), 39, "byte {at}");
            let mut mended = mend(&left, end, (0, false));
            assert_eq!(mended.gaps.len(), 1);
            frame::seal(&mut mended.bytes, EPOCH, HEADER);
            let mut again = vec![0; HEADER as usize];
            again.append(&mut mended.bytes);
            let again = parts(&again, EPOCH, Some(end));
            assert_eq!(again.frames.len(), 40, "39 and a filler");
            for frame in &left.frames {
                assert!(again.frames.contains(frame), "byte {at}");
            }
        }
    }

    fn whole_without_seals(whole: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for frame in parts(whole, EPOCH, None).frames {
            copy(&mut bytes, &frame);
        }
        bytes
    }
}
