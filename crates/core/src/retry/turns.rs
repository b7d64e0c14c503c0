//! When those who were refused look again.
//!
//! If all of them were told the one moment at which the next may pass, all
//! would come back then, one would pass, and the rest would be put off once
//! more. So each gets a moment of its own, at the pace at which they may pass.
//! A queue that is longer than a horizon is folded into its second half: who
//! stands there looks a few times, and nobody is put off for days because of
//! others who have given up meanwhile.
//!
//! A quota of the calendar has no pace: all of it is there as soon as its window
//! begins. So as many come at one moment as a window has room for, and the next
//! ones when the next window begins.

use crate::time::{Mono, Nanos};

/// The moments that were handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    last: Mono,
    /// What those who were told this moment cost together.
    given: u32,
}

/// A message that waits for a quota of the calendar.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// The first moment at which it may pass, if nobody else did.
    pub earliest: Mono,
    /// What it costs.
    pub cost: u32,
    /// What a window has.
    pub count: u32,
}

impl Turns {
    /// The next moment: not before `earliest`, `gap` after the last one.
    pub fn next(&mut self, now: Mono, earliest: Mono, gap: Nanos, horizon: Nanos) -> Mono {
        let queued = self.last + gap;
        let folded = if queued.since(now) > horizon {
            now + Nanos(horizon.0 / 2)
        } else {
            queued
        };
        self.last = folded.max(earliest);
        self.last
    }

    /// The next moment at which a window of the calendar has room, where
    /// `around` says when the window of a moment begins and ends.
    pub fn next_of_window(
        &mut self,
        now: Mono,
        waiter: Waiter,
        horizon: Nanos,
        around: impl Fn(Mono) -> (Mono, Mono),
    ) -> Mono {
        if waiter.earliest > self.last {
            (self.last, self.given) = (waiter.earliest, 0);
        } else if self.given.saturating_add(waiter.cost) > waiter.count {
            (self.last, self.given) = (around(self.last).1, 0);
        }
        if self.last.since(now) > horizon {
            let (middle, _) = around(now + Nanos(horizon.0 / 2));
            (self.last, self.given) = (middle.max(waiter.earliest), 0);
        }
        self.given = self.given.saturating_add(waiter.cost);
        self.last
    }
}
