//! Is this still noise? A sequential test over replies.
//!
//! Some far ends refuse a few at any rate. A CUSUM of log-likelihoods weighs
//! "as much as ever" (share `p0`) against "noticeably more" (`p0` + 1.5 %).
//! With a fixed threshold a busy key would raise false alarms just by being
//! busy, so the threshold grows with the logarithm of the volume.

/// What is taken for noise where nothing was learnt.
const NOISE_LEAST: f64 = 0.005;
/// How much more than noise is to be noticed.
const MORE: f64 = 0.015;

/// The replies since the rate last changed, weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Judge {
    /// The CUSUM.
    pub(super) weight: f64,
    /// Replies, and refusals among them.
    pub(super) replies: u32,
    pub(super) refused: u32,
    /// The same since the CUSUM last stood at nothing.
    pub(super) lately: u32,
    pub(super) lately_refused: u32,
    /// Refusals in a row.
    pub(super) row: u8,
}

/// What the replies so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing to act on.
    Quiet,
    /// Refused more often than noise explains.
    TooMany,
    /// Refused one after the other: perhaps a block.
    Wall,
}

impl Judge {
    /// Counts a reply. `base` is the noise learnt, `rate` what is sent a second.
    pub(super) fn count(&mut self, refused: bool, base: f64, rate: f64, trial: bool) -> Finding {
        let p0 = noise(base);
        let p1 = p0 + MORE;
        self.replies = self.replies.saturating_add(1);
        self.lately = self.lately.saturating_add(1);
        if !refused {
            self.row = 0;
            self.weight += ln((1.0 - p1) / (1.0 - p0));
            if self.weight <= 0.0 {
                self.weight = 0.0;
                self.lately = 0;
                self.lately_refused = 0;
            }
            return Finding::Quiet;
        }
        self.refused = self.refused.saturating_add(1);
        self.lately_refused = self.lately_refused.saturating_add(1);
        self.row = self.row.saturating_add(1);
        self.weight += ln(p1 / p0);
        if self.row >= row_max(p0, rate) {
            return Finding::Wall;
        }
        let threshold = if trial {
            3.0 + ln(1.0 + 300.0 * p0 * rate)
        } else {
            4.5 + ln(1.0 + 900.0 * p0 * rate)
        };
        if self.weight > threshold {
            return Finding::TooMany;
        }
        Finding::Quiet
    }

    /// The share that was accepted while suspicion rose.
    pub(super) fn accepted_lately(&self) -> f64 {
        1.0 - f64::from(self.lately_refused) / f64::from(self.lately.max(1))
    }

    /// The share refused since the rate changed.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.refused) / f64::from(self.replies.max(1))
    }
}

/// What share is taken for noise.
fn noise(base: f64) -> f64 {
    (1.1 * base).max(NOISE_LEAST)
}

/// So many refusals in a row are not chance: noise alone gives such a row less
/// than once in twenty hours.
fn row_max(p0: f64, rate: f64) -> u8 {
    let mut row = 2;
    let mut an_hour = rate * 3_600.0 * p0 * p0;
    while an_hour > 0.05 && row < 8 {
        an_hour *= p0;
        row += 1;
    }
    row
}

/// The natural logarithm. Written out, because that of the platform's library
/// may differ in the last bit from one machine to the next, and a simulation
/// must not. Good to about 1e-12 for anything between 1e-9 and 1e12.
pub(super) fn ln(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return 0.0;
    }
    let mut mantissa = x;
    let mut halvings = 0.0;
    while mantissa > 1.5 {
        mantissa *= 0.5;
        halvings += 1.0;
    }
    while mantissa < 0.75 {
        mantissa *= 2.0;
        halvings -= 1.0;
    }
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let mut term = z;
    let mut sum = 0.0;
    let mut k = 1.0;
    while k < 24.0 {
        sum += term / k;
        term *= square;
        k += 2.0;
    }
    2.0 * sum + halvings * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_one() {
        for x in [1e-6, 0.01, 0.5, 0.985, 1.0, 1.385, 2.0, 451.0, 1e6] {
            assert!((ln(x) - f64::ln(x)).abs() < 1e-11, "{x}: {}", ln(x));
        }
    }

    #[test]
    fn noise_does_not_alarm_and_overload_does() {
        let mut judge = Judge::default();
        // 1 in 200, evenly: exactly the noise assumed.
        for n in 0..200_000 {
            assert_eq!(judge.count(n % 200 == 0, 0.0, 100.0, false), Finding::Quiet);
        }
        let found =
            (0..2_000).find(|n| judge.count(n % 25 == 0, 0.0, 100.0, false) == Finding::TooMany);
        assert!(found.is_some(), "4 % went unnoticed");
    }

    #[test]
    fn a_longer_row_is_needed_where_noise_makes_rows() {
        assert_eq!(row_max(0.005, 0.1), 2);
        assert_eq!(row_max(0.005, 1.0), 3);
        assert_eq!(row_max(0.005, 1_000.0), 4);
        assert!(row_max(0.022, 100.0) > 3);
    }
}
