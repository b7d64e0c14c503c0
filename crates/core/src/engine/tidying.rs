//! Forgets what nobody uses and nobody would miss: limits that no flow passes,
//! retry budgets that none draws on, lanes and pools that nothing is in.
//!
//! Each stays for as long as it remembers something: a bucket until it is full
//! again, a window until it is empty, a lane until its last session is closed
//! and its breakers are. Nobody tells when that is so, so they are looked at in
//! rounds, in slices; rounds in which nothing was found come less often.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Engine;
use crate::policy::key::LimitKey;
use crate::time::{Mono, Nanos, Now};

/// Limits, budgets and lanes looked at in one slice, of each; and at most, when
/// many are unused. Under load a slice comes with each turn of the node only,
/// and more come meanwhile: of 20,000 destinations a second that were used once,
/// most would be kept.
const SLICE: usize = 256;
const SLICE_MAX: usize = 1_024;
/// How soon the next slice of a round follows.
const SLICE_EVERY: Nanos = Nanos::from_millis(5);
/// How soon the next round follows one that found something, and how late one
/// that found nothing, in a row, at most.
const ROUND_FIRST: Nanos = Nanos::from_secs(1);
const ROUND_LATEST: Nanos = Nanos::from_secs(60);

/// When what nobody uses is looked at.
#[derive(Debug)]
pub(super) struct Tidying {
    next: Mono,
    /// What is left to look at in this round.
    left: usize,
    /// Whether this round found something to forget.
    found: bool,
    pause: Nanos,
    /// Limits that the journal knew before the start and that nobody asked for,
    /// and when a fresh one knows as much.
    known: VecDeque<(Mono, LimitKey)>,
}

impl Tidying {
    pub fn new(mut known: Vec<(Mono, LimitKey)>) -> Self {
        known.sort();
        Self {
            next: Mono::NEVER,
            left: 0,
            found: false,
            pause: ROUND_FIRST,
            known: known.into(),
        }
    }

    /// When [`Engine::tidy`] wants to be called.
    pub fn next_wake(&self) -> Mono {
        self.next
    }

    /// A slice was looked at. When to go on.
    fn plan(&mut self, now: Mono, slice: usize, unused: usize) {
        self.left = self.left.saturating_sub(slice);
        if self.left > 0 && unused > 0 {
            self.next = now + SLICE_EVERY;
            return;
        }
        self.pause = match std::mem::take(&mut self.found) {
            true => ROUND_FIRST,
            false => self.pause.times(2).min(ROUND_LATEST),
        };
        self.left = unused;
        self.next = match unused {
            0 => Mono::NEVER,
            _ => now + self.pause,
        };
    }
}

/// How many are looked at in one slice when so many are unused.
fn slice_of(unused: usize) -> usize {
    (unused / 16).clamp(SLICE, SLICE_MAX)
}

impl Engine {
    /// Looks at some of what nobody uses, if it is time.
    pub(super) fn tidy(&mut self, now: &Now) {
        if self.tidying.next == Mono::NEVER {
            let unused = self.unused();
            if unused > 0 {
                self.tidying.left = unused;
                self.tidying.pause = ROUND_FIRST;
                self.tidying.next = now.mono + ROUND_FIRST;
            }
            return;
        }
        if now.mono < self.tidying.next {
            return;
        }
        let slice = slice_of(self.unused());
        let mut found = self.tidy_limits(now, slice);
        found |= self.counter.budgets.tidy(now.mono, slice);
        found |= self.tidy_lanes(now, slice);
        found |= self.counter.desk.tidy_pools(slice);
        self.tidying.found |= found;
        let unused = self.unused();
        self.tidying.plan(now.mono, slice, unused);
    }

    /// The longest of the lists of what nobody uses.
    fn unused(&self) -> usize {
        let counter = &self.counter;
        let limits = self.limits.unused().max(counter.desk.limits.orphans());
        limits
            .max(counter.recipients.looked_at())
            .max(self.tidying.known.len())
            .max(counter.budgets.unused())
            .max(counter.desk.idle_lanes())
            .max(counter.desk.idle_pools())
    }

    fn tidy_limits(&mut self, now: &Now, slice: usize) -> bool {
        let mut forgotten = self.limits.tidy(now, slice, &mut self.schedule);
        forgotten.extend(self.counter.desk.limits.tidy(now, slice));
        for _ in 0..slice {
            let is_over = |(until, _): &mut (Mono, LimitKey)| *until <= now.mono;
            let Some((_, key)) = self.tidying.known.pop_front_if(is_over) else {
                break;
            };
            if self.counter.maker.drop_known(&key) {
                forgotten.push((Arc::new(key), true));
            }
        }
        let any = !forgotten.is_empty();
        for key in forgotten {
            self.counter.forget_limit(key);
        }
        let counter = &mut self.counter;
        let (appends, actions) = (&mut counter.appends, &mut counter.actions);
        let journal = &mut |record| appends.append(record, actions);
        let before = counter.recipients.looked_at();
        for _ in 0..slice.min(before) {
            counter.recipients.sweep(now, &mut counter.maker, journal);
        }
        any || counter.recipients.looked_at() < before
    }

    fn tidy_lanes(&mut self, now: &Now, slice: usize) -> bool {
        // Rounds over accounts know lanes by their places.
        if !self.rounds.is_empty() {
            return false;
        }
        let mut any = false;
        for _ in 0..slice.min(self.counter.desk.idle_lanes()) {
            let Some((lane, gate, may_go)) = self.counter.desk.next_idle_lane(now.mono) else {
                continue;
            };
            if may_go && self.schedule.is_at_rest(gate) {
                self.schedule.remove_place(gate);
                self.counter.desk.remove_lane(now, lane);
                self.counts.remove_lane(lane);
                any = true;
            } else {
                self.counter.desk.keep_lane(lane);
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_grow_with_what_is_unused_and_are_bounded() {
        let slices = [0, 4_000, 8_192, 1_000_000].map(slice_of);
        assert_eq!(slices, [SLICE, SLICE, 512, SLICE_MAX]);
    }
}
