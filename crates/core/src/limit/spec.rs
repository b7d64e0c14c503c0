//! What a limit is, before it counts anything: algorithm and numbers.

use jiff::tz::TimeZone;

use crate::class::Class;
use crate::name::Name;
use crate::time::{NANOS_PER_SECOND, Nanos};

/// So many tokens per so much time. Kept as it was written, so that a third of
/// a token per second stays exact for years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rate {
    /// How many tokens.
    pub count: u32,
    /// In how long.
    pub per: Nanos,
}

impl Rate {
    /// So many a second.
    pub const fn per_second(count: u32) -> Self {
        Self {
            count,
            per: Nanos(NANOS_PER_SECOND),
        }
    }

    /// The time in which `tokens` accrue, rounded up.
    pub fn time_for(self, tokens: u64) -> Nanos {
        if self.count == 0 {
            return Nanos::MAX;
        }
        let nanos = (u128::from(tokens) * u128::from(self.per.0)).div_ceil(u128::from(self.count));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// So many a second, as close as can be written.
    pub fn of_per_second(rate: f64) -> Self {
        // Long enough for slow rates to be close, short enough for fast ones
        // to be written at all.
        let seconds: u32 = if rate < 4_000.0 { 1_000_000 } else { 1_000 };
        let count = (rate.max(0.0) * f64::from(seconds)).round();
        Self {
            count: (count as u32).max(1),
            per: Nanos::from_secs(u64::from(seconds)),
        }
    }

    /// How many that is a second.
    pub fn in_a_second(self) -> f64 {
        f64::from(self.count) * NANOS_PER_SECOND as f64 / (self.per.0.max(1) as f64)
    }

    /// The lower of two rates.
    pub fn slower(self, other: Self) -> Self {
        let mine = u128::from(self.count) * u128::from(other.per.0);
        let others = u128::from(other.count) * u128::from(self.per.0);
        if others < mine { other } else { self }
    }

    /// So many thousandths of this rate, exact if that can be written as a rate,
    /// else rounded down.
    pub fn share(self, permille: u16) -> Self {
        let (count, per) = (u128::from(self.count), u128::from(self.per.0));
        let mut fraction = (count * u128::from(permille), per * 1_000);
        reduce(&mut fraction);
        Self::of_fraction(fraction)
    }

    /// This rate and another together, exact if that can be written as a rate,
    /// else rounded down.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (count, per) = (u128::from(self.count), u128::from(self.per.0.max(1)));
        let (others, others_per) = (u128::from(other.count), u128::from(other.per.0.max(1)));
        // Rates are at most 2^32 in 2^64 ns: nothing overflows.
        let mut fraction = (
            (count * others_per).saturating_add(others * per),
            per * others_per,
        );
        reduce(&mut fraction);
        Self::of_fraction(fraction)
    }

    /// A fraction as a rate, rounded down where it does not fit.
    fn of_fraction((mut count, mut per): (u128, u128)) -> Self {
        while count > u128::from(u32::MAX) || per > u128::from(u64::MAX) {
            count /= 2;
            per = per.div_ceil(2);
        }
        Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            per: Nanos(u64::try_from(per).unwrap_or(u64::MAX)),
        }
    }

    /// The burst of a bucket for which none was written: a tenth of a second's
    /// worth, at least 1.
    pub fn default_burst(self) -> u32 {
        let tenth = u128::from(self.count) * u128::from(NANOS_PER_SECOND / 10)
            / u128::from(self.per.0.max(1));
        u32::try_from(tenth).unwrap_or(u32::MAX).max(1)
    }
}

/// Brings a fraction to its lowest terms.
pub(super) const fn reduce(fraction: &mut (u128, u128)) {
    let (mut divisor, mut rest) = *fraction;
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    // Of nothing and nothing there is no divisor.
    let divisor = if divisor == 0 { 1 } else { divisor };
    *fraction = (fraction.0 / divisor, fraction.1 / divisor);
}

/// The periods of a calendar window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// From one full minute to the next.
    Minute,
    /// From one full hour to the next.
    Hour,
    /// From midnight to midnight, which twice a year is not 24 hours.
    Day,
}

/// A named time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// As it was written: `America/Los_Angeles`.
    pub name: Name,
    /// Its rules.
    pub rules: TimeZone,
}

/// The algorithm of a limit and its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitSpec {
    /// At most `burst + rate * T` in any time `T`.
    TokenBucket {
        /// How fast tokens accrue.
        rate: Rate,
        /// How many can be saved up.
        burst: u32,
    },
    /// Gaps of at least `1 / rate` between tokens.
    LeakyBucket {
        /// How fast tokens leave.
        rate: Rate,
    },
    /// At most `count` in any `window`.
    SlidingWindow {
        /// How many.
        count: u32,
        /// In any stretch of this length.
        window: Nanos,
    },
    /// At most `count` between two boundaries of the calendar.
    CalendarWindow {
        /// How many.
        count: u32,
        /// From boundary to boundary.
        period: Period,
        /// Whose calendar.
        zone: Zone,
    },
    /// At most `slots` in flight.
    Concurrency {
        /// How many.
        slots: u32,
    },
}

impl LimitSpec {
    /// The most that can be taken at once. A higher cost never fits.
    pub const fn capacity(&self) -> u32 {
        match self {
            Self::TokenBucket { burst, .. } => *burst,
            Self::LeakyBucket { .. } => u32::MAX,
            Self::SlidingWindow { count, .. } | Self::CalendarWindow { count, .. } => *count,
            Self::Concurrency { slots } => *slots,
        }
    }

    /// What a scheduler wants to know of it. The rate of a window is its count
    /// in its length; slots have none.
    pub const fn shape(&self) -> Shape {
        let (kind, rate) = match self {
            Self::TokenBucket { rate, .. } => (Kind::TokenBucket, Some(*rate)),
            Self::LeakyBucket { rate } => (Kind::LeakyBucket, Some(*rate)),
            Self::SlidingWindow { count, window } => {
                let (count, per) = (*count, *window);
                (Kind::SlidingWindow, Some(Rate { count, per }))
            }
            Self::CalendarWindow { count, period, .. } => {
                let (count, per) = (*count, period.length());
                (Kind::CalendarWindow, Some(Rate { count, per }))
            }
            Self::Concurrency { .. } => (Kind::Concurrency, None),
        };
        Shape {
            kind,
            capacity: self.capacity(),
            rate,
        }
    }
}

/// The algorithms by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Rate and burst.
    TokenBucket,
    /// Evenly spaced.
    LeakyBucket,
    /// So many in any stretch.
    SlidingWindow,
    /// So many between boundaries.
    CalendarWindow,
    /// So many in flight.
    Concurrency,
}

/// A limit in three words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Which algorithm.
    pub kind: Kind,
    /// The most that can be taken at once.
    pub capacity: u32,
    /// How fast it goes in the long run.
    pub rate: Option<Rate>,
}

/// What share of a limit is kept for a class and those above it, in thousandths,
/// by class. `[200, 0, 0, 0]` keeps a fifth of every burst for critical.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headroom(pub [u16; 4]);

impl Headroom {
    /// The shares kept for the classes above `class` together, in thousandths.
    pub fn above(&self, class: Class) -> u64 {
        let [critical, high, normal, _] = self.0.map(u64::from);
        match class {
            Class::Critical => 0,
            Class::High => critical,
            Class::Normal => critical + high,
            Class::Low => critical + high + normal,
        }
    }
}
