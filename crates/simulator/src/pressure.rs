//! When accounts were asked to wait, as the trace tells it, and what came of it.
//!
//! An episode begins when the first account is asked to wait and ends when the
//! last one's time is over. One that begins within a minute of the end of
//! another is the same.

use std::collections::BTreeMap;

use outflow_core::time::Nanos;
use serde::Serialize;

use crate::tally::Fixed;
use crate::trace::Trace;

/// The stretch that rates are compared over.
pub const MINUTE: Nanos = Nanos::from_secs(60);

/// The accounts that were asked to wait.
#[derive(Clone, Debug, Default)]
pub struct Episodes {
    until: BTreeMap<u32, Nanos>,
    began: Option<Nanos>,
    ends: Nanos,
}

impl Episodes {
    /// An account was asked to wait; whether an episode begins with it.
    pub fn asked(&mut self, at: Nanos, account: u32, until: Nanos) -> bool {
        let goes_on = self.began.is_some() && at < self.ends + MINUTE;
        let known = self.until.entry(account).or_default();
        *known = until.max(*known);
        self.ends = self.ends.max(until);
        if !goes_on {
            self.began = Some(at);
        }
        !goes_on
    }

    /// When the episode began that is on at `at`.
    pub fn on_since(&self, at: Nanos) -> Option<Nanos> {
        self.began.filter(|_| at < self.ends)
    }

    /// Until when an account was asked to wait, if it still is.
    pub fn waits(&self, at: Nanos, account: u32) -> Option<Nanos> {
        self.until
            .get(&account)
            .copied()
            .filter(|&until| at < until)
    }
}

/// What accounts that were asked to wait did to the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PressureFigures {
    /// How often it happened.
    pub episodes: u64,
    /// What was taken meanwhile, as a share of the rate of the minute before.
    pub kept: Fixed,
    /// What was taken in the minute after it, as a share of the minute before.
    pub recovered: Option<Fixed>,
}

/// One episode in seconds of the run.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: usize,
    to: usize,
}

/// Counts what is taken, second by second.
#[derive(Clone, Debug, Default)]
pub struct PressureRecorder {
    episodes: Episodes,
    taken: Vec<u32>,
    stretches: Vec<Stretch>,
}

fn second(at: Nanos) -> usize {
    (at.0 / 1_000_000_000) as usize
}

impl PressureRecorder {
    /// Follows the run.
    pub fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Taken { .. } => {
                let second = second(at);
                if self.taken.len() <= second {
                    self.taken.resize(second + 1, 0);
                }
                if let Some(count) = self.taken.get_mut(second) {
                    *count += 1;
                }
            }
            Trace::AskedToWait { account, until } => {
                let (from, to) = (second(at) + 1, second(until));
                if self.episodes.asked(at, account, until) {
                    self.stretches.push(Stretch { from, to });
                } else if let Some(last) = self.stretches.last_mut() {
                    last.to = last.to.max(to);
                }
            }
            _ => {}
        }
    }

    fn sum(&self, from: usize, to: usize) -> u64 {
        let counts = self.taken.get(from..to.min(self.taken.len()));
        counts
            .unwrap_or_default()
            .iter()
            .map(|&n| u64::from(n))
            .sum()
    }

    /// The run is over: the worst of all episodes, if there was one.
    pub fn finish(&self) -> Option<PressureFigures> {
        let judged = self.stretches.iter().map(|stretch| {
            let &Stretch { from, to } = stretch;
            let before = self.sum(from.saturating_sub(61), from.saturating_sub(1));
            let lasted = to.saturating_sub(from) as u64;
            let kept = Fixed::ratio(self.sum(from, to) * 60, before * lasted);
            let after = Fixed::ratio(self.sum(to, to + 60), before);
            let is_over = self.taken.len() >= to + 60;
            (kept, is_over.then_some(after))
        });
        let (kept, after): (Vec<Fixed>, Vec<Option<Fixed>>) = judged.unzip();
        Some(PressureFigures {
            episodes: self.stretches.len() as u64,
            kept: kept.into_iter().min()?,
            recovered: after.into_iter().flatten().min(),
        })
    }
}
