//! A full bucket never stands beside a message that could be sent.
//!
//! The world says which messages wait for nothing but limits. If every limit
//! of such a message would let it pass, none of them granted anything to
//! others, and all of its buckets are full, for longer than each of them takes to
//! make two tokens, then a wake was lost.
//!
//! A bucket that is not full may hold a message although it has the tokens: it
//! keeps some for the classes above, and some for flows that come from other
//! limits. It fills meanwhile, and a full one keeps nothing.

use std::collections::BTreeMap;

use outflow_core::limit::spec::LimitSpec;
use outflow_core::name::Name;
use outflow_core::time::Nanos;

use super::Findings;
use crate::in_flight::InFlight;
use crate::meter::{Meter, Tolerance};
use crate::trace::{Checker, FlowNo, LimitNo, MessageNo, Observer, Trace, Violation};

/// A turn of a node and its way to the transport take no longer than this.
const SLACK: Nanos = Nanos::from_millis(5);

struct Row {
    key: Name,
    spec: LimitSpec,
    meter: Meter,
    granted_at: Nanos,
}

/// See the module.
pub struct IdleBucket {
    tolerance: Tolerance,
    rows: Vec<Option<Row>>,
    in_flight: InFlight,
    /// Since when all limits of a message that waits would let it pass.
    clear: BTreeMap<MessageNo, Nanos>,
    /// The limits of each flow, which change with policies and accounts.
    needs: BTreeMap<FlowNo, Vec<LimitNo>>,
    restarted: bool,
    findings: Findings,
}

impl IdleBucket {
    /// Wall clocks may be as far off as `tolerance` says.
    pub fn new(tolerance: Tolerance) -> Self {
        Self {
            tolerance: Tolerance {
                drift_ppm: 0,
                ..tolerance
            },
            rows: Vec::new(),
            in_flight: InFlight::default(),
            clear: BTreeMap::new(),
            needs: BTreeMap::new(),
            restarted: false,
            findings: Findings::of("idle_bucket"),
        }
    }

    fn row(&mut self, limit: LimitNo) -> Option<&mut Row> {
        self.rows.get_mut(limit as usize)?.as_mut()
    }

    fn declare(&mut self, at: Nanos, limit: LimitNo, key: &Name, spec: &LimitSpec) {
        let index = limit as usize;
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, || None);
        }
        let row = Row {
            key: key.clone(),
            spec: spec.clone(),
            meter: Meter::new(at, spec, self.tolerance),
            granted_at: at,
        };
        if let Some(slot) = self.rows.get_mut(index) {
            *slot = Some(row);
        }
    }

    fn take(&mut self, at: Nanos, limit: LimitNo, cost: u32) {
        if let Some(row) = self.row(limit) {
            // Whether it was allowed is for another checker to say.
            let _ = row.meter.take(at, cost);
            row.granted_at = at;
        }
    }

    fn waits(
        &mut self,
        at: Nanos,
        message: MessageNo,
        since: Nanos,
        cost: u32,
        limits: &[LimitNo],
    ) {
        let mut idle_from = since;
        let mut full: Option<LimitNo> = None;
        let mut patience = Nanos::ZERO;
        for limit in limits {
            let Some(row) = self.row(*limit) else {
                return;
            };
            if !row.meter.allows(at, cost) {
                self.clear.remove(&message);
                return;
            }
            idle_from = idle_from.max(row.granted_at);
            if let LimitSpec::TokenBucket { rate, .. } = &row.spec {
                let Some(full_since) = row.meter.full_since(at) else {
                    self.clear.remove(&message);
                    return;
                };
                idle_from = idle_from.max(full_since);
                patience = patience.max(rate.time_for(2) + SLACK);
                full = Some(*limit);
            }
        }
        idle_from = idle_from.max(*self.clear.entry(message).or_insert(at));
        let Some(limit) = full else {
            return;
        };
        let idle = at.minus(idle_from);
        if idle <= patience {
            return;
        }
        self.clear.insert(message, at);
        if let Some(row) = self.row(limit) {
            let key = row.key.clone();
            self.findings.add(at, || {
                format!("{key} stood full for {idle} beside message {message}, which nothing held")
            });
        }
    }

    /// A flow needs other limits. One that comes after a restart starts empty.
    fn change(&mut self, at: Nanos, flow: FlowNo, limits: &[LimitNo]) {
        let before = self.needs.insert(flow, limits.to_vec()).unwrap_or_default();
        for limit in limits.iter().filter(|limit| !before.contains(limit)) {
            if self.restarted
                && let Some(row) = self.row(*limit)
            {
                row.meter.drain(at);
                row.granted_at = at;
            }
        }
    }

    fn release(&mut self, held: Vec<(LimitNo, u32)>) {
        for (limit, cost) in held {
            if let Some(row) = self.row(limit) {
                row.meter.release(cost);
            }
        }
    }
}

impl Observer for IdleBucket {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Limit {
                limit, key, spec, ..
            } => self.declare(at, limit, key, spec),
            Trace::LimitChanged { limit, spec, .. } => {
                let tolerance = self.tolerance;
                if let Some(row) = self.row(limit) {
                    row.meter.change(at, spec, tolerance);
                    row.spec = spec.clone();
                    row.granted_at = at;
                }
            }
            Trace::Dispatched {
                node,
                message,
                attempt,
                cost,
                limits,
                ..
            } => {
                self.clear.remove(&message);
                for limit in limits {
                    self.take(at, *limit, cost);
                }
                self.in_flight
                    .sent(node, message, attempt, cost, limits.iter().copied());
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
                self.clear.clear();
            }
            Trace::Flow { flow, limits, .. } => {
                self.needs.insert(flow, limits.to_vec());
            }
            Trace::FlowChanged { flow, limits, .. } => self.change(at, flow, limits),
            // Buckets start empty after a crash.
            Trace::Restarted { .. } => {
                self.restarted = true;
                for row in self.rows.iter_mut().flatten() {
                    row.meter.drain(at);
                    row.granted_at = at;
                }
            }
            Trace::Settled { message, .. } => {
                self.clear.remove(&message);
            }
            Trace::Waits {
                message,
                since,
                cost,
                limits,
            } => self.waits(at, message, since, cost, limits),
            _ => {}
        }
    }
}

impl Checker for IdleBucket {
    fn name(&self) -> &'static str {
        "idle_bucket"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{bucket, found, limit, ms, sent};
    use super::*;

    fn waits(message: u64, since: u64, limits: &[u32]) -> Trace<'_> {
        Trace::Waits {
            message,
            since: ms(since),
            cost: 1,
            limits,
        }
    }

    fn checker() -> IdleBucket {
        let mut checker = IdleBucket::new(Tolerance::default());
        limit(&mut checker, 0, &bucket(10, 2));
        limit(&mut checker, 1, &bucket(1, 1));
        checker
    }

    #[test]
    fn a_message_that_is_held_elsewhere_or_new_is_silent() {
        let mut checker = checker();
        checker.observe(ms(0), &sent(0, 1, &[1]));
        // Limit 0 is full, but limit 1 holds the message until 1,000.
        for at in (0..1_100).step_by(10) {
            checker.observe(ms(at), &waits(1, 0, &[0, 1]));
        }
        checker.observe(ms(1_101), &sent(1, 1, &[0, 1]));
        // Limit 0 has been full for long, the message is new.
        checker.observe(ms(9_000), &waits(2, 8_990, &[0]));
        checker.observe(ms(9_010), &waits(2, 8_990, &[0]));
        assert_eq!(found(&mut checker, ms(9_999)), Vec::<String>::new());
    }

    #[test]
    fn a_bucket_that_is_not_full_may_keep_what_it_has() {
        let mut checker = checker();
        limit(&mut checker, 2, &bucket(1, 5));
        for n in 0..3 {
            checker.observe(ms(0), &sent(n, 1, &[2]));
        }
        // Limit 0 is full. Limit 2 has tokens, and is full from 3,000 on.
        for at in (0..3_000).step_by(50) {
            checker.observe(ms(at), &waits(9, 0, &[0, 2]));
        }
        assert_eq!(found(&mut checker, ms(3_000)), Vec::<String>::new());
        for at in (3_000..6_000).step_by(50) {
            checker.observe(ms(at), &waits(9, 0, &[0, 2]));
        }
        assert_eq!(found(&mut checker, ms(9_999)).len(), 1);
    }

    #[test]
    fn a_lost_wake_is_found() {
        let mut checker = checker();
        for at in (0..1_000).step_by(50) {
            checker.observe(ms(at), &waits(1, 0, &[0]));
        }
        let found = found(&mut checker, ms(9_999));
        assert!(!found.is_empty());
        assert!(
            found[0].starts_with("limit:0 stood full for 250ms beside message 1"),
            "{found:?}"
        );
    }
}
