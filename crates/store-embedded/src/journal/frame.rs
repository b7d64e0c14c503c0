//! Frames: what a segment consists of behind its header.
//!
//! ```text
//! check u32 | length u32 | kind u8 | payload | zeros up to a multiple of 8
//! ```
//!
//! The check covers the segment's epoch, the offset, the length and the
//! payload: what a recycled file still has of its former life is never taken
//! for a frame, nor is a frame that was written to the wrong place.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::place::ALIGN;

/// Bytes before the kind.
pub const FRAME_HEAD: usize = 8;
/// No frame is longer than this.
pub const FRAME_BYTES_MAX: usize = 128 << 20;

/// A frame that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where it begins.
    pub offset: u64,
    /// Where the next one begins.
    pub end: u64,
    /// What it is.
    pub kind: u8,
    /// What it says.
    pub payload: &'a [u8],
}

fn check(epoch: u64, offset: u64, covered: &[u8]) -> u32 {
    let seed = epoch ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let sum = xxh3_64_with_seed(covered, seed);
    (sum ^ (sum >> 32)) as u32
}

/// How many bytes a frame with such a payload takes.
pub const fn frame_bytes(payload: usize) -> usize {
    (FRAME_HEAD + 1 + payload).next_multiple_of(ALIGN as usize)
}

/// Begins a frame at the end of `buffer`. Where it begins.
pub fn begin(buffer: &mut Vec<u8>, kind: u8) -> usize {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; FRAME_HEAD]);
    buffer.push(kind);
    start
}

/// Ends the frame that began at `start`: from here on its length is known.
pub fn end(buffer: &mut Vec<u8>, start: usize) {
    let length = (buffer.len() - start - FRAME_HEAD) as u32;
    if let Some(place) = buffer.get_mut(start + 4..start + FRAME_HEAD) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    let padded = start + (buffer.len() - start).next_multiple_of(ALIGN as usize);
    buffer.resize(padded, 0);
}

/// Seals all frames of `buffer`, which will stand at `offset` of a segment.
pub fn seal(buffer: &mut [u8], epoch: u64, offset: u64) {
    let mut at = 0;
    while let Some(length) = length_at(buffer, at) {
        let covered = buffer.get(at + 4..at + FRAME_HEAD + length);
        let sum = covered.map_or(0, |covered| check(epoch, offset + at as u64, covered));
        if let Some(place) = buffer.get_mut(at..at + 4) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
        at += frame_bytes(length - 1);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

/// The length field of the frame at `at`, if it can be one.
pub fn length_at(bytes: &[u8], at: usize) -> Option<usize> {
    let length = u32_at(bytes, at.checked_add(4)?)? as usize;
    (1..=FRAME_BYTES_MAX).contains(&length).then_some(length)
}

/// The frame at `at` of `bytes`, which begin at `base` of their segment; none
/// if there is no frame that holds.
pub fn read(bytes: &[u8], at: usize, base: u64, epoch: u64) -> Option<Frame<'_>> {
    let length = length_at(bytes, at)?;
    let covered = bytes.get(at + 4..at.checked_add(FRAME_HEAD + length)?)?;
    let offset = base + at as u64;
    if u32_at(bytes, at)? != check(epoch, offset, covered) {
        return None;
    }
    let (kind, payload) = covered.get(4..)?.split_first()?;
    Some(Frame {
        offset,
        end: offset + frame_bytes(length - 1) as u64,
        kind: *kind,
        payload,
    })
}
