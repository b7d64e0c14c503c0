//! Measured times and rates, in integers.
//!
//! How many sessions are worth keeping follows from Little's law: rate times
//! the time one message occupies a session, which is the reply time and its
//! share of the connect time.

use crate::time::{Mono, NANOS_PER_SECOND, Nanos};

/// A running mean over about eight samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mean {
    mean: Nanos,
    /// The next sample replaces it.
    guessed: bool,
}

impl Mean {
    /// A mean that starts at the hint.
    pub const fn new(hint: Nanos) -> Self {
        Self {
            mean: hint,
            guessed: false,
        }
    }

    /// A mean that forgets the hint at its first sample.
    pub const fn until_measured(hint: Nanos) -> Self {
        Self {
            mean: hint,
            guessed: true,
        }
    }

    pub fn add(&mut self, sample: Nanos) {
        let before = if self.guessed { sample } else { self.mean };
        let sum = before.0.saturating_mul(7).saturating_add(sample.0);
        self.mean = Nanos(sum / 8);
        self.guessed = false;
    }

    pub const fn get(self) -> Nanos {
        self.mean
    }
}

/// Sends a second, measured over whole seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    since: Mono,
    count: u32,
    rate_milli: u64,
}

impl Meter {
    pub fn count(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Closes the seconds that have passed; whether there was one.
    pub fn roll(&mut self, now: Mono) -> bool {
        let seconds = now.since(self.since).0 / NANOS_PER_SECOND;
        if seconds == 0 {
            return false;
        }
        let in_window = u64::from(self.count) * 1_000 / seconds;
        let old = self.rate_milli >> seconds.min(63);
        self.rate_milli = old + (in_window - (in_window >> seconds.min(63)));
        self.since = self.since + Nanos::from_secs(seconds);
        self.count = 0;
        true
    }

    pub const fn rate_milli(self) -> u64 {
        self.rate_milli
    }
}

/// `tenths`/10 times the sessions that a rate keeps busy, rounded up.
pub(super) fn sessions_for(rate_milli: u64, tenths: u64, occupied: Nanos) -> u32 {
    const MILLI_TENTHS_MICROS: u64 = 1_000 * 10 * 1_000_000;
    let micros = occupied.0 / 1_000;
    let product = rate_milli.saturating_mul(micros).saturating_mul(tenths);
    u32::try_from(product.div_ceil(MILLI_TENTHS_MICROS)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn littles_law_in_integers() {
        let occupied = Nanos::from_millis(200);
        assert_eq!(sessions_for(100_000, 10, occupied), 20);
        assert_eq!(sessions_for(100_000, 16, occupied), 32);
        assert_eq!(sessions_for(0, 16, occupied), 0);
        assert_eq!(sessions_for(1, 16, occupied), 1);
    }

    #[test]
    fn a_meter_follows_and_forgets() {
        let mut meter = Meter::default();
        for second in 1..=20 {
            for _ in 0..50 {
                meter.count();
            }
            assert!(meter.roll(Mono(second * NANOS_PER_SECOND)));
        }
        assert!((49_000..=50_000).contains(&meter.rate_milli()));
        assert!(meter.roll(Mono(60 * NANOS_PER_SECOND)));
        assert_eq!(meter.rate_milli(), 0);
    }
}
