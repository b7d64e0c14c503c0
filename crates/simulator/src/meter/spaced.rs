//! Gaps of at least `cost / rate` after each send.

use outflow_core::limit::spec::Rate;
use outflow_core::time::Nanos;

use super::drifted;

/// A leaky bucket, counted independently: what was sent must have leaked out
/// before more is sent.
#[derive(Clone, Debug)]
pub struct Spaced {
    rate: Rate,
    drift_ppm: u32,
    at: Nanos,
    /// What has not leaked out yet, in the units of the rate.
    owed: u128,
}

impl Spaced {
    /// Nothing was sent yet.
    pub fn new(at: Nanos, rate: Rate, drift_ppm: u32) -> Self {
        Self {
            rate,
            drift_ppm,
            at,
            owed: 0,
        }
    }

    fn unit(&self) -> u128 {
        u128::from(self.rate.per.0.max(1)) * 1_000_000
    }

    fn leak(&mut self, at: Nanos) {
        let elapsed = u128::from(at.minus(self.at).0);
        self.owed = self
            .owed
            .saturating_sub(elapsed * drifted(self.rate.count, self.drift_ppm));
        self.at = at;
    }

    /// Takes `cost`; how much too early, if it is.
    pub fn take(&mut self, at: Nanos, cost: u32) -> Result<(), String> {
        self.leak(at);
        let early = self.owed;
        self.owed = u128::from(cost) * self.unit();
        // Clocks count whole nanoseconds, and a gap of a third of a second is
        // not one: less than one of them is nobody's fault, and less than two
        // if the clock that counts them drifts against ours.
        let per_nano = drifted(self.rate.count, self.drift_ppm).max(1);
        let ticks = if self.drift_ppm == 0 { 1 } else { 2 };
        if early < per_nano * ticks {
            return Ok(());
        }
        let nanos = early.div_ceil(per_nano);
        Err(format!(
            "{} too early",
            Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        ))
    }

    /// Whether the gap is over.
    pub fn allows(&mut self, at: Nanos) -> bool {
        self.leak(at);
        self.owed == 0
    }

    /// Another rate from `at` on.
    pub fn change(&mut self, at: Nanos, rate: Rate) {
        self.leak(at);
        let old_unit = self.unit();
        self.rate = rate;
        // Rounding down forgives less than a millionth of a token.
        self.owed =
            self.owed / old_unit * self.unit() + self.owed % old_unit * self.unit() / old_unit;
    }
}
