//! A histogram of times in fixed memory.
//!
//! Buckets are a thirty-second of a power of two wide, so a percentile is never
//! reported too low and at most 3 % too high. Counts only; no floating point,
//! so that two runs agree to the digit.

use outflow_core::time::Nanos;

/// Sub-buckets per power of two, as a power of two.
const FINE: u32 = 5;

/// Counts of times by size.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: Nanos,
}

impl Histogram {
    /// One more time.
    pub fn add(&mut self, time: Nanos) {
        let place = place(time.0);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.total += 1;
        self.max = self.max.max(time);
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The longest.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The time that `permille` thousandths do not exceed; nothing if empty.
    pub fn percentile(&self, permille: u64) -> Option<Nanos> {
        if self.total == 0 {
            return None;
        }
        let rank = (self.total * permille).div_ceil(1_000).max(1);
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Nanos(largest(place)).min(self.max))
    }
}

/// The bucket of a value.
fn place(value: u64) -> usize {
    let fine = 1_u64 << FINE;
    if value < fine {
        return value as usize;
    }
    let shift = value.ilog2() - FINE;
    let sub = (value >> shift) - fine;
    ((u64::from(shift) + 1) * fine + sub) as usize
}

/// The largest value of a bucket.
fn largest(place: usize) -> u64 {
    let (place, fine) = (place as u64, 1_u64 << FINE);
    if place < fine {
        return place;
    }
    let (shift, sub) = (place / fine - 1, place % fine);
    let low = u128::from(fine + sub) << shift;
    u64::try_from(low + (1_u128 << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_at_most_three_percent_too_high() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(990), None);
        for n in 1..=10_000 {
            histogram.add(Nanos(n * 1_000));
        }
        for permille in [1, 500, 900, 990, 999, 1_000] {
            let exact = permille * 10_000;
            let said = histogram.percentile(permille).unwrap().0;
            assert!(
                said >= exact && said <= exact * 104 / 100,
                "{permille}: {said}"
            );
        }
        assert_eq!(histogram.max(), Nanos(10_000_000));
    }

    #[test]
    fn every_value_is_in_its_bucket() {
        for value in (0..200).chain([1 << 20, (1 << 40) + 7, u64::MAX]) {
            let place = place(value);
            assert!(value <= largest(place));
            assert!(place == 0 || value > largest(place - 1), "{value}");
        }
    }
}
