//! The two clocks that every decision is given.
//!
//! Rates, spacing and time-outs run on the monotonic clock; calendar windows,
//! due times and expiry run on the wall clock. A wall clock that steps back or
//! forward therefore changes neither a rate nor a wait in progress.

use std::fmt;
use std::ops::{Add, Sub};

use crate::entropy::Entropy;

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A length of time in nanoseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything that ends.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS_PER_SECOND))
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// This span as seconds, for people and for charts.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND as f64
    }

    /// This span times `factor`, capped at [`Nanos::MAX`].
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// What is left of this span after `other`, at least nothing.
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Prints the largest unit that keeps the figure short: `1.5s`, `20ms`, `3h`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        match ns {
            0..1_000 => write!(f, "{ns}ns"),
            1_000..1_000_000 => write!(f, "{}us", ns / 1_000),
            1_000_000..1_000_000_000 => write!(f, "{}ms", ns / 1_000_000),
            _ => {
                let secs = ns / NANOS_PER_SECOND;
                let tenths = (ns % NANOS_PER_SECOND) / 100_000_000;
                match secs {
                    0..120 => write!(f, "{secs}.{tenths}s"),
                    120..7_200 => write!(f, "{}min", secs / 60),
                    7_200..172_800 => write!(f, "{}h", secs / 3_600),
                    _ => write!(f, "{}d", secs / 86_400),
                }
            }
        }
    }
}

/// A point on a node's monotonic clock, in nanoseconds since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// Later than any time that comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The time from `earlier` to `self`, nothing if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for Mono {
    type Output = Self;
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Nanos> for Mono {
    type Output = Self;
    fn sub(self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// A point on the wall clock, in nanoseconds since the Unix epoch.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Wall(pub i64);

impl Wall {
    /// Later than any time that comes.
    pub const NEVER: Self = Self(i64::MAX);

    /// The time from `earlier` to `self`, nothing if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Nanos {
        if self.0 > earlier.0 {
            Nanos(self.0.abs_diff(earlier.0))
        } else {
            Nanos::ZERO
        }
    }
}

impl Add<Nanos> for Wall {
    type Output = Self;
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add_unsigned(span.0))
    }
}

/// What a step is told of the world outside: both clocks, and fresh entropy.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The monotonic clock.
    pub mono: Mono,
    /// The wall clock.
    pub wall: Wall,
    /// Unpredictable bits, for jitter.
    pub entropy: Entropy,
}

/// How the two clocks stand to each other. They part when the machine sleeps
/// or the wall clock is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The wall clock minus the monotonic one.
    ahead: i128,
}

impl Clocks {
    /// How far the clocks have parted since, whichever way.
    pub fn parted(self, now: &Now) -> Nanos {
        let nanos = self.ahead.abs_diff(now.clocks().ahead);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Now {
    /// How the clocks stand to each other.
    pub fn clocks(&self) -> Clocks {
        Clocks {
            ahead: i128::from(self.wall.0) - i128::from(self.mono.0),
        }
    }

    /// Both clocks when the monotonic one shows `mono`, if neither steps.
    pub fn at(&self, mono: Mono) -> Self {
        Self {
            mono,
            wall: self.wall_at(mono),
            entropy: self.entropy,
        }
    }

    /// The monotonic time at which the wall clock will read `wall`, if it does
    /// not step meanwhile.
    pub fn mono_at(&self, wall: Wall) -> Mono {
        self.mono + wall.since(self.wall)
    }

    /// What the wall clock will read at `mono`, if it does not step meanwhile.
    pub fn wall_at(&self, mono: Mono) -> Wall {
        self.wall + mono.since(self.mono)
    }
}
