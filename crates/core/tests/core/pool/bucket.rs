//! A token bucket outside the gate: what the gate is told comes from it, and
//! each send is held against it.

const TOKEN: u64 = 1_000_000_000_000;

/// Tokens in units of 10^-12, so that a rate in thousandths a second adds
/// whole units each nanosecond.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub rate_milli: u64,
    burst: u64,
    level: u64,
    at: u64,
}

impl Bucket {
    /// A bucket that is full to so many thousandths.
    pub fn new(rate_milli: u64, burst: u64, level_milli: u64) -> Self {
        Self {
            rate_milli,
            burst,
            level: burst * TOKEN / 1_000 * level_milli,
            at: 0,
        }
    }

    fn refill(&mut self, now: u64) {
        let added = self.rate_milli.saturating_mul(now - self.at);
        self.level = self.level.saturating_add(added).min(self.burst * TOKEN);
        self.at = now;
    }

    pub fn holds(&mut self, now: u64, tokens: u64) -> bool {
        self.refill(now);
        self.level >= tokens * TOKEN
    }

    pub fn take(&mut self, now: u64) {
        assert!(self.holds(now, 1), "a limit was exceeded");
        self.level -= TOKEN;
    }

    /// When it will hold so many, if nobody takes.
    pub fn time_of(&self, tokens: u64) -> u64 {
        let missing = (tokens * TOKEN).saturating_sub(self.level);
        self.at + missing.div_ceil(self.rate_milli.max(1))
    }

    /// The tokens kept for critical.
    pub fn floor(&self) -> u64 {
        if self.burst >= 5 { self.burst / 5 } else { 0 }
    }
}
