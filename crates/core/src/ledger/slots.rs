//! Slots of a concurrency limit over a fleet: whose they are to be.
//!
//! A node holds slots and asks for them again as long as it uses them. If all
//! want more than there are, nobody may keep what he has for ever: each has a
//! share, as equal as what they want allows. First of all comes what one message
//! takes at each node, so that a large one finds its slots at all: those who
//! have waited longest come first, and who has what he needs keeps it for a
//! turn.

use crate::time::{Mono, Nanos};

/// How long a node that has what a message takes is not sent to the end of the
/// line, at least; see [`turn_at`].
pub const TURN: Nanos = Nanos::from_secs(1);
/// The longest turn is so many times the shortest.
pub const TURNS_MAX: u64 = 3;
/// A node that lacks slots asks again and again. If it does not for so long, it
/// wants them no more.
pub const WANTS_FOR: Nanos = Nanos::from_millis(500);

/// How long the turn is that begins now. Turns differ: a message may also need
/// tokens of another limit that nodes have by turns, and in a fixed rhythm its node
/// could have the one whenever it lacks the other.
pub const fn turn_at(now: Mono) -> Nanos {
    TURN.times(1 + now.0 / TURN.0 % TURNS_MAX)
}

/// What one node wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// How many slots it wants in all.
    pub tokens: u32,
    /// How many a message takes: fewer are of no use.
    pub least: u32,
}

/// How many of the slots are to be each node's. Those who have waited longest
/// stand first. Where what one message takes is not left, nothing is of use.
pub fn shares(slots: u32, wants: &[Want]) -> Vec<u32> {
    let mut room = slots;
    let mut shares: Vec<u32> = wants
        .iter()
        .map(|want| {
            let least = want.least.max(1).min(want.tokens);
            let share = if least <= room { least } else { 0 };
            room -= share;
            share
        })
        .collect();
    let lacks = |want: &Want, share: u32| share > 0 && share < want.tokens;
    while room > 0 {
        let lacking = wants.iter().zip(&shares);
        let lacking = lacking.filter(|(want, share)| lacks(want, **share));
        let Some(lowest) = lacking.clone().map(|(_, share)| *share).min() else {
            break;
        };
        // The lowest are raised to the next level, or as far as it goes.
        let level = lacking
            .clone()
            .flat_map(|(want, share)| [*share, want.tokens]);
        let level = level.filter(|it| *it > lowest).min().unwrap_or(lowest + 1);
        let raised = lacking.filter(|(_, share)| **share == lowest).count();
        let even = room / u32::try_from(raised).unwrap_or(u32::MAX).max(1);
        let step = even.min(level - lowest).max(1);
        for (share, want) in shares.iter_mut().zip(wants) {
            if *share == lowest && lacks(want, *share) && room > 0 {
                *share += step;
                room -= step;
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(wants: &[(u32, u32)]) -> Vec<Want> {
        let want = |&(tokens, least): &(u32, u32)| Want { tokens, least };
        wants.iter().map(want).collect()
    }

    #[test]
    fn what_nobody_else_wants_goes_to_whoever_wants_it() {
        assert_eq!(shares(10, &wants(&[(30, 1)])), [10]);
        assert_eq!(shares(10, &wants(&[(30, 1), (0, 1)])), [10, 0]);
        assert_eq!(shares(10, &wants(&[(30, 1), (2, 1)])), [8, 2]);
        assert_eq!(shares(10, &wants(&[(4, 1), (3, 1)])), [4, 3]);
    }

    #[test]
    fn who_wants_more_than_there_is_gets_as_much_as_others() {
        assert_eq!(shares(10, &wants(&[(30, 1), (30, 1)])), [5, 5]);
        assert_eq!(shares(10, &wants(&[(30, 1), (30, 1), (1, 1)])), [5, 4, 1]);
        assert_eq!(shares(2, &wants(&[(9, 1), (9, 1), (9, 1)])), [1, 1, 0]);
    }

    #[test]
    fn turns_that_begin_in_a_rhythm_are_not_all_alike() {
        let long = |seconds: u64| turn_at(Mono(0) + Nanos::from_secs(seconds));
        let turns: Vec<Nanos> = (0..4).map(long).collect();
        assert_eq!(turns, [1, 2, 3, 1].map(Nanos::from_secs));
        assert_eq!(turn_at(Mono(0) + Nanos::from_millis(1_999)), TURN.times(2));
    }

    #[test]
    fn a_large_message_finds_its_slots_before_others_get_more() {
        assert_eq!(shares(5, &wants(&[(30, 5), (30, 1)])), [5, 0]);
        assert_eq!(shares(5, &wants(&[(30, 1), (30, 5)])), [5, 0]);
        assert_eq!(shares(6, &wants(&[(30, 1), (30, 5)])), [1, 5]);
        assert_eq!(shares(8, &wants(&[(30, 1), (30, 5)])), [3, 5]);
    }
}
