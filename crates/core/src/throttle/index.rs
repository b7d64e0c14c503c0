//! From the text of a key to its place in a slab.
//!
//! A table of open addressing, made once for as many keys as there may be, so
//! that no call ever waits for it to grow. It is only looked up in, never gone
//! through, so nothing depends on its order. The hash is seeded: whoever
//! chooses keys cannot know which of them meet.

/// Where keys are found.
#[derive(Debug)]
pub(super) struct Index {
    /// A tag of the hash above, the place plus one below; 0 where nothing is.
    cells: Vec<u64>,
    mask: usize,
    seed: u64,
}

const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of a product: each bit depends on all that went in.
const fn folded(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

const fn cell(hash: u64, place: u32) -> u64 {
    (hash & 0xffff_ffff_0000_0000) | (place as u64 + 1)
}

impl Index {
    /// Room for `keys_max` keys.
    pub fn new(keys_max: usize, seed: u64) -> Self {
        let cells = keys_max.max(8).saturating_mul(2).next_power_of_two();
        Self {
            cells: vec![0; cells],
            mask: cells - 1,
            seed,
        }
    }

    /// The hash of texts and a number.
    pub fn hash(&self, texts: [&str; 2], number: u64) -> u64 {
        let mut hash = folded(self.seed ^ number, PRIME);
        for text in texts {
            hash ^= text.len() as u64;
            let (words, rest) = text.as_bytes().as_chunks::<8>();
            for bytes in words {
                hash = folded(hash ^ u64::from_le_bytes(*bytes), PRIME ^ self.seed);
            }
            hash = folded(hash ^ word(rest), PRIME);
        }
        folded(hash, self.seed | 1)
    }

    /// The place of the key with this hash that `is` says yes to.
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = hash as usize & self.mask;
        loop {
            let found = self.cells.get(at).copied()?;
            let place = (found as u32).checked_sub(1)?;
            if cell(hash, place) == found && is(place) {
                return Some(place);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Puts a key that is not there yet at this place.
    pub fn insert(&mut self, hash: u64, place: u32) {
        let mut at = hash as usize & self.mask;
        while let Some(found) = self.cells.get_mut(at) {
            if *found == 0 {
                *found = cell(hash, place);
                return;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Takes a key away. `hash_of` knows the hashes of the others, which move up
    /// so that none is cut off from where its search begins.
    pub fn remove(&mut self, hash: u64, place: u32, hash_of: impl Fn(u32) -> u64) {
        let mut hole = hash as usize & self.mask;
        let wanted = cell(hash, place);
        while self.cells.get(hole).is_some_and(|found| *found != wanted) {
            if self.cells.get(hole) == Some(&0) {
                return;
            }
            hole = (hole + 1) & self.mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            let found = self.cells.get(at).copied().unwrap_or(0);
            let Some(next) = (found as u32).checked_sub(1) else {
                break;
            };
            let home = hash_of(next) as usize & self.mask;
            // How far it stands from home, and how far the hole is from there.
            if (at.wrapping_sub(home) & self.mask) >= (at.wrapping_sub(hole) & self.mask) {
                if let Some(empty) = self.cells.get_mut(hole) {
                    *empty = found;
                }
                hole = at;
            }
        }
        if let Some(empty) = self.cells.get_mut(hole) {
            *empty = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// It finds what a map finds, whatever came and went before.
        #[test]
        fn finds_what_was_put_in(steps in prop::collection::vec((0_u32..40, any::<bool>()), 0..300)) {
            let mut index = Index::new(40, 7);
            // Few hashes, so that keys meet.
            let hash_of = |place: u32| u64::from(place % 5) << 33 | u64::from(place % 7);
            let mut model = BTreeMap::new();
            for (place, puts) in steps {
                if puts && model.insert(place, ()).is_none() {
                    index.insert(hash_of(place), place);
                }
                if !puts && model.remove(&place).is_some() {
                    index.remove(hash_of(place), place, hash_of);
                }
                for key in 0..40 {
                    let found = index.find(hash_of(key), |it| it == key);
                    prop_assert_eq!(found.is_some(), model.contains_key(&key));
                }
            }
        }
    }
}
