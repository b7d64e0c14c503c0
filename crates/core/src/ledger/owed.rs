//! What a fleet owes to lower classes: 2 % of what a limit grants, also where
//! those who wait stand at one node and others are granted nearly all.
//!
//! A node gives lower classes their part of what it grants itself. Of what a
//! node is granted where a class does *not* wait, that class earns as much at
//! the ledger, if it waits at another node. What it has earned is left for it by
//! the classes above, and leased to it before anybody else; or a node that asks
//! for a higher class while it waits there too is told, and gives it a turn more.

use crate::class::Class;
use crate::pool::ClassMask;
use crate::time::{Mono, Nanos};

/// What each lower class with waiters earns of every grant to a class above it,
/// in thousandths. It is to be 2 % of all grants, also beside two other classes
/// that get theirs.
pub const PERMILLE: u64 = 22;
/// A node that said that a class waits there is believed for so long, or until
/// it was told to ask again and as long again.
pub const WAITS_FOR: Nanos = Nanos::from_secs(10);
/// Who is refused for nothing but what is owed to others asks again after this:
/// by then they have come, or it is owed no more.
pub const OWED_PAUSE: Nanos = Nanos::from_millis(50);
/// The part of a limit that is owed to a class at most.
const PART: u32 = 8;

/// Tokens by class.
pub type Tokens = [u32; Class::COUNT];

/// The most that may be owed to a class, in tokens, of a limit that holds
/// `capacity` and whose largest cost is `cost`: what is not taken is no more
/// than a burst.
pub fn most(capacity: u32, cost: u32) -> u32 {
    (capacity / PART).max(cost.saturating_mul(2))
}

/// What is owed to the classes of one limit.
#[derive(Clone, Debug, Default)]
pub struct Owed {
    /// In thousandths of a token.
    earned: [u64; Class::COUNT],
    waits_until: [Mono; Class::COUNT],
}

impl Owed {
    /// These classes wait at a node, which asks again after `pause` at the
    /// latest.
    pub fn hear(&mut self, now: Mono, waiting: ClassMask, pause: Nanos) {
        let until = now + pause + WAITS_FOR;
        for (class, known) in Class::ALL.into_iter().zip(&mut self.waits_until) {
            if waiting.contains(class) {
                *known = until.max(*known);
            }
        }
    }

    /// Tokens were granted to a class, at a node where these wait.
    pub fn granted(
        &mut self,
        now: Mono,
        (class, waiting): (Class, ClassMask),
        tokens: u32,
        most: u32,
    ) {
        let below = Class::ALL.into_iter().zip(&mut self.earned);
        let below = below.zip(self.waits_until).skip(class.index() + 1);
        for ((lower, earned), waits_until) in below {
            if waits_until <= now {
                *earned = 0;
            } else if !waiting.contains(lower) {
                *earned += u64::from(tokens) * PERMILLE;
                *earned = (*earned).min(u64::from(most) * 1_000);
            }
        }
    }

    /// Tokens that a class must leave for those below it.
    pub fn below(&self, now: Mono, class: Class) -> u32 {
        class.below().map(|lower| self.of(now, lower)).sum()
    }

    /// Tokens that are owed to a class.
    pub fn of(&self, now: Mono, class: Class) -> u32 {
        let waits_until = self.waits_until.get(class.index());
        let earned = self.earned.get(class.index()).copied().unwrap_or(0);
        if waits_until.is_none_or(|until| *until <= now) {
            return 0;
        }
        u32::try_from(earned / 1_000).unwrap_or(u32::MAX)
    }

    /// What was owed to a class was granted to it.
    pub fn paid(&mut self, class: Class, tokens: u32) {
        if let Some(earned) = self.earned.get_mut(class.index()) {
            *earned = earned.saturating_sub(u64::from(tokens) * 1_000);
        }
    }

    /// What a node that was granted something for `class` owes itself to those
    /// below that wait there.
    pub fn handed_over(&mut self, now: Mono, class: Class, waiting: ClassMask) -> Tokens {
        let mut handed = Tokens::default();
        for lower in class.below().filter(|lower| waiting.contains(*lower)) {
            let tokens = self.of(now, lower);
            self.paid(lower, tokens);
            if let Some(handed) = handed.get_mut(lower.index()) {
                *handed = tokens;
            }
        }
        handed
    }
}
