//! How many messages may be in flight where nobody says: found from latency.
//!
//! Some far ends have no published limit and never refuse: overloaded, they
//! answer more slowly. So the time a reply takes is compared with what it takes
//! at its best. As long as it is about the same, a little more is put in
//! flight, about the square root of what already is; if it takes longer, less,
//! in proportion. Both the median and the slowest count: some far ends queue,
//! others stall a few.
//!
//! The best is the least median of the last five to ten minutes. A far end that
//! has become slower for good is its own measure after that time.

use crate::time::{Mono, Nanos};

/// Replies that are judged together.
const WINDOW: usize = 64;

/// They are judged after this time in any case, if there are enough.
const WINDOW_TIME: Nanos = Nanos::from_secs(2);
const WINDOW_LEAST: usize = 16;

/// After this long a best time is only remembered for as long again.
const REMEMBERED: Nanos = Nanos::from_secs(300);

/// The median may be so many times its best before less is put in flight, ...
const MEDIAN_BORNE: f64 = 1.25;
/// ... and the slowest replies so many times theirs.
const SLOWEST_BORNE: f64 = 3.0;

/// In one window at most this share of what is in flight is taken away.
const SHRINKS_TO: f64 = 0.5;

/// How much of a step is taken at once.
const SMOOTHING: f64 = 0.5;

/// The least value of something over the last while.
#[derive(Clone, Copy, Debug)]
struct Best {
    now: f64,
    before: f64,
}

impl Default for Best {
    fn default() -> Self {
        Self {
            now: f64::INFINITY,
            before: f64::INFINITY,
        }
    }
}

impl Best {
    fn note(&mut self, value: f64) -> f64 {
        self.now = self.now.min(value);
        self.now.min(self.before)
    }

    fn turn(&mut self) {
        self.before = self.now;
        self.now = f64::INFINITY;
    }
}

/// Finds how many messages may be in flight.
#[derive(Clone, Debug)]
pub struct Gradient {
    limit: f64,
    most: f64,
    times: Vec<u64>,
    window_began: Option<Mono>,
    /// The most that was in flight within the window.
    used: u32,
    median: Best,
    slowest: Best,
    turned_at: Option<Mono>,
}

impl Gradient {
    /// Starts with so many in flight, and never has more than `most`.
    pub fn new(start: u32, most: u32) -> Self {
        let most = f64::from(most.max(1));
        Self {
            limit: f64::from(start.max(1)).min(most),
            most,
            times: Vec::with_capacity(WINDOW),
            window_began: None,
            used: 0,
            median: Best::default(),
            slowest: Best::default(),
            turned_at: None,
        }
    }

    /// How many messages may be in flight; at least one.
    pub fn limit(&self) -> u32 {
        self.limit as u32
    }

    /// There may never be more than this from now on.
    pub fn set_most(&mut self, most: u32) {
        self.most = f64::from(most.max(1));
        self.limit = self.limit.min(self.most);
    }

    /// A message was answered after `took`, with so many in flight until then.
    pub fn replied(&mut self, now: Mono, took: Nanos, in_flight: u32) {
        let began = *self.window_began.get_or_insert(now);
        self.used = self.used.max(in_flight);
        self.times.push(took.0);
        let is_old = now.since(began) >= WINDOW_TIME && self.times.len() >= WINDOW_LEAST;
        if self.times.len() >= WINDOW || is_old {
            self.judge(now);
        }
    }

    fn judge(&mut self, now: Mono) {
        let turned = *self.turned_at.get_or_insert(now);
        if now.since(turned) >= REMEMBERED {
            self.median.turn();
            self.slowest.turn();
            self.turned_at = Some(now);
        }
        self.times.sort_unstable();
        let at = |part: usize| self.times.get(self.times.len() * part / 100);
        let time = |part| at(part).copied().unwrap_or(0).max(1) as f64;
        let (median, slowest) = (time(50), time(98));
        let of_median = MEDIAN_BORNE * self.median.note(median) / median;
        let of_slowest = SLOWEST_BORNE * self.slowest.note(slowest) / slowest;
        let gradient = of_median.min(of_slowest).clamp(SHRINKS_TO, 1.0);
        let wanted = self.limit * gradient + self.limit.sqrt();
        // What is not used says nothing about whether more would be borne.
        let is_used = f64::from(self.used) * 2.0 >= self.limit;
        if wanted < self.limit || is_used {
            let step = (wanted - self.limit) * SMOOTHING;
            self.limit = (self.limit + step).clamp(1.0, self.most);
        }
        self.times.clear();
        self.window_began = None;
        self.used = 0;
    }
}
