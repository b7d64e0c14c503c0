//! Who waits at a limit, and what is kept for those who went on to wait
//! elsewhere.
//!
//! Waiters stand by class and, within a class, by age. Somebody who needs
//! several limits stands at one of them. When that one has enough and another
//! has not, they move there, and *book* here: those behind them leave what they
//! need untouched, else two busy limits would never have a token for them at
//! the same time. Those before them do not care, so no two wait for each other.

use std::collections::BTreeMap;

use crate::class::Class;
use crate::pool::ClassMask;

/// The most bookings that a limit keeps. Beyond that the most recent of the
/// least urgent gives way.
const BOOKINGS_MAX: usize = 64;
/// One of so many grants past a waiter of a lower class is that waiter's.
const LOWER_CLASS_TURN: u32 = 50;

/// The place of a waiter in every line: its class, then when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub class: Class,
    pub no: u64,
}

/// The waiters at one limit.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiters: BTreeMap<Rank, u32>,
    booked: BTreeMap<Rank, u32>,
    /// What waits here in all, by class.
    queued: [u64; Class::COUNT],
    /// Grants that went past somebody of a lower class.
    passed: u32,
}

impl Line {
    /// Whether nothing is known here.
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty() && self.booked.is_empty()
    }

    /// Who is next.
    pub fn head(&self) -> Option<(Rank, u32)> {
        self.waiters
            .first_key_value()
            .map(|(rank, who)| (*rank, *who))
    }

    /// How many stand here, and the most and the least urgent of their classes.
    pub fn crowd(&self) -> (usize, ClassMask) {
        let first = self.waiters.first_key_value();
        let last = self.waiters.last_key_value();
        let ends = first.into_iter().chain(last).map(|(rank, _)| rank.class);
        let classes = ends.fold(ClassMask::NONE, ClassMask::with);
        (self.waiters.len(), classes)
    }

    /// Those who stand here, in order.
    pub fn waiters(&self) -> impl Iterator<Item = u32> {
        self.waiters.values().copied()
    }

    /// Whether anybody stands before this rank.
    pub fn is_behind(&self, rank: Rank) -> bool {
        self.head().is_some_and(|(first, _)| first < rank)
    }

    /// Somebody stands here from now on.
    pub fn join(&mut self, rank: Rank, who: u32, cost: u32) {
        self.waiters.insert(rank, who);
        if let Some(queued) = self.queued.get_mut(rank.class.index()) {
            *queued += u64::from(cost);
        }
    }

    /// Somebody stands here no more.
    pub fn leave(&mut self, rank: Rank, cost: u32) {
        if self.waiters.remove(&rank).is_some()
            && let Some(queued) = self.queued.get_mut(rank.class.index())
        {
            *queued = queued.saturating_sub(u64::from(cost));
        }
    }

    /// What those wait for who are as urgent as `class` or more.
    pub fn queued(&self, class: Class) -> u64 {
        self.queued.iter().take(class.index() + 1).sum()
    }

    /// Keeps `cost` from those behind `rank`.
    pub fn book(&mut self, rank: Rank, cost: u32) {
        self.booked.insert(rank, cost);
        if self.booked.len() > BOOKINGS_MAX {
            self.booked.pop_last();
        }
    }

    /// Keeps nothing for `rank` any more; whether anything was.
    pub fn unbook(&mut self, rank: Rank) -> bool {
        self.booked.remove(&rank).is_some()
    }

    /// The class of the first for whom something is kept, and how much.
    pub fn first_booked(&self) -> Option<(Class, u32)> {
        let first = self.booked.first_key_value();
        first.map(|(rank, cost)| (rank.class, *cost))
    }

    /// What is kept for those before `rank`.
    pub fn booked_before(&self, rank: Rank) -> u32 {
        let before = self.booked.range(..rank);
        before.fold(0, |sum, (_, cost)| sum.saturating_add(*cost))
    }

    /// Somebody of `class` was granted something here. Who of a lower class has
    /// been passed often enough and stands first from now on.
    pub fn passed(&mut self, class: Class) -> Option<(Rank, u32)> {
        let behind = Rank {
            class,
            no: u64::MAX,
        };
        self.waiters.range(behind..).next()?;
        self.passed += 1;
        if self.passed < LOWER_CLASS_TURN {
            return None;
        }
        self.passed = 0;
        let heads = class.below().filter_map(|below| {
            let first = Rank {
                class: below,
                no: 0,
            };
            let last = Rank {
                class: below,
                no: u64::MAX,
            };
            self.waiters.range(first..=last).next()
        });
        let oldest = heads.min_by_key(|(rank, _)| rank.no);
        oldest.map(|(rank, who)| (*rank, *who))
    }
}
