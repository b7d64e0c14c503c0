//! Seeded randomness.
//!
//! Every part of a simulation draws from a stream of its own (a network, a
//! source of traffic, a node), so that one more draw in one part changes none
//! of the others, and a seed reproduces a run exactly.

use outflow_core::entropy::Entropy;
use outflow_core::time::Nanos;
use rand_core::Rng;
use rand_pcg::Lcg128Xsl64;

/// How many standard deviations the 99th percentile lies above the median.
const P99: f64 = 2.326_347_874;

/// One stream of random values.
#[derive(Clone, Debug)]
pub struct Random(Lcg128Xsl64);

impl Random {
    /// Stream `stream` of seed `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        // Neighbouring seeds must not give neighbouring states.
        let mut spread = Entropy(seed);
        let state = (u128::from(spread.draw()) << 64) | u128::from(spread.draw());
        Self(Lcg128Xsl64::new(state, u128::from(stream)))
    }

    /// The stream of the part named `name`, the `index`-th of its kind.
    pub fn named(seed: u64, name: &str, index: u64) -> Self {
        let stream = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::new(seed, stream.wrapping_add(index))
    }

    /// 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A value below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// A value in `low..=high`; `low` if the range is empty.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.checked_sub(low) {
            None => low,
            Some(u64::MAX) => self.draw(),
            Some(width) => low + self.below(width + 1),
        }
    }

    /// A value in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in this share of all draws. Draws nothing for 0 and 1.
    pub fn chance(&mut self, share: f64) -> bool {
        if share <= 0.0 {
            return false;
        }
        share >= 1.0 || self.unit() < share
    }

    /// A waiting time with this mean, as between the events of a Poisson
    /// process.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        let drawn = -(1.0 - self.unit()).ln();
        Nanos((drawn * mean.0 as f64) as u64)
    }

    /// A value of the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A log-normal time with this median and 99th percentile.
    pub fn lognormal(&mut self, p50: Nanos, p99: Nanos) -> Nanos {
        let ratio = p99.0.max(1) as f64 / p50.0.max(1) as f64;
        let sigma = ratio.ln().max(0.0) / P99;
        Nanos((p50.0 as f64 * (sigma * self.normal()).exp()) as u64)
    }

    /// One of `items`; nothing if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_streams_differ() {
        let draws = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.draw(), random.draw(), random.draw()]
        };
        assert_eq!(draws(7, 1), draws(7, 1));
        assert_ne!(draws(7, 1), draws(7, 2));
        assert_ne!(draws(7, 1), draws(8, 1));
    }

    #[test]
    fn means_and_percentiles_are_as_asked() {
        let mut random = Random::new(1, 1);
        let n = 100_000;
        let sum: u64 = (0..n)
            .map(|_| random.exponential(Nanos::from_millis(100)).0)
            .sum();
        let mean = sum / n;
        assert!((99_000_000..101_000_000).contains(&mean), "{mean}");

        let mut times: Vec<u64> = (0..n)
            .map(|_| {
                random
                    .lognormal(Nanos::from_millis(50), Nanos::from_millis(400))
                    .0
            })
            .collect();
        times.sort_unstable();
        assert!((48_000_000..52_000_000).contains(&times[n as usize / 2]));
        assert!((370_000_000..430_000_000).contains(&times[n as usize * 99 / 100]));
    }

    #[test]
    fn ranges_are_kept_at_their_edges() {
        let mut random = Random::new(1, 2);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.between(5, 4), 5);
        assert_eq!(random.between(5, 5), 5);
        assert!((0..1000).all(|_| random.between(3, 9) <= 9));
        assert!(!random.chance(0.0) && random.chance(1.0));
    }
}
