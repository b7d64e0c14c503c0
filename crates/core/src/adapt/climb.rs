//! Proving a rate, and trying the next.
//!
//! A rate is proven when it was really used for a while and borne. The next
//! trial lies halfway to the rate that was refused last, or a step above; after
//! a refused one the proven rate comes back. How long to wait for the next
//! follows from what a refused one costs.

use super::judge::Judge;
use super::{At, Controller, HOUR, MINUTE, Mode, NEVER_REFUSED};
use crate::time::NANOS_PER_SECOND;

/// A rate is proven no sooner.
const PROOF_LEAST: u64 = 5 * MINUTE;
/// Nor does it take many more replies than come in half an hour, in seconds.
const HALF_AN_HOUR: f64 = 1_800.0;
/// Demand below this share of the rate proves nothing.
const USED_LEAST: f64 = 0.7;
/// The finest step upwards, where the limit is known to be near.
/// Where little is sent it is coarser, or nobody would live to see it proven.
const STEP_FINE: f64 = 0.01;
const STEP_FINE_MOST: f64 = 0.1;
const STEP_FINE_AT: f64 = 0.004;
/// The finest elsewhere.
pub(super) const STEP_LEAST: f64 = 0.03;
/// The largest where a refusal costs a block.
const STEP_WALLED: f64 = 1.15;
/// Refused trials may cost this share of all sends, and more where few are
/// sent, because there each refusal weighs more.
const TRIALS_COST: f64 = 0.004;
const TRIALS_COST_SLOW: f64 = 0.012;
/// Fewer a second than this are few.
const SLOW: f64 = 0.5;
/// After a refused trial.
const WAIT_LEAST: u64 = 15 * MINUTE;
/// The first wait before a jump back to the best rate.
pub(super) const JUMP_WAIT_LEAST: u64 = 15 * MINUTE;
const JUMP_WAIT_MOST: u64 = 4 * HOUR;
/// Below this share of the best rate a jump is worth trying.
const FAR_BELOW: f64 = 0.8;
/// So far below a refused rate nothing is risked.
const FAR_ABOVE: f64 = 12.0;
/// A gain is counted over this time against the block that it risks.
const HORIZON: f64 = 16.0 * HOUR as f64;

impl Controller {
    /// Proves the rate in force, checks for noise, begins the next trial.
    pub(super) fn climb(&mut self, at: At) {
        self.measure_use(at.tick);
        match self.mode {
            Mode::Prove | Mode::Trial if self.is_proven(at.tick) => self.prove(at),
            Mode::Cruise | Mode::Window => {
                if self.quiet_check(at) {
                    return;
                }
                if at.tick >= self.trial_at() && self.is_used(at.tick) && !self.trims(at) {
                    self.try_more(at);
                }
            }
            _ => {}
        }
    }

    /// When the next trial begins, if the rate is used.
    pub(super) fn trial_at(&self) -> u64 {
        if self.rate >= self.settings.cap().min(self.told) {
            return u64::MAX;
        }
        match self.mode {
            Mode::Cruise | Mode::Window => self.no_trial_before(),
            _ => u64::MAX,
        }
    }

    /// No trial begins before.
    pub(super) fn no_trial_before(&self) -> u64 {
        self.wait_until.max(self.block_forgotten_at())
    }

    fn is_proven(&self, tick: u64) -> bool {
        let elapsed = tick.saturating_sub(self.used_from);
        let enough = self.enough();
        elapsed >= PROOF_LEAST && self.used >= enough && self.is_used(tick)
    }

    /// How many replies prove a rate.
    fn enough(&self) -> u32 {
        // A finer step shows in a smaller share, which takes more replies.
        let enough = match self.rate / self.good {
            ratio if ratio >= 1.4 => 20,
            ratio if ratio >= 1.1 => 40,
            _ => 100,
        };
        enough.min((self.rate * HALF_AN_HOUR) as u32).max(12)
    }

    /// Whether the rate in force was really used.
    fn is_used(&self, tick: u64) -> bool {
        let elapsed = tick.saturating_sub(self.used_from) as f64 / NANOS_PER_SECOND as f64;
        f64::from(self.used) >= USED_LEAST * self.rate * elapsed
    }

    /// Where too little of the rate was used for as long as a proof takes, its use
    /// is measured anew.
    fn measure_use(&mut self, tick: u64) {
        let proof = f64::from(self.enough()) / self.rate * NANOS_PER_SECOND as f64;
        let window = PROOF_LEAST.max(2 * proof as u64);
        if tick.saturating_sub(self.used_from) >= window && !self.is_used(tick) {
            (self.used_from, self.used) = (tick, 0);
        }
    }

    fn prove(&mut self, at: At) {
        let climbed = self.mode == Mode::Trial;
        self.forget_suspicion(self.judge.share(), f64::from(self.judge.replies));
        self.good = self.rate;
        self.best = self.best.max(self.good);
        if self.good >= FAR_BELOW * self.best {
            self.jump_wait = JUMP_WAIT_LEAST;
        }
        if self.good >= self.bad {
            self.bad = NEVER_REFUSED;
        }
        self.failed = 0;
        if climbed && self.bad == NEVER_REFUSED {
            self.step = (2.0 * self.step).min(1.0);
        }
        self.mode = Mode::Cruise;
        self.noise.check_from(at.tick);
    }

    /// The rate of the next trial.
    pub(super) fn next_rate(&self, tick: u64) -> f64 {
        let walled = self.block.is_remembered(tick);
        if !walled && self.good < FAR_BELOW * self.best && tick >= self.jump_at {
            return 0.97 * self.best;
        }
        if self.bad == NEVER_REFUSED {
            return self.good * (1.0 + self.step);
        }
        let ratio = self.bad / self.good;
        let halfway = ratio.sqrt();
        if ratio <= 1.0 + 3.0 * STEP_LEAST {
            let fine = 1.0 + (STEP_FINE_AT / self.rate).clamp(STEP_FINE, STEP_FINE_MOST);
            return self.good * halfway.min(1.0 + STEP_LEAST).max(fine);
        }
        // Where a refusal costs a block, smaller steps.
        let most = match self.block.cost(tick) {
            Some(cost) if cost > 15 * MINUTE => STEP_WALLED,
            Some(_) => STEP_WALLED * STEP_WALLED,
            None => f64::INFINITY,
        };
        self.good * halfway.min(most)
    }

    fn try_more(&mut self, at: At) {
        self.forget_suspicion(self.judge.share(), f64::from(self.judge.replies));
        let rate = self.next_rate(at.tick);
        if rate <= self.rate {
            return;
        }
        self.change(at, rate, Mode::Trial);
    }

    /// Refused more often than noise explains.
    pub(super) fn cut(&mut self, at: At) {
        let judge = self.judge;
        if self.mode == Mode::Trial {
            return self.back(at, 0.99);
        }
        if self.noise_found(at) {
            return;
        }
        let rate = self.rate * (0.97 * judge.accepted_lately()).clamp(0.5, 0.95);
        self.bad = self.rate;
        self.good = 0.0;
        self.step = STEP_LEAST;
        self.jump_later(at);
        self.wait_until = at.tick + self.wait_after(&judge).max(WAIT_LEAST);
        self.change(at, rate, Mode::Prove);
    }

    /// A trial was refused: back to `share` of what was proven.
    pub(super) fn back(&mut self, at: At, share: f64) {
        let judge = self.judge;
        if self.rate >= 0.96 * self.best && self.good < FAR_BELOW * self.best {
            self.jump_wait = (self.jump_wait + self.jump_wait / 2).min(JUMP_WAIT_MOST);
            self.jump_later(at);
        } else {
            self.bad = self.rate;
        }
        self.step = STEP_LEAST;
        if self.good >= FAR_BELOW * self.best {
            self.failed = self.failed.saturating_add(1).min(6);
        }
        let least = WAIT_LEAST / 2 * u64::from(1 + self.failed.max(1));
        self.wait_until = at.tick + self.wait_after(&judge).max(least);
        let rate = self.good * share;
        self.change(at, rate, Mode::Cruise);
    }

    fn jump_later(&mut self, at: At) {
        self.jump_at = self.jump_at.max(at.tick + self.jump_wait);
    }

    /// So long that what was refused stays a small share of what is sent.
    fn wait_after(&self, judge: &Judge) -> u64 {
        let slow = 1.0 - (self.rate / SLOW).min(1.0);
        let cost = TRIALS_COST + slow * (TRIALS_COST_SLOW - TRIALS_COST);
        let seconds = f64::from(judge.refused) / (cost * self.rate);
        (seconds * NANOS_PER_SECOND as f64) as u64
    }

    /// Where a refused trial costs a block: soon while there is much to gain,
    /// else so late that blocks stay a small share of the time.
    fn block_forgotten_at(&self) -> u64 {
        let Some(cost) = self.block.cost(self.wait_until) else {
            return 0;
        };
        // After a very long block none is risked for a day.
        if self.block.is_long() && self.next_rate(self.block.ended_at) > self.bad / FAR_ABOVE {
            return self.block.ended_at.saturating_add(24 * HOUR);
        }
        let gain = if self.bad == NEVER_REFUSED {
            self.step
        } else {
            (self.bad / self.rate).max(1.0).sqrt() - 1.0
        };
        let wait = if gain * HORIZON >= 2.0 * cost as f64 {
            WAIT_LEAST
        } else {
            cost.saturating_mul(25).clamp(2 * HOUR, 24 * HOUR)
        };
        self.block.ended_at.saturating_add(wait)
    }
}
