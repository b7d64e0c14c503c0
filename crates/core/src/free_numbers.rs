//! Numbers of a slab that can be given again, lowest first.
//!
//! The lowest is taken first, so that the end of a slab empties and its memory
//! goes back after a peak: a slab is as long as what lives, not as what ever did.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slabs shorter than this keep their room.
const ROOM_KEPT: usize = 1_024;

/// The free numbers of one slab.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeNumbers {
    heap: BinaryHeap<Reverse<u32>>,
}

impl FreeNumbers {
    /// The lowest free number of a slab that is `len` long. None if all are in
    /// use: then the next number is `len`.
    pub fn take(&mut self, len: usize) -> Option<u32> {
        let Reverse(number) = self.heap.pop()?;
        if (number as usize) < len {
            return Some(number);
        }
        // The slab was cut off below all that are left.
        self.heap = BinaryHeap::new();
        None
    }

    /// A number is free.
    pub fn give(&mut self, number: u32) {
        self.heap.push(Reverse(number));
    }

    /// How often a number is listed, for those who check.
    #[cfg(any(test, debug_assertions))]
    pub fn count(&self, number: u32) -> usize {
        self.heap.iter().filter(|free| free.0 == number).count()
    }

    /// Cuts the free end of a slab off, down to `end`, and gives room back that
    /// it does not need any more.
    pub fn cut<T>(slab: &mut Vec<T>, end: usize, is_free: impl Fn(&T) -> bool) {
        while slab.len() > end && slab.last().is_some_and(&is_free) {
            slab.pop();
        }
        if slab.capacity() > ROOM_KEPT.max(4 * slab.len()) {
            slab.shrink_to(ROOM_KEPT.max(2 * slab.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_comes_first_and_a_cut_slab_begins_at_its_end() {
        let mut free = FreeNumbers::default();
        let mut slab = vec![true; 6];
        for number in [4, 1, 5] {
            free.give(number);
            if let Some(used) = slab.get_mut(number as usize) {
                *used = false;
            }
        }
        FreeNumbers::cut(&mut slab, 0, |used| !used);
        assert_eq!(slab.len(), 4);
        assert_eq!(free.take(slab.len()), Some(1));
        assert_eq!(free.take(slab.len()), None);
        assert_eq!(free.take(100), None, "what was cut off is forgotten");
    }
}
