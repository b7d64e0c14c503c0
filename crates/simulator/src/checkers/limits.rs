//! No limit is exceeded in any interval, over all nodes together.
//!
//! Every send is taken from a reference meter of each of its limits, in true
//! time. Meters do not know of nodes, leases or restarts, so whatever those do,
//! the guarantee is that of one machine that never stopped.

use outflow_core::limit::spec::LimitSpec;
use outflow_core::name::Name;
use outflow_core::time::Nanos;

use super::Findings;
use crate::in_flight::InFlight;
use crate::meter::{Meter, Tolerance, describe};
use crate::trace::{Checker, LimitNo, Observer, Trace, Violation};

struct Row {
    key: Name,
    spec: LimitSpec,
    tolerance: Tolerance,
    meter: Meter,
}

/// See the module.
pub struct Limits {
    tolerance: Tolerance,
    rows: Vec<Option<Row>>,
    in_flight: InFlight,
    findings: Findings,
}

impl Limits {
    /// Clocks within `tolerance` are not blamed. What is leased is counted on
    /// the ledger's clock, which runs true.
    pub fn new(tolerance: Tolerance) -> Self {
        Self {
            tolerance,
            rows: Vec::new(),
            in_flight: InFlight::default(),
            findings: Findings::of("limits"),
        }
    }

    fn declare(&mut self, at: Nanos, limit: LimitNo, key: &Name, spec: &LimitSpec, leased: bool) {
        let index = limit as usize;
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, || None);
        }
        let tolerance = Tolerance {
            drift_ppm: if leased { 0 } else { self.tolerance.drift_ppm },
            ..self.tolerance
        };
        if let Some(slot) = self.rows.get_mut(index) {
            *slot = Some(Row {
                key: key.clone(),
                spec: spec.clone(),
                tolerance,
                meter: Meter::new(at, spec, tolerance),
            });
        }
    }

    fn change(&mut self, at: Nanos, limit: LimitNo, spec: &LimitSpec) {
        if let Some(Some(row)) = self.rows.get_mut(limit as usize) {
            row.meter.change(at, spec, row.tolerance);
            row.spec = spec.clone();
        }
    }

    fn take(&mut self, at: Nanos, limit: LimitNo, cost: u32) {
        let Some(Some(row)) = self.rows.get_mut(limit as usize) else {
            self.findings
                .add(at, || format!("limit {limit} was used before it was there"));
            return;
        };
        if let Err(excess) = row.meter.take(at, cost) {
            let (key, spec) = (&row.key, describe(&row.spec));
            self.findings
                .add(at, || format!("{key} ({spec}) was exceeded: {excess}"));
        }
    }

    fn release(&mut self, held: Vec<(LimitNo, u32)>) {
        for (limit, cost) in held {
            if let Some(Some(row)) = self.rows.get_mut(limit as usize) {
                row.meter.release(cost);
            }
        }
    }
}

impl Observer for Limits {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Limit {
                limit,
                key,
                spec,
                leased,
            } => self.declare(at, limit, key, spec, leased),
            Trace::LimitChanged { limit, spec, .. } => self.change(at, limit, spec),
            Trace::Dispatched {
                node,
                message,
                attempt,
                cost,
                limits,
                ..
            } => {
                for limit in limits {
                    self.take(at, *limit, cost);
                }
                let rows = &self.rows;
                let held = limits.iter().copied().filter(|limit| {
                    matches!(
                        rows.get(*limit as usize),
                        Some(Some(Row {
                            meter: Meter::Concurrent(_),
                            ..
                        }))
                    )
                });
                self.in_flight.sent(node, message, attempt, cost, held);
            }
            Trace::Replied {
                node,
                message,
                attempt,
                ..
            } => {
                let held = self.in_flight.over(node, message, attempt);
                self.release(held);
            }
            Trace::Crashed { node } => {
                let held = self.in_flight.crashed(node);
                self.release(held);
            }
            _ => {}
        }
    }
}

impl Checker for Limits {
    fn name(&self) -> &'static str {
        "limits"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{bucket, found, limit, ms, sent};
    use super::*;
    use crate::trace::{Answered, Cause};

    fn checker(specs: &[LimitSpec]) -> Limits {
        let mut checker = Limits::new(Tolerance::default());
        for (n, spec) in specs.iter().enumerate() {
            limit(&mut checker, n as u32, spec);
        }
        checker
    }

    #[test]
    fn sends_at_the_limit_are_silent() {
        let mut checker = checker(&[bucket(10, 5), bucket(1_000, 1)]);
        for message in 0..5 {
            checker.observe(ms(message), &sent(message, 1, &[0, 1]));
        }
        for message in 5..50 {
            checker.observe(ms((message - 4) * 100), &sent(message, 1, &[0]));
        }
        assert_eq!(found(&mut checker, ms(9_999)), Vec::<String>::new());
    }

    #[test]
    fn one_send_too_many_in_an_interval_that_nothing_aligns_is_found() {
        let mut checker = checker(&[bucket(10, 2)]);
        for (message, at) in [0, 137, 138, 239, 329].into_iter().enumerate() {
            checker.observe(ms(at), &sent(message as u64, 1, &[0]));
        }
        let found = found(&mut checker, ms(9_999));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("limit:0 (10 per 1.0s burst 2) was exceeded"));
    }

    #[test]
    fn two_nodes_share_one_limit() {
        let mut checker = checker(&[bucket(10, 1)]);
        for node in 0..2 {
            let mut event = sent(u64::from(node), 1, &[0]);
            if let Trace::Dispatched { node: at, .. } = &mut event {
                *at = node;
            }
            checker.observe(ms(1), &event);
        }
        assert_eq!(found(&mut checker, ms(2)).len(), 1);
    }

    #[test]
    fn what_came_back_or_died_is_no_longer_in_flight() {
        let slots = LimitSpec::Concurrency { slots: 1 };
        let mut checker = checker(&[slots]);
        checker.observe(ms(1), &sent(0, 1, &[0]));
        let replied = Trace::Replied {
            node: 0,
            message: 0,
            attempt: 1,
            answer: Answered::Accepted,
        };
        checker.observe(ms(2), &replied);
        // An answer that comes twice gives nothing back twice.
        checker.observe(ms(2), &replied);
        checker.observe(ms(3), &sent(1, 1, &[0]));
        checker.observe(ms(4), &Trace::Crashed { node: 0 });
        checker.observe(ms(5), &sent(2, 1, &[0]));
        assert_eq!(found(&mut checker, ms(6)).len(), 0);
        checker.observe(ms(7), &sent(3, 1, &[0]));
        assert_eq!(found(&mut checker, ms(8)).len(), 1);
    }

    #[test]
    fn a_raised_limit_gives_no_fresh_burst() {
        let mut checker = checker(&[bucket(1, 5)]);
        for message in 0..5 {
            checker.observe(ms(0), &sent(message, 1, &[0]));
        }
        let change = Trace::LimitChanged {
            limit: 0,
            spec: &bucket(2, 5),
            cause: Cause::Operator,
        };
        checker.observe(ms(0), &change);
        checker.observe(ms(500), &sent(5, 1, &[0]));
        checker.observe(ms(500), &sent(6, 1, &[0]));
        assert_eq!(found(&mut checker, ms(600)).len(), 1);
    }
}
