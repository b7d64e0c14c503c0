//! How long answers take: half of them up to the median, one in a hundred
//! longer than the 99th percentile.

use outflow_core::entropy::Entropy;
use outflow_core::time::Nanos;

/// Two points of a distribution of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Half of the answers come within this.
    pub p50: Nanos,
    /// All but one in a hundred come within this.
    pub p99: Nanos,
}

impl Latency {
    /// Answers come at once.
    pub const INSTANT: Self = Self {
        p50: Nanos::ZERO,
        p99: Nanos::ZERO,
    };

    /// All answers take about as long.
    pub const fn about(time: Nanos) -> Self {
        Self {
            p50: time,
            p99: time,
        }
    }

    /// Whether answers come at once.
    pub fn is_instant(self) -> bool {
        self == Self::INSTANT
    }

    /// One time.
    pub fn draw(self, entropy: &mut Entropy) -> Nanos {
        if self.is_instant() {
            return Nanos::ZERO;
        }
        let (p50, p99) = (self.p50.0, self.p99.0.max(self.p50.0));
        let nanos = match entropy.between(0, 999) {
            0..500 => entropy.between(p50 / 2, p50),
            // The square leaves few near the upper end.
            500..990 => {
                let part = entropy.between(0, 1_000);
                let width = u128::from(p99 - p50) * u128::from(part * part) / 1_000_000;
                p50.saturating_add(u64::try_from(width).unwrap_or(u64::MAX))
            }
            _ => entropy.between(p99, p99.saturating_add(p99 / 2)),
        };
        Nanos(nanos)
    }
}
