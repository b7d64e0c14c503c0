//! Sets of small numbers as words of 64 bits.
//!
//! Both gates ask the same question: which numbers are in two sets at once,
//! starting behind the last one chosen? Sixty-four pairs are answered by one
//! `and`, so a search costs words, not pairs.

use crate::class::Class;

use super::pair::Opens;
use super::settings::ClassMask;

/// A set of small numbers that knows how many it holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    count: u32,
}

impl Bits {
    /// Makes room for numbers below `len`.
    pub fn grow(&mut self, len: usize) {
        if self.words.len() * 64 < len {
            self.words.resize(len.div_ceil(64), 0);
        }
    }

    pub fn contains(&self, at: u32) -> bool {
        self.word(at as usize / 64) >> (at % 64) & 1 == 1
    }

    /// Puts `at` in or takes it out; whether that changed anything.
    pub fn set(&mut self, at: u32, member: bool) -> bool {
        let Some(word) = self.words.get_mut(at as usize / 64) else {
            return false;
        };
        let bit = 1 << (at % 64);
        if (*word & bit != 0) == member {
            return false;
        }
        *word ^= bit;
        self.count = if member {
            self.count + 1
        } else {
            self.count - 1
        };
        true
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    pub fn len_words(&self) -> usize {
        self.words.len()
    }
}

/// One set per class, their words side by side.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassBits {
    words: Vec<[u64; Class::COUNT]>,
    counts: [u32; Class::COUNT],
    present: ClassMask,
}

impl ClassBits {
    /// Makes room for numbers below `len`.
    pub fn grow(&mut self, len: usize) {
        if self.words.len() * 64 < len {
            self.words.resize(len.div_ceil(64), [0; Class::COUNT]);
        }
    }

    /// Flips the membership of `at` in the sets of the classes in `flips`.
    pub fn flip(&mut self, at: u32, flips: ClassMask) {
        let Some(words) = self.words.get_mut(at as usize / 64) else {
            return;
        };
        let bit = 1 << (at % 64);
        for ((word, count), class) in words.iter_mut().zip(&mut self.counts).zip(Class::ALL) {
            if flips.contains(class) {
                *word ^= bit;
                *count = if *word & bit == 0 {
                    *count - 1
                } else {
                    *count + 1
                };
                self.present = match *count {
                    0 => self.present.minus(ClassMask::of(class)),
                    _ => self.present.with(class),
                };
            }
        }
    }

    /// The classes whose set is not empty.
    pub fn present(&self) -> ClassMask {
        self.present
    }

    pub fn word(&self, at: usize, class: Class) -> u64 {
        self.words.get(at).map_or(0, |words| by_class(words, class))
    }

    pub fn len_words(&self) -> usize {
        self.words.len()
    }
}

/// What the pairs of one account (or of one lane) can do, 64 pairs to a word.
#[derive(Clone, Copy, Debug, Default)]
struct PairWord {
    able: [u64; Class::COUNT],
    first: u64,
    more: u64,
}

/// The pairs of one account by lane, or of one lane by account.
#[derive(Clone, Debug, Default)]
pub(super) struct PairBits {
    words: Vec<PairWord>,
}

impl PairBits {
    /// Makes room for numbers below `len`.
    pub fn grow(&mut self, len: usize) {
        if self.words.len() * 64 < len {
            let words = len.div_ceil(64);
            // There are many lanes, and most pools have few accounts: `resize`
            // alone would make room for four words.
            if self.words.is_empty() {
                self.words.reserve_exact(words);
            }
            self.words.resize(words, PairWord::default());
        }
    }

    /// Writes which classes pair `at` can carry and whether it may open.
    pub fn put(&mut self, at: u32, able: ClassMask, opens: Opens) {
        let Some(words) = self.words.get_mut(at as usize / 64) else {
            return;
        };
        let bit = 1 << (at % 64);
        for (word, class) in words.able.iter_mut().zip(Class::ALL) {
            put(word, bit, able.contains(class));
        }
        put(&mut words.first, bit, opens == Opens::First);
        put(&mut words.more, bit, opens == Opens::More);
    }

    pub fn able(&self, at: usize, class: Class) -> u64 {
        self.words
            .get(at)
            .map_or(0, |words| by_class(&words.able, class))
    }

    /// Pairs that may open their first session.
    pub fn first(&self, at: usize) -> u64 {
        self.words.get(at).map_or(0, |words| words.first)
    }

    /// Pairs that may open one more session.
    pub fn more(&self, at: usize) -> u64 {
        self.words.get(at).map_or(0, |words| words.more)
    }

    /// Pairs that may open a session.
    pub fn opens(&self, at: usize) -> u64 {
        self.words
            .get(at)
            .map_or(0, |words| words.first | words.more)
    }
}

fn put(word: &mut u64, bit: u64, member: bool) {
    *word = if member { *word | bit } else { *word & !bit };
}

fn by_class(words: &[u64; Class::COUNT], class: Class) -> u64 {
    words.get(class.index()).copied().unwrap_or(0)
}

/// Calls `look` for each set bit of `len_words` words, from `start` on and
/// around, until it says no.
pub(super) fn scan(
    len_words: usize,
    start: u32,
    word_at: impl Fn(usize) -> u64,
    mut look: impl FnMut(u32) -> bool,
) {
    let first = start as usize / 64;
    let (first, behind) = if first < len_words {
        (first, u64::MAX << (start % 64))
    } else {
        (0, u64::MAX)
    };
    let mut word = |at: usize, mask: u64| {
        let mut bits = word_at(at) & mask;
        while bits != 0 {
            if !look(at as u32 * 64 + bits.trailing_zeros()) {
                return false;
            }
            bits &= bits - 1;
        }
        true
    };
    if len_words == 0 || !word(first, behind) {
        return;
    }
    for at in (first + 1..len_words).chain(0..first) {
        if !word(at, u64::MAX) {
            return;
        }
    }
    word(first, !behind);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_starts_behind_the_cursor_and_comes_around() {
        let mut bits = Bits::default();
        bits.grow(200);
        for at in [3, 70, 71, 199] {
            assert!(bits.set(at, true));
        }
        let mut seen = Vec::new();
        scan(
            bits.len_words(),
            71,
            |w| bits.word(w),
            |at| {
                seen.push(at);
                true
            },
        );
        assert_eq!(seen, [71, 199, 3, 70]);
        assert_eq!(bits.count, 4);
    }
}
