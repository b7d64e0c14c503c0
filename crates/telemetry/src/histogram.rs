//! How many were how large: a few counters that anybody may add to at once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outflow_core::time::Nanos;

/// The upper ends of the parts for times of requests and syncs.
pub(crate) const SHORT: &[Nanos] = &[
    Nanos(100_000),
    Nanos(250_000),
    Nanos(500_000),
    Nanos::from_millis(1),
    Nanos(2_500_000),
    Nanos::from_millis(5),
    Nanos::from_millis(10),
    Nanos::from_millis(25),
    Nanos::from_millis(50),
    Nanos::from_millis(100),
    Nanos::from_millis(250),
    Nanos::from_millis(1_000),
    Nanos::from_secs(5),
    Nanos::from_secs(30),
];

/// The upper ends of the parts for times to delivery, which retries make long.
pub(crate) const LONG: &[Nanos] = &[
    Nanos::from_millis(10),
    Nanos::from_millis(50),
    Nanos::from_millis(100),
    Nanos::from_millis(250),
    Nanos::from_millis(500),
    Nanos::from_secs(1),
    Nanos::from_millis(2_500),
    Nanos::from_secs(5),
    Nanos::from_secs(10),
    Nanos::from_secs(30),
    Nanos::from_secs(60),
    Nanos::from_secs(300),
    Nanos::from_secs(900),
    Nanos::from_secs(3_600),
    Nanos::from_secs(14_400),
    Nanos::from_secs(86_400),
];

const PARTS_MAX: usize = 17;

/// A histogram over fixed bounds.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [Nanos],
    /// Those up to each bound and above the one before; then the rest.
    parts: [AtomicU64; PARTS_MAX],
    sum: AtomicU64,
}

impl Histogram {
    pub fn new(bounds: &'static [Nanos]) -> Self {
        debug_assert!(bounds.len() < PARTS_MAX);
        Self {
            bounds,
            parts: Default::default(),
            sum: AtomicU64::new(0),
        }
    }

    /// Adds one.
    pub fn add(&self, value: Nanos) {
        let part = self.bounds.partition_point(|&bound| bound < value);
        if let Some(count) = self.parts.get(part) {
            count.fetch_add(1, Relaxed);
        }
        self.sum.fetch_add(value.0, Relaxed);
    }

    /// What was added so far.
    pub fn read(&self) -> Reading<'_> {
        let parts = self.parts.iter().take(self.bounds.len() + 1);
        Reading {
            bounds: self.bounds,
            parts: parts.map(|part| part.load(Relaxed)).collect(),
            sum: Nanos(self.sum.load(Relaxed)),
        }
    }
}

/// A histogram as it was at one time.
#[derive(Clone, Debug)]
pub(crate) struct Reading<'a> {
    pub bounds: &'a [Nanos],
    /// One more than bounds.
    pub parts: Vec<u64>,
    pub sum: Nanos,
}
