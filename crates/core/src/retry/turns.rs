//! When those who were refused look again.
//!
//! If all of them were told the one moment at which the next may pass, all
//! would come back then, one would pass, and the rest would be put off once
//! more. So each gets a moment of its own, at the pace at which they may pass.
//! A queue that is longer than a horizon is folded into its second half: who
//! stands there looks a few times, and nobody is put off for days because of
//! others who have given up meanwhile.

use crate::time::{Mono, Nanos};

/// The moments that were handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    last: Mono,
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
}
