//! At most `burst + rate * T` in every interval, also across live changes.
//!
//! A bucket that is never overdrawn says exactly that for constant numbers.
//! After a change, intervals that began under the old numbers are still bound
//! by the largest burst since, and those that begin now by the new one alone.
//! So each change starts one more bucket, and an older one is kept only while
//! it is the stricter.

use outflow_core::limit::spec::Rate;
use outflow_core::time::Nanos;

use super::drifted;

/// One bucket for the intervals that began under the same numbers.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// What is left, in units of `1 / unit` tokens. Below zero: overdrawn.
    left: i128,
    /// The largest burst in force since.
    burst_max: u32,
}

/// A token bucket, counted independently.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Rate,
    burst: u32,
    drift_ppm: u32,
    at: Nanos,
    full_since: Option<Nanos>,
    current: Level,
    older: Vec<Level>,
    /// The largest [`Bucket::tick`] of the rates before this one.
    tick_before: i128,
}

impl Bucket {
    /// Full at `at`.
    pub fn new(at: Nanos, rate: Rate, burst: u32, drift_ppm: u32) -> Self {
        let mut bucket = Self {
            rate,
            burst,
            drift_ppm,
            at,
            full_since: Some(at),
            current: Level {
                left: 0,
                burst_max: burst,
            },
            older: Vec::new(),
            tick_before: 0,
        };
        bucket.current.left = bucket.whole(burst);
        bucket
    }

    /// Empty at `at`.
    pub fn empty(at: Nanos, rate: Rate, burst: u32, drift_ppm: u32) -> Self {
        let mut bucket = Self::new(at, rate, burst, drift_ppm);
        bucket.current.left = 0;
        bucket.full_since = None;
        bucket
    }

    /// How many units make a token: accrual per nanosecond is then whole.
    fn unit(&self) -> i128 {
        i128::from(self.rate.per.0.max(1)) * 1_000_000
    }

    fn whole(&self, tokens: u32) -> i128 {
        i128::from(tokens) * self.unit()
    }

    /// What accrues in a nanosecond if clocks may drift, else nothing. A clock
    /// that runs fast reads whole nanoseconds too, so the length of an interval
    /// on it is uncertain by less than one, however long the interval is. If the
    /// rate changed meanwhile, that nanosecond may be one of the fastest rate.
    fn tick(&self) -> i128 {
        match self.drift_ppm {
            0 => 0,
            ppm => (drifted(self.rate.count, ppm) as i128).max(self.tick_before),
        }
    }

    fn accrue(&mut self, at: Nanos) {
        let elapsed = i128::from(at.minus(self.at).0);
        let gained = elapsed * drifted(self.rate.count, self.drift_ppm) as i128;
        let most = self.whole(self.burst);
        let (before, since) = (self.current.left, self.at);
        self.at = at;
        self.current.left += gained;
        for level in &mut self.older {
            level.left += gained;
        }
        if self.current.left >= most {
            self.current.left = most;
            if self.full_since.is_none() {
                let needed = (most - before).max(0);
                let nanos = needed / (drifted(self.rate.count, self.drift_ppm) as i128).max(1);
                self.full_since = Some(since + Nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
            }
        } else {
            self.full_since = None;
        }
        let current = self.current.left;
        self.older.retain(|level| level.left < current);
    }

    fn strictest(&self) -> i128 {
        self.older
            .iter()
            .map(|level| level.left)
            .fold(self.current.left, i128::min)
    }

    /// Takes `cost`; how far that overdraws it, if it does.
    pub fn take(&mut self, at: Nanos, cost: u32) -> Result<(), String> {
        self.accrue(at);
        let cost = self.whole(cost);
        self.current.left -= cost;
        self.full_since = None;
        for level in &mut self.older {
            level.left -= cost;
        }
        let left = self.strictest();
        if left >= -self.tick() {
            return Ok(());
        }
        // Said once: from here on the excess counts as forgiven.
        let unit = self.unit();
        for level in self.older.iter_mut().chain([&mut self.current]) {
            level.left = level.left.max(0);
        }
        Err(format!("{:.3} tokens too many", -left as f64 / unit as f64))
    }

    /// Whether `cost` is there.
    pub fn allows(&mut self, at: Nanos, cost: u32) -> bool {
        self.accrue(at);
        self.strictest() >= self.whole(cost)
    }

    /// Since when it is full, if it is.
    pub fn full_since(&mut self, at: Nanos) -> Option<Nanos> {
        self.accrue(at);
        self.full_since.filter(|_| self.older.is_empty())
    }

    /// Empties it: what follows may not use what was saved up.
    pub fn drain(&mut self, at: Nanos) {
        self.accrue(at);
        self.current.left = self.current.left.min(0);
        self.full_since = None;
    }

    /// Other numbers from `at` on.
    pub fn change(&mut self, at: Nanos, rate: Rate, burst: u32) {
        self.accrue(at);
        let mut ended = self.current;
        // Restated in the new unit; rounding up forgives less than a millionth
        // of a token.
        let (old_unit, new_unit) = (self.unit(), i128::from(rate.per.0.max(1)) * 1_000_000);
        let restate = |left: i128| {
            let scaled = left / old_unit * new_unit;
            scaled + (left % old_unit * new_unit + old_unit - 1).div_euclid(old_unit)
        };
        ended.left = restate(ended.left);
        for level in &mut self.older {
            level.left = restate(level.left);
        }
        self.tick_before = restate(self.tick());
        self.older.push(ended);
        for level in &mut self.older {
            if burst > level.burst_max {
                level.left += i128::from(burst - level.burst_max) * new_unit;
                level.burst_max = burst;
            }
        }
        self.rate = rate;
        self.burst = burst;
        self.current = Level {
            left: self.whole(burst),
            burst_max: burst,
        };
        self.full_since = None;
        let current = self.current.left;
        self.older.retain(|level| level.left < current);
        if self.older.is_empty() {
            self.full_since = Some(at);
        }
    }
}
