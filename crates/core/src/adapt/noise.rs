//! What is refused at any rate.
//!
//! From time to time the share refused is checked. If it is above noise, the
//! rate is trimmed. If two cuts changed nothing, it was not the rate: it comes
//! back, and the share is remembered as noise.

use super::climb::STEP_LEAST;
use super::{At, Controller, MINUTE, Mode, NEVER_REFUSED};

/// No check before.
const CHECK_LEAST: u64 = 10 * MINUTE;
/// Replies that a check needs.
const CHECK_REPLIES: u32 = 1_500;
const CHECK_REPLIES_NOISY: u32 = 5_000;
/// A larger share is never noise.
pub(super) const NOISE_MOST: f64 = 0.05;

/// What is known of noise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Noise {
    /// The share learnt.
    pub(super) base: f64,
    /// Under suspicion: this share, ...
    pub(super) share: f64,
    /// ... at this rate before the first cut, ...
    pub(super) rate: f64,
    /// ... which so many cuts did not change.
    pub(super) cuts: u8,
    /// Replies since the last check, and refusals among them, as long as the
    /// rate between trials is the same.
    pub(super) replies: u32,
    pub(super) refused: u32,
    pub(super) checked_at: u64,
}

impl Noise {
    /// A reply while cruising.
    pub(super) fn count(&mut self, refused: bool) {
        self.replies = self.replies.saturating_add(1);
        self.refused = self.refused.saturating_add(u32::from(refused));
    }

    /// Starts the next check.
    pub(super) fn check_from(&mut self, tick: u64) {
        self.checked_at = tick;
        self.replies = 0;
        self.refused = 0;
    }
}

impl Controller {
    /// Trims the rate if more than noise is refused. Whether it changed.
    pub(super) fn quiet_check(&mut self, at: At) -> bool {
        let due = self.noise.checked_at.saturating_add(CHECK_LEAST);
        let enough = if self.noise.base > 0.0 {
            CHECK_REPLIES_NOISY
        } else {
            CHECK_REPLIES
        };
        if at.tick < due || self.noise.replies < enough {
            return false;
        }
        let replies = f64::from(self.noise.replies);
        let refused = self.noise.refused;
        let share = f64::from(refused) / replies;
        self.noise.check_from(at.tick);
        self.forget_suspicion(share, replies);
        let base = self.noise.base;
        // It was learnt on a bad day, or lasts no longer.
        if share < base {
            self.noise.base = 0.5 * (base + share);
        }
        let usual = base + 2.5 * (base / replies).sqrt() + 0.003;
        if share <= usual || refused < 6 {
            return false;
        }
        self.trim(at, share);
        true
    }

    /// Before a trial: whether already more than noise is refused, so that the
    /// rate must come down instead of going up.
    pub(super) fn trims(&mut self, at: At) -> bool {
        let usual = self.noise.base.max(0.005) * f64::from(self.judge.replies);
        let refused = f64::from(self.judge.refused);
        if refused <= usual + 2.5 * usual.sqrt() + 1.0 {
            return false;
        }
        let share = self.judge.share();
        self.trim(at, share);
        true
    }

    /// A little slower, unless the share turns out to be noise.
    fn trim(&mut self, at: At, share: f64) {
        self.noise.check_from(at.tick);
        if self.suspect(at, share) {
            return;
        }
        self.bad = self.rate;
        self.step = STEP_LEAST;
        let rate = 0.97 * self.rate;
        self.good = self.good.min(rate);
        self.wait_until = self.wait_until.max(at.tick + CHECK_LEAST);
        self.change(at, rate, Mode::Cruise);
    }

    /// A cut is due. Whether the share refused turned out to be noise instead.
    pub(super) fn noise_found(&mut self, at: At) -> bool {
        let share = self.judge.share();
        if self.judge.replies < 100 {
            return false;
        }
        self.suspect(at, share)
    }

    /// A cut that helped clears the rate's name: `share` of `replies` is left.
    pub(super) fn forget_suspicion(&mut self, share: f64, replies: f64) {
        if share < 0.5 * self.noise.share && self.noise.share * replies >= 3.0 {
            self.noise.cuts = 0;
            self.noise.share = 0.0;
        }
    }

    /// `share` was refused, more than is known as noise. Whether that is noise,
    /// because two cuts changed nothing.
    fn suspect(&mut self, at: At, share: f64) -> bool {
        if share > NOISE_MOST {
            self.noise.cuts = 0;
            self.noise.share = 0.0;
            return false;
        }
        let same = share >= 0.6 * self.noise.share && share <= 1.7 * self.noise.share;
        if self.noise.cuts == 0 || !same {
            self.noise.share = share;
            self.noise.rate = self.rate;
            self.noise.cuts = 1;
            return false;
        }
        self.noise.cuts += 1;
        self.noise.share = 0.5 * (self.noise.share + share);
        if self.noise.cuts <= 2 {
            return false;
        }
        self.noise.base = self.noise.share;
        // The rate comes back as the next trial, once its wait is over.
        self.step = (self.noise.rate / self.rate - 1.0).clamp(STEP_LEAST, 1.0);
        self.noise.cuts = 0;
        self.noise.share = 0.0;
        self.noise.check_from(at.tick);
        self.bad = NEVER_REFUSED;
        self.change(at, self.rate, Mode::Prove);
        true
    }
}
