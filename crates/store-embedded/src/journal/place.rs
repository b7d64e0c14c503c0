//! Where a frame lies: its segment, its offset and about how long it is.
//!
//! A place has 64 bits: 26 for the offset, in units of 8 bytes, and the rest
//! for segment and size. Segments below 2^23 have a plain size of 14 bits. From
//! there on the highest bit is set, segments have 31 bits, and the size has 6:
//! its logarithm in quarters. So what earlier versions wrote means the same, and
//! places are ordered by segment and offset throughout.

use std::fmt;

const OFFSET_BITS: u32 = 26;
const SIZE_BITS: u32 = 14;
/// Segments from this number on have coarse sizes.
const COARSE_FROM: u32 = 1 << 23;
const COARSE: u64 = 1 << 63;
const COARSE_SIZE_BITS: u32 = 6;
/// No segment has this number, or a higher one.
pub const SEGMENTS_MAX: u32 = 1 << 31;
/// Frames begin at multiples of this.
pub const ALIGN: u64 = 8;
/// Sizes are counted in this.
const SIZE_UNIT: u64 = 64;
const UNITS_MAX: u64 = (1 << SIZE_BITS) - 1;
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
        let units = bytes.div_ceil(SIZE_UNIT).min(UNITS_MAX);
        let (mark, size_bits, size) = if segment < COARSE_FROM {
            (0, SIZE_BITS, units)
        } else {
            (COARSE, COARSE_SIZE_BITS, coarse(units))
        };
        let segment = u64::from(segment) << (OFFSET_BITS + size_bits);
        Self(mark | segment | (offset / ALIGN) << size_bits | size)
    }

    const fn is_coarse(self) -> bool {
        self.0 & COARSE != 0
    }

    const fn size_bits(self) -> u32 {
        if self.is_coarse() {
            COARSE_SIZE_BITS
        } else {
            SIZE_BITS
        }
    }

    /// Which segment.
    pub const fn segment(self) -> u32 {
        ((self.0 & !COARSE) >> (OFFSET_BITS + self.size_bits())) as u32
    }

    /// Where in it.
    pub const fn offset(self) -> u64 {
        ((self.0 >> self.size_bits()) & ((1 << OFFSET_BITS) - 1)) * ALIGN
    }

    /// About how long the frame is: never too short, except for very long ones.
    pub const fn size(self) -> u64 {
        let size = self.0 & ((1 << self.size_bits()) - 1);
        let units = if self.is_coarse() {
            units_of(size)
        } else {
            size
        };
        units * SIZE_UNIT
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

/// The least coarse size that so many units fit in; 0 for none.
fn coarse(units: u64) -> u64 {
    let fits = |size: &u64| units_of(*size) >= units;
    let sizes = 0..1 << COARSE_SIZE_BITS;
    sizes.into_iter().find(fits).unwrap_or_default()
}

/// How many units a coarse size stands for: each is a quarter of a power of two
/// above the one before it.
const fn units_of(size: u64) -> u64 {
    if size < 4 {
        return size;
    }
    (4 + size % 4) << (size / 4 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: [u32; 9] = [
        1,
        2,
        COARSE_FROM - 1,
        COARSE_FROM,
        COARSE_FROM + 1,
        (1 << 24) - 1,
        1 << 24,
        (1 << 24) + 1,
        SEGMENTS_MAX - 1,
    ];

    #[test]
    fn places_keep_all_of_a_segments_number() {
        let mut before = Place::NONE;
        for segment in SEGMENTS {
            for offset in [64, 72, 4_096, SEGMENT_BYTES_MAX - 8] {
                for bytes in [8, 64, 65, 300, 5_000, 70_001, 1_000_000, 1_048_512] {
                    let place = Place::new(segment, offset, bytes);
                    assert_eq!((place.segment(), place.offset()), (segment, offset));
                    let size = place.size();
                    assert!(size >= bytes, "{size} for {bytes}");
                    assert!(size <= bytes + bytes / 4 + 64, "{size} for {bytes}");
                }
                let place = Place::new(segment, offset, 300);
                assert!(place > before, "{place:?} is behind {before:?}");
                before = place;
            }
        }
    }

    #[test]
    fn places_of_earlier_versions_mean_the_same() {
        let place = Place(5 << 40 | 8 << 14 | 3);
        assert_eq!(place, Place::new(5, 64, 192));
        assert_eq!(
            (place.segment(), place.offset(), place.size()),
            (5, 64, 192)
        );
    }
}
