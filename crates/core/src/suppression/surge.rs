//! When hard bounces are not believed.
//!
//! In December 2020 a large provider answered "550 5.1.1 no such user" for
//! valid users, for hours. Whoever believed it lost its list. So a destination
//! that says so far more often than it usually does is doubted: what it says
//! is held back until a person has looked.

use crate::time::Nanos;

/// How far back is looked for a surge.
pub const LOOK_BACK: Nanos = Nanos::from_secs(15 * 60);

/// From when on a destination is doubted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurgeRule {
    /// Hard bounces per thousand attempts must be more than this.
    pub permille: u32,
    /// Fewer hard bounces than this say nothing.
    pub least: u64,
    /// Their share must be more than this many times the usual one.
    pub times_usual: u32,
}

impl Default for SurgeRule {
    fn default() -> Self {
        Self {
            permille: 100,
            least: 50,
            times_usual: 5,
        }
    }
}

/// What was counted of one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurgeCounts {
    /// Hard bounces of late.
    pub hard: u64,
    /// Attempts of late.
    pub attempts: u64,
    /// Bounces over the day, those of late included.
    pub day_bounced: u64,
    /// Attempts over the day, those of late included.
    pub day_attempts: u64,
}

impl SurgeCounts {
    /// The share of what was sent before that bounced, for whatever reason; none
    /// if nothing was sent before.
    pub fn usual_share(&self) -> Option<f64> {
        let attempts = self.day_attempts.saturating_sub(self.attempts);
        let bounced = self.day_bounced.saturating_sub(self.hard);
        (attempts > 0).then(|| bounced as f64 / attempts as f64)
    }
}

/// A destination is doubted from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surge {
    /// Which, as `isp:google`.
    pub destination: String,
    /// What was counted of it.
    pub counts: SurgeCounts,
    /// So many suppressions that it had taught were taken back.
    pub held: u64,
}

impl SurgeRule {
    /// Whether the destination is doubted from now on. One without a day of its
    /// own before this has no usual share: then the first two conditions decide.
    pub fn is_surge(&self, counts: &SurgeCounts) -> bool {
        if !self.goes_on(counts) {
            return false;
        }
        let hard = u128::from(counts.hard);
        let attempts = u128::from(counts.attempts).max(hard);
        let usual_attempts = u128::from(counts.day_attempts.saturating_sub(counts.attempts));
        let usual_bounced = u128::from(counts.day_bounced.saturating_sub(counts.hard));
        if usual_attempts == 0 {
            return true;
        }
        // hard / attempts > times * usual_bounced / usual_attempts
        hard * usual_attempts > u128::from(self.times_usual) * usual_bounced * attempts
    }

    /// Whether a destination that is doubted still is. What is usual does not
    /// count: before long the surge itself would be.
    pub fn goes_on(&self, counts: &SurgeCounts) -> bool {
        let hard = u128::from(counts.hard);
        // What was counted on another clock may lag behind.
        let attempts = u128::from(counts.attempts).max(hard);
        counts.hard >= self.least && hard * 1_000 > attempts * u128::from(self.permille)
    }
}
