//! How long to wait before the next attempt.
//!
//! Waits grow exponentially up to a cap. Jitter spreads messages that failed
//! together, so that they do not come back together: full jitter for APIs,
//! equal jitter for mail, where a greylist punishes whoever returns too soon,
//! decorrelated jitter where the last wait should shape the next one.

use crate::entropy::Entropy;
use crate::time::Nanos;

/// How a wait is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// Anywhere from nothing to the whole wait.
    #[default]
    Full,
    /// From half of the wait to the whole of it.
    Equal,
    /// From the first wait to three times the last one, at most the cap.
    Decorrelated,
}

impl Jitter {
    /// The word used in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Decorrelated => "decorrelated",
        }
    }
}

/// Exponentially growing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first attempt, before jitter.
    pub first: Nanos,
    /// How much longer each wait is than the one before, in thousandths. Waits
    /// never shrink: less than 1,000 counts as 1,000.
    pub factor_milli: u32,
    /// No wait is longer than this.
    pub cap: Nanos,
    /// How waits are spread.
    pub jitter: Jitter,
}

impl Backoff {
    /// The wait after `attempt` attempts, before jitter.
    pub fn ceiling(&self, attempt: u16) -> Nanos {
        let cap = u128::from(self.cap.0);
        let factor = u128::from(self.factor_milli.max(1_000));
        let mut wait = u128::from(self.first.0);
        for _ in 1..attempt {
            let longer = wait * factor / 1_000;
            if wait >= cap || longer == wait {
                break;
            }
            wait = longer;
        }
        Nanos(u64::try_from(wait.min(cap)).expect("the cap fits 64 bits"))
    }

    /// The wait after `attempt` attempts, the last of which came `last_delay`
    /// after the one before it.
    pub fn delay(&self, attempt: u16, last_delay: Nanos, entropy: &mut Entropy) -> Nanos {
        let ceiling = self.ceiling(attempt).0;
        Nanos(match self.jitter {
            Jitter::None => ceiling,
            Jitter::Full => entropy.between(0, ceiling),
            Jitter::Equal => entropy.between(ceiling / 2, ceiling),
            Jitter::Decorrelated => {
                let last = last_delay.max(self.first);
                let high = last.times(3).min(self.cap);
                entropy.between(self.first.min(high).0, high.0)
            }
        })
    }
}
