//! Where a frame lies: its segment, its offset and about how long it is.

use std::fmt;

const OFFSET_BITS: u32 = 26;
const SIZE_BITS: u32 = 14;
/// Frames begin at multiples of this.
pub const ALIGN: u64 = 8;
/// Sizes are counted in this.
const SIZE_UNIT: u64 = 64;
/// No segment is longer than this.
pub const SEGMENT_BYTES_MAX: u64 = (1 << OFFSET_BITS) * ALIGN;

/// Where a frame lies. Places of one kind of segment are ordered by time.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

impl Place {
    /// Nowhere: no segment has this number.
    pub const NONE: Self = Self(0);

    /// The place of a frame of `bytes` bytes.
    pub fn new(segment: u32, offset: u64, bytes: u64) -> Self {
        let size = bytes.div_ceil(SIZE_UNIT).min((1 << SIZE_BITS) - 1);
        let place = u64::from(segment) << (OFFSET_BITS + SIZE_BITS);
        Self(place | (offset / ALIGN) << SIZE_BITS | size)
    }

    /// Which segment.
    pub const fn segment(self) -> u32 {
        (self.0 >> (OFFSET_BITS + SIZE_BITS)) as u32
    }

    /// Where in it.
    pub const fn offset(self) -> u64 {
        ((self.0 >> SIZE_BITS) & ((1 << OFFSET_BITS) - 1)) * ALIGN
    }

    /// About how long the frame is: never too short, except for very long ones.
    pub const fn size(self) -> u64 {
        (self.0 & ((1 << SIZE_BITS) - 1)) * SIZE_UNIT
    }

    /// A position in the journal: everything before it was written earlier.
    pub const fn position(self) -> u64 {
        position(self.segment(), self.offset())
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.segment(), self.offset())
    }
}

/// The position of an offset in a segment.
pub const fn position(segment: u32, offset: u64) -> u64 {
    ((segment as u64) << 32) | offset
}
