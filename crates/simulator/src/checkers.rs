//! Checkers: what must never happen, whatever the scenario.
//!
//! One file each, all run on every simulation. Each follows the trace as it
//! comes, with a bounded amount of work per event, and shares no code with what
//! it judges.

pub mod exactly_once;
pub mod expiry;
pub mod idle_bucket;
pub mod limits;
pub mod memory;
pub mod pressure;
pub mod restart;
pub mod starvation;
pub mod waits;
pub mod work_conserving;

use outflow_core::time::Nanos;

use crate::meter::Tolerance;
use crate::scenario::Scenario;
use crate::trace::{Checker, Observer, Trace, Violation};

/// How many violations a checker describes. The rest it counts.
const DESCRIBED: usize = 20;

/// What a checker found so far.
#[derive(Clone, Debug)]
struct Findings {
    checker: &'static str,
    found: Vec<Violation>,
    more: u64,
}

impl Findings {
    fn of(checker: &'static str) -> Self {
        Self {
            checker,
            found: Vec::new(),
            more: 0,
        }
    }

    fn add(&mut self, at: Nanos, what: impl FnOnce() -> String) {
        if self.found.len() >= DESCRIBED {
            self.more += 1;
            return;
        }
        self.found.push(Violation {
            at,
            checker: self.checker,
            what: what(),
        });
    }

    fn take(&mut self, at: Nanos) -> Vec<Violation> {
        let mut found = std::mem::take(&mut self.found);
        if self.more > 0 {
            found.push(Violation {
                at,
                checker: self.checker,
                what: format!("and {} more", self.more),
            });
        }
        found
    }
}

/// All checkers together.
pub struct Checkers(Vec<Box<dyn Checker>>);

impl Checkers {
    /// All of them, as lenient as the clock faults of `scenario` demand.
    pub fn for_scenario(scenario: &Scenario, bounds: memory::Bounds) -> Self {
        let tolerance = Tolerance {
            drift_ppm: scenario.faults.drift_ppm_max(),
            wall_error: scenario.faults.wall_error_max(scenario.ends()),
            wall_at_zero: scenario.wall_at_zero(),
        };
        Self(vec![
            Box::new(exactly_once::ExactlyOnce::default()),
            Box::new(limits::Limits::new(tolerance)),
            Box::new(starvation::Starvation::default()),
            Box::new(restart::Restart::new(tolerance)),
            Box::new(expiry::Expiry::new(tolerance.wall_error)),
            Box::new(memory::Memory::new(bounds)),
            Box::new(idle_bucket::IdleBucket::new(tolerance)),
            Box::new(pressure::Pressure::new(scenario)),
            Box::new(waits::Waits::new(scenario.healed_at())),
            Box::new(work_conserving::WorkConserving::default()),
        ])
    }

    /// The run is over. All that was found.
    pub fn finish(&mut self, at: Nanos, drained: bool) -> Vec<Violation> {
        let all = self.0.iter_mut();
        all.flat_map(|checker| checker.finish(at, drained))
            .collect()
    }
}

impl Observer for Checkers {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        for checker in &mut self.0 {
            checker.observe(at, trace);
        }
    }
}

/// Hand-made traces for the tests of each checker.
#[cfg(test)]
mod hand_made {
    use super::*;
    use outflow_core::limit::spec::{LimitSpec, Rate};
    use outflow_core::message::State;
    use outflow_core::name::Name;

    pub fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    pub fn bucket(count: u32, burst: u32) -> LimitSpec {
        LimitSpec::TokenBucket {
            rate: Rate::per_second(count),
            burst,
        }
    }

    pub fn limit(checker: &mut dyn Checker, limit: u32, spec: &LimitSpec) {
        checker.observe(
            Nanos::ZERO,
            &Trace::Limit {
                limit,
                key: &Name::from(format!("limit:{limit}")),
                spec,
                leased: false,
            },
        );
    }

    pub fn accepted(message: u64, flow: u32) -> Trace<'static> {
        Trace::Accepted {
            node: 0,
            message,
            flow,
            cost: 1,
            due: Nanos::ZERO,
            expires: Nanos::MAX,
        }
    }

    pub fn sent(message: u64, attempt: u16, limits: &[u32]) -> Trace<'_> {
        Trace::Dispatched {
            node: 0,
            message,
            attempt,
            account: 0,
            cost: 1,
            limits,
        }
    }

    pub fn taken(message: u64, attempt: u16) -> Trace<'static> {
        Trace::Taken { message, attempt }
    }

    pub fn settled(message: u64, state: State) -> Trace<'static> {
        Trace::Settled { message, state }
    }

    pub fn found(checker: &mut dyn Checker, at: Nanos) -> Vec<String> {
        let all = checker.finish(at, true).into_iter();
        all.map(|violation| violation.what).collect()
    }
}
