//! How much of something that all share one party may occupy.
//!
//! Nobody is given a fixed part, which would be too small for who is alone and
//! too large for who has many neighbours. A party may have eight times as much
//! as is free: alone, eight ninths of all. Who comes next has eight ninths of
//! what is left, and as much as the first once that one needs less.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// How many times what is free one party may have.
const TIMES: u64 = 8;

/// How much more one party may take that has `own` of the `all` that are taken
/// of at most `max`.
pub const fn room(own: u64, all: u64, max: u64) -> u64 {
    let free = max.saturating_sub(all);
    let above = free.saturating_mul(TIMES).saturating_sub(own);
    let room = above.div_ceil(TIMES + 1);
    if room < free { room } else { free }
}

/// How much each party has of something that all share.
#[derive(Clone, Debug)]
pub struct Shares<P = Box<str>> {
    max: u64,
    all: u64,
    by_party: BTreeMap<P, u64>,
}

impl<P: Ord> Shares<P> {
    /// Nobody has anything of `max`.
    pub const fn of(max: u64) -> Self {
        Self {
            max,
            all: 0,
            by_party: BTreeMap::new(),
        }
    }

    /// Gives a party so much, if it may have that. Whether it may.
    pub fn take<Q>(&mut self, party: &Q, amount: u64) -> bool
    where
        P: Borrow<Q> + for<'a> From<&'a Q>,
        Q: Ord + ?Sized,
    {
        if amount > self.room(party) {
            return false;
        }
        self.force(party, amount);
        true
    }

    /// Gives a party so much, whether it may have that or not.
    pub fn force<Q>(&mut self, party: &Q, amount: u64)
    where
        P: Borrow<Q> + for<'a> From<&'a Q>,
        Q: Ord + ?Sized,
    {
        self.all += amount;
        match self.by_party.get_mut(party) {
            Some(own) => *own += amount,
            None => drop(self.by_party.insert(party.into(), amount)),
        }
    }

    /// Takes back what a party had.
    pub fn give_back<Q>(&mut self, party: &Q, amount: u64)
    where
        P: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let Some(own) = self.by_party.get_mut(party) else {
            return;
        };
        self.all = self.all.saturating_sub(amount.min(*own));
        *own = own.saturating_sub(amount);
        if *own == 0 {
            self.by_party.remove(party);
        }
    }

    /// How much a party has, and how much more it may have now.
    pub fn standing<Q>(&self, party: &Q) -> (u64, u64)
    where
        P: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        (self.own(party), self.room(party))
    }

    /// How much all have.
    pub const fn all(&self) -> u64 {
        self.all
    }

    /// How much a party has.
    pub fn own<Q>(&self, party: &Q) -> u64
    where
        P: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.by_party.get(party).copied().unwrap_or(0)
    }

    /// How much more a party may have now.
    pub fn room<Q>(&self, party: &Q) -> u64
    where
        P: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        room(self.own(party), self.all, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_back_and_leave_nothing_behind() {
        let mut shares: Shares = Shares::of(9);
        assert!(shares.take("a", 8) && !shares.take("a", 1), "eight ninths");
        assert!(shares.take("b", 1) && !shares.take("c", 1));
        shares.give_back("a", 3);
        assert_eq!((shares.own("a"), shares.all()), (5, 6));
        assert!(shares.take("c", 2));
        for (party, amount) in [("a", 5), ("b", 1), ("c", 2), ("nobody", 1)] {
            shares.give_back(party, amount);
        }
        assert_eq!((shares.all(), shares.by_party.len()), (0, 0));
    }

    #[test]
    fn who_is_greedy_leaves_room_for_others() {
        let max = 10_000;
        let (mut all, mut owns) = (0, Vec::new());
        for _ in 0..4 {
            let own = room(0, all, max);
            assert!(own > 0, "after {owns:?}");
            all += own;
            owns.push(own);
        }
        assert_eq!(owns, [8_889, 988, 110, 12]);
        assert!(all < max);
    }

    #[test]
    fn one_at_a_time_is_as_much_as_all_at_once() {
        for max in [1, 2, 9, 64, 1_000] {
            let at_once = room(0, 0, max);
            let mut own = 0;
            while room(own, own, max) > 0 {
                own += 1;
            }
            assert_eq!(own, at_once, "of {max}");
        }
    }
}
