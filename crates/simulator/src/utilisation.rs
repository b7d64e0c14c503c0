//! How much of each limit was used while there was demand for it.
//!
//! Demand is a stretch in which at least one message waits that may need the
//! limit. For each stretch, what was granted counts up to what the limit
//! allowed in it, so that tokens saved up in one stretch cannot hide what was
//! wasted in another.

use outflow_core::limit::spec::{LimitSpec, Period};
use outflow_core::name::Name;
use outflow_core::time::{NANOS_PER_SECOND, Nanos};

/// One limit and its use.
#[derive(Clone, Debug)]
pub struct Usage {
    /// What it is called.
    pub key: Name,
    /// Tokens granted in all.
    pub granted: u64,
    /// Its rate per second, in thousandths, from each time on; the number of
    /// slots for concurrency.
    pub rates: Vec<(Nanos, u64)>,
    spec: LimitSpec,
    waiting: u64,
    in_flight: u64,
    /// Up to when the running stretch is accounted for.
    at: Nanos,
    stretch_used: u128,
    stretch_allowed: u128,
    used: u128,
    allowed: u128,
}

/// Tokens are counted in millionths; slots in nanoseconds.
const MICRO: u128 = 1_000_000;

impl Usage {
    /// A limit of which nothing is used.
    pub fn new(at: Nanos, key: Name, spec: LimitSpec) -> Self {
        Self {
            key,
            granted: 0,
            rates: vec![(at, rate_milli(&spec))],
            spec,
            waiting: 0,
            in_flight: 0,
            at,
            stretch_used: 0,
            stretch_allowed: 0,
            used: 0,
            allowed: 0,
        }
    }

    /// Other numbers from `at` on.
    pub fn change(&mut self, at: Nanos, spec: LimitSpec) {
        self.account(at);
        self.rates.push((at, rate_milli(&spec)));
        self.spec = spec;
    }

    /// Whether it is a limit of concurrency.
    pub fn is_concurrency(&self) -> bool {
        matches!(self.spec, LimitSpec::Concurrency { .. })
    }

    /// `cost` was granted.
    pub fn grant(&mut self, at: Nanos, cost: u32) {
        self.granted += u64::from(cost);
        if self.is_concurrency() {
            self.account(at);
            self.in_flight += u64::from(cost);
        } else if self.waiting > 0 {
            self.stretch_used += u128::from(cost) * MICRO;
        }
    }

    /// `cost` came back.
    pub fn release(&mut self, at: Nanos, cost: u32) {
        self.account(at);
        self.in_flight = self.in_flight.saturating_sub(u64::from(cost));
    }

    /// One more message waits that may need it, or one less.
    pub fn demand(&mut self, at: Nanos, began: bool) {
        if began {
            if self.waiting == 0 {
                self.at = at;
            }
            self.waiting += 1;
            return;
        }
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.waiting = 1;
            self.account(at);
            self.waiting = 0;
            self.close();
        }
    }

    /// What share was used while there was demand, in millionths; nothing if
    /// there was none that lasted.
    pub fn share_ppm(&self, at: Nanos) -> Option<u64> {
        let mut last = self.clone();
        last.account(at);
        last.close();
        if last.allowed == 0 {
            return None;
        }
        let share = last.used * MICRO / last.allowed;
        Some(share as u64)
    }

    fn close(&mut self) {
        self.used += self.stretch_used.min(self.stretch_allowed);
        self.allowed += self.stretch_allowed;
        self.stretch_used = 0;
        self.stretch_allowed = 0;
    }

    fn account(&mut self, at: Nanos) {
        let elapsed = u128::from(at.minus(self.at).0);
        if self.waiting == 0 || elapsed == 0 {
            return;
        }
        self.at = at;
        match &self.spec {
            LimitSpec::Concurrency { slots } => {
                self.stretch_allowed += u128::from(*slots) * elapsed;
                self.stretch_used += u128::from(self.in_flight) * elapsed;
            }
            spec => {
                let (count, per) = rate(spec);
                self.stretch_allowed += count * elapsed * MICRO / per;
            }
        }
    }
}

/// Tokens and the nanoseconds in which they come.
fn rate(spec: &LimitSpec) -> (u128, u128) {
    let (count, per) = match spec {
        LimitSpec::TokenBucket { rate, .. } | LimitSpec::LeakyBucket { rate } => {
            (rate.count, rate.per.0)
        }
        LimitSpec::SlidingWindow { count, window } => (*count, window.0),
        LimitSpec::CalendarWindow { count, period, .. } => {
            let secs = match period {
                Period::Minute => 60,
                Period::Hour => 3_600,
                Period::Day => 86_400,
            };
            (*count, secs * NANOS_PER_SECOND)
        }
        LimitSpec::Concurrency { slots } => (*slots, NANOS_PER_SECOND),
    };
    (u128::from(count), u128::from(per.max(1)))
}

fn rate_milli(spec: &LimitSpec) -> u64 {
    let (count, per) = rate(spec);
    (count * 1_000 * u128::from(NANOS_PER_SECOND) / per) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use outflow_core::limit::spec::Rate;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn only_time_with_demand_counts_and_stretches_do_not_mix() {
        let spec = LimitSpec::TokenBucket {
            rate: Rate::per_second(10),
            burst: 5,
        };
        let mut usage = Usage::new(ms(0), Name::from("x"), spec);
        // A burst from a full bucket, all in one instant.
        usage.demand(ms(0), true);
        usage.grant(ms(0), 5);
        usage.demand(ms(0), false);
        assert_eq!(usage.share_ppm(ms(9_000)), None);
        // One second of demand, five of ten granted.
        usage.demand(ms(10_000), true);
        for n in 0..5 {
            usage.grant(ms(10_000 + n * 200), 1);
        }
        assert_eq!(usage.share_ppm(ms(11_000)), Some(500_000));
        usage.demand(ms(11_000), false);
        assert_eq!(usage.share_ppm(ms(99_000)), Some(500_000));
        assert_eq!(usage.granted, 10);
    }

    #[test]
    fn concurrency_counts_slots_over_time() {
        let mut usage = Usage::new(ms(0), Name::from("x"), LimitSpec::Concurrency { slots: 2 });
        usage.demand(ms(0), true);
        usage.grant(ms(0), 2);
        usage.release(ms(600), 1);
        assert_eq!(usage.share_ppm(ms(1_000)), Some(800_000));
    }
}
