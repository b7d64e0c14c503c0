//! At most `count` in any window, by the time of each send.

use std::collections::VecDeque;

use outflow_core::time::Nanos;

/// A sliding window, counted independently.
#[derive(Clone, Debug)]
pub struct Sliding {
    count: u32,
    window: Nanos,
    drift_ppm: u32,
    sent: VecDeque<(Nanos, u64)>,
    in_window: u64,
    /// Higher counts that were in force until lately.
    replaced: VecDeque<(Nanos, u32)>,
}

impl Sliding {
    /// Nothing was sent yet.
    pub fn new(count: u32, window: Nanos, drift_ppm: u32) -> Self {
        Self {
            count,
            window: shortened(window, drift_ppm),
            drift_ppm,
            sent: VecDeque::new(),
            in_window: 0,
            replaced: VecDeque::new(),
        }
    }

    fn forget(&mut self, at: Nanos) {
        // A send exactly one window ago is in no window with one of now.
        let window = self.window;
        while let Some((_, cost)) = self.sent.pop_front_if(|(sent, _)| *sent + window <= at) {
            self.in_window -= cost;
        }
        while self
            .replaced
            .pop_front_if(|(until, _)| *until + window <= at)
            .is_some()
        {}
    }

    fn most(&self) -> u64 {
        let before = self.replaced.iter().map(|(_, count)| *count).max();
        u64::from(before.unwrap_or(0).max(self.count))
    }

    /// Takes `cost`; how many too many in the last window, if there are.
    pub fn take(&mut self, at: Nanos, cost: u32) -> Result<(), String> {
        self.forget(at);
        self.in_window += u64::from(cost);
        match self.sent.back_mut() {
            Some((sent, sum)) if *sent == at => *sum += u64::from(cost),
            _ => self.sent.push_back((at, u64::from(cost))),
        }
        if self.in_window <= self.most() {
            return Ok(());
        }
        Err(format!(
            "{} in {}, at most {}",
            self.in_window,
            self.window,
            self.most()
        ))
    }

    /// Whether `cost` still fits.
    pub fn allows(&mut self, at: Nanos, cost: u32) -> bool {
        self.forget(at);
        self.in_window + u64::from(cost) <= u64::from(self.count)
    }

    /// Other numbers from `at` on. What was sent before counts on as far as it
    /// is remembered.
    pub fn change(&mut self, at: Nanos, count: u32, window: Nanos) {
        self.forget(at);
        self.replaced.push_back((at, self.count));
        self.count = count;
        self.window = shortened(window, self.drift_ppm);
    }
}

/// A window as a fast clock sees it.
fn shortened(window: Nanos, ppm: u32) -> Nanos {
    let nanos = u128::from(window.0) * 1_000_000 / u128::from(1_000_000 + ppm);
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
