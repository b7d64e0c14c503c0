//! A set of pools as words of 64 bits: it changes with every message, and there
//! are few pools.

use crate::handle::PoolId;

/// A set of pools.
#[derive(Debug, Default)]
pub(super) struct PoolSet {
    words: Vec<u64>,
}

impl PoolSet {
    pub fn insert(&mut self, id: PoolId) {
        let at = id.index() / 64;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        if let Some(word) = self.words.get_mut(at) {
            *word |= 1 << (id.index() % 64);
        }
    }

    pub fn remove(&mut self, id: PoolId) {
        if let Some(word) = self.words.get_mut(id.index() / 64) {
            *word &= !(1 << (id.index() % 64));
        }
    }

    pub fn contains(&self, id: PoolId) -> bool {
        let word = self.words.get(id.index() / 64);
        word.is_some_and(|word| word & 1 << (id.index() % 64) != 0)
    }

    /// All of them, lowest number first.
    pub fn iter(&self) -> impl Iterator<Item = PoolId> {
        let words = (0..).zip(&self.words);
        words.flat_map(|(at, &word)| {
            let bits = (0..64_u32).filter(move |bit| word & 1 << bit != 0);
            bits.map(move |bit| PoolId(at * 64 + bit))
        })
    }

    /// The one with the lowest number.
    pub fn first(&self) -> Option<PoolId> {
        let (at, word) = self
            .words
            .iter()
            .enumerate()
            .find(|(_, word)| **word != 0)?;
        Some(PoolId(at as u32 * 64 + word.trailing_zeros()))
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_comes_first() {
        let mut set = PoolSet::default();
        assert!(set.is_empty() && set.first().is_none());
        for id in [130, 64, 3, 64] {
            set.insert(PoolId(id));
        }
        let mut seen = Vec::new();
        while let Some(id) = set.first() {
            set.remove(id);
            seen.push(id.0);
        }
        assert_eq!(seen, [3, 64, 130]);
        assert!(set.is_empty());
    }
}
