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

    /// The one with the lowest number.
    pub fn first(&self) -> Option<PoolId> {
        self.first_from(0)
    }

    /// The one with the lowest number that is not lower than this.
    pub fn first_from(&self, number: u32) -> Option<PoolId> {
        let start = number as usize / 64;
        let mut mask = u64::MAX << (number % 64);
        for (at, word) in (0..).zip(&self.words).skip(start) {
            let word = word & std::mem::replace(&mut mask, u64::MAX);
            if word != 0 {
                return Some(PoolId(at * 64 + word.trailing_zeros()));
            }
        }
        None
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
        let from = [0, 3, 4, 65, 131].map(|number| set.first_from(number));
        let numbers = [Some(3), Some(3), Some(64), Some(130), None];
        assert_eq!(from.map(|id| id.map(|id| id.0)), numbers);
        let mut seen = Vec::new();
        while let Some(id) = set.first() {
            set.remove(id);
            seen.push(id.0);
        }
        assert_eq!(seen, [3, 64, 130]);
        assert!(set.is_empty());
    }
}
