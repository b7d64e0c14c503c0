//! Sliding window: at most `count` tokens in any stretch of length `window`.
//!
//! A take is remembered with the time at which it leaves the window. Small
//! windows remember every take. Larger ones put the takes of a sixty-fourth of
//! the window together, and all of them leave with the last: the guarantee
//! stays exact, the memory stays at 66 batches, and a token comes back at most
//! 1/64 of a window late, so that 98.4 % of the rate is used at the worst.
//!
//! After a live change every stretch of the new length that begins no earlier
//! than one old window before the change holds at most the larger of the two
//! counts. What left the old window before the change is not known any more.

use std::collections::VecDeque;

use super::algorithm::{Fill, Until};
use super::need::Need;
use crate::time::{Mono, Nanos};

/// Up to this count every take is remembered on its own.
pub const EXACT_MAX: u32 = 256;
/// Into how many slots a larger window is divided.
pub const SLOTS: u64 = 64;

#[derive(Clone, Copy, Debug)]
struct Batch {
    leaves_at: Mono,
    tokens: u32,
}

/// The takes of the last window.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    count: u32,
    window: Nanos,
    /// Those that leave first stand first.
    batches: VecDeque<Batch>,
    used: u64,
    /// The first take of the newest batch, if it may still grow.
    newest_since: Option<Mono>,
}

impl SlidingWindow {
    /// A window in which nothing was taken, or all of it just now.
    pub fn new(count: u32, window: Nanos, now: Mono, fill: Fill) -> Self {
        let mut sliding = Self {
            count,
            window,
            batches: VecDeque::new(),
            used: 0,
            newest_since: None,
        };
        if fill == Fill::Empty {
            sliding.take(now, count);
        }
        sliding
    }

    /// A window of takes of known age, and of `spent` tokens that may have
    /// been taken since. Taken now they stay the longest.
    pub fn restore(
        count: u32,
        window: Nanos,
        aged: impl Iterator<Item = (Nanos, u32)>,
        spent: u64,
        now: Mono,
    ) -> Self {
        let mut sliding = Self::new(count, window, now, Fill::Full);
        for (age, tokens) in aged {
            let stays = window.minus(age);
            if stays > Nanos::ZERO {
                sliding.push(now + stays, tokens);
            }
        }
        if spent > 0 {
            sliding.push(now + window, u32::try_from(spent).unwrap_or(u32::MAX));
        }
        sliding
    }

    fn push(&mut self, leaves_at: Mono, tokens: u32) {
        self.batches.push_back(Batch { leaves_at, tokens });
        self.used += u64::from(tokens);
    }

    fn grain(&self) -> Nanos {
        if self.count <= EXACT_MAX {
            Nanos(1)
        } else {
            self.slot()
        }
    }

    fn slot(&self) -> Nanos {
        Nanos(self.window.0.div_ceil(SLOTS).max(1))
    }

    /// Its length.
    pub const fn window(&self) -> Nanos {
        self.window
    }

    /// Whether `used` tokens leave room for `need`.
    fn leaves_room(&self, used: u64, need: Need) -> bool {
        need.0 <= u64::from(self.count).saturating_sub(used) * 1_000
    }

    /// Whether `need` fits into the window that ends now.
    pub fn fits(&self, now: Mono, need: Need) -> bool {
        let mut used = self.used;
        for batch in &self.batches {
            if batch.leaves_at > now || self.leaves_room(used, need) {
                break;
            }
            used -= u64::from(batch.tokens);
        }
        self.leaves_room(used, need)
    }

    /// When `need` will fit if nobody takes anything.
    pub fn until(&self, now: Mono, need: Need) -> Until {
        if need > Need::whole(self.count) {
            return Until::Never;
        }
        let mut used = self.used;
        let mut at = now;
        for batch in &self.batches {
            if self.leaves_room(used, need) {
                break;
            }
            used -= u64::from(batch.tokens);
            at = at.max(batch.leaves_at);
        }
        if at > now { Until::At(at) } else { Until::Now }
    }

    /// Takes `cost` tokens.
    pub fn take(&mut self, now: Mono, cost: u32) {
        self.forget(now);
        let leaves_at = now + self.window;
        let grain = self.grain();
        let grows = self
            .newest_since
            .is_some_and(|first| now.since(first) < grain);
        match self.batches.back_mut() {
            Some(newest) if grows => {
                newest.tokens = newest.tokens.saturating_add(cost);
                newest.leaves_at = newest.leaves_at.max(leaves_at);
                self.used += u64::from(cost);
            }
            newest => {
                let leaves_at = newest.map_or(leaves_at, |batch| batch.leaves_at.max(leaves_at));
                self.newest_since = Some(now);
                self.push(leaves_at, cost);
            }
        }
    }

    /// Takes tokens back that were taken at `since` and not used: they leave
    /// the batch in which they were counted.
    pub fn give_back(&mut self, now: Mono, tokens: u32, since: Mono) {
        self.forget(now);
        let leaves_at = since + self.window;
        let batch = self.batches.iter_mut().find(|it| it.leaves_at >= leaves_at);
        if let Some(batch) = batch {
            let back = tokens.min(batch.tokens);
            batch.tokens -= back;
            self.used -= u64::from(back);
        }
    }

    fn forget(&mut self, now: Mono) {
        while let Some(batch) = self.batches.pop_front_if(|batch| batch.leaves_at <= now) {
            self.used -= u64::from(batch.tokens);
        }
    }

    /// Goes on with another count and length.
    pub fn reconfigure(&mut self, now: Mono, count: u32, window: Nanos) {
        self.forget(now);
        for batch in &mut self.batches {
            let longer = batch.leaves_at + window.minus(self.window);
            batch.leaves_at = longer - self.window.minus(window);
        }
        self.count = count;
        self.window = window;
        self.forget(now);
    }

    /// Tokens that the window holds now.
    pub fn used(&self, now: Mono) -> u32 {
        let held = self.batches.iter().filter(|batch| batch.leaves_at > now);
        let used: u64 = held.map(|batch| u64::from(batch.tokens)).sum();
        u32::try_from(used).unwrap_or(u32::MAX)
    }

    /// The takes that count now with their ages, oldest first, put together by
    /// slots so that they stay few.
    pub fn aged(&self, now: Mono) -> Vec<(Nanos, u32)> {
        let mut aged: Vec<(Nanos, u32)> = Vec::new();
        let mut slot_since = Mono::default();
        for batch in self.batches.iter().filter(|batch| batch.leaves_at > now) {
            let age = self.window.minus(batch.leaves_at.since(now));
            match aged.last_mut() {
                Some(slot) if batch.leaves_at.since(slot_since) < self.slot() => {
                    *slot = (age, slot.1.saturating_add(batch.tokens));
                }
                _ => {
                    slot_since = batch.leaves_at;
                    aged.push((age, batch.tokens));
                }
            }
        }
        aged
    }

    /// Whether a fresh window would know as much.
    pub fn is_idle(&self, now: Mono) -> bool {
        self.batches
            .back()
            .is_none_or(|newest| newest.leaves_at <= now)
    }
}
