//! Spaced tokens over a fleet: gaps of at least `1 / rate`, whoever sends.
//!
//! Tokens are leased in runs. A run of `k` tokens debited at `d` is used in
//! `[d, d + R + (k - c) / rate]`, spaced inside by the node that has it: `R` is
//! the time for the answer to arrive, `c` the largest cost. The next run begins
//! `c / rate` after that, so `R` is the tolerance that is given up, once per
//! run. Runs grow while somebody was refused meanwhile, up to a second's worth,
//! so that a busy limit loses little and an idle one keeps nobody waiting. Those
//! who were refused come back in the order in which they were.
//!
//! Small buckets are leased this way too. Their burst allows two runs to
//! overlap by `(burst - c) / rate`: what is used in a time `T` is at most `c`
//! and `rate * T` of each, less the `c / rate` between them, which together is
//! `burst + rate * T`. An overlap of `R` and more costs nothing any more.
//!
//! A node says when it asks what a message may cost there at most, and uses the
//! run for nothing that costs more: the run after it would be early by the
//! difference. What costs more waits for the node's next run.

use super::settings::{Settings, paid};
use crate::limit::Rate;
use crate::time::Nanos;

/// How runs follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// How fast tokens leave.
    pub rate: Rate,
    /// By how much a run may reach into the one before.
    pub overlap: Nanos,
}

/// The terms of a limit that is spaced to begin with.
pub fn spacing(rate: Rate) -> Spacing {
    Spacing {
        rate,
        overlap: Nanos::ZERO,
    }
}

impl Spacing {
    /// How far apart the tokens of a run are taken: the node that has the run
    /// spaces it on its own clock.
    pub fn gap(&self) -> Nanos {
        paid(self.rate.time_for(1))
    }

    /// How many tokens a run has at most.
    pub fn run_max(&self, settings: &Settings) -> u32 {
        let most = settings.run_max.0 / self.gap().0.max(1);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// How long a run lives, if the largest cost is `cost`.
    pub fn life(&self, settings: &Settings, tokens: u32, cost: u32) -> Nanos {
        let spaced = self.gap().times(u64::from(tokens.saturating_sub(cost)));
        settings.life_min() + spaced
    }

    /// How long after the end of a run's use the next may begin, less the
    /// overlap.
    pub fn pause(&self, cost: u32) -> Nanos {
        self.rate.time_for(u64::from(cost))
    }

    /// What is left of a pause under other terms, if so much was left under
    /// `old`: as many tokens accrue in it. A raised rate does not make up for the
    /// part that has passed.
    pub fn left_of(&self, old: &Self, left: Nanos) -> Nanos {
        let tokens = u128::from(left.0) * u128::from(old.rate.count);
        let left = tokens.saturating_mul(u128::from(self.rate.per.0));
        let unit = u128::from(old.rate.per.0) * u128::from(self.rate.count);
        let left = left.div_ceil(unit.max(1));
        Nanos(u64::try_from(left).unwrap_or(u64::MAX))
    }

    /// By how much somebody who was refused after `others` comes after them.
    pub fn after_others(settings: &Settings, others: u32) -> Nanos {
        Nanos(settings.round_trip.0 / 8).times(u64::from(others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_goes_on_where_it_was_under_another_rate() {
        let per_second = |count| {
            spacing(Rate {
                count,
                per: Nanos::from_secs(1),
            })
        };
        let (slow, fast) = (per_second(5), per_second(50));
        let left = Nanos::from_millis(100);
        assert_eq!(fast.left_of(&slow, left), Nanos::from_millis(10));
        assert_eq!(slow.left_of(&fast, left), Nanos::from_secs(1));
        assert_eq!(slow.left_of(&slow, left), left);
    }
}
