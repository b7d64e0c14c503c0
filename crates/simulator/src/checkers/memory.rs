//! Memory is bounded, however long the queue is.
//!
//! A node may hold a few heads per flow, what is in flight, and bounded queues.
//! A million waiting messages must not show.

use outflow_core::time::Nanos;

use super::Findings;
use crate::trace::{Checker, Holdings, NodeNo, Observer, Trace, Violation};

/// What a node may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Heads for each flow that was ever seen.
    pub heads_per_flow: u64,
    /// Flows beyond those that were ever seen.
    pub flows_extra: u64,
    /// Limits beyond those that were ever seen.
    pub limits_extra: u64,
    /// Messages in flight.
    pub in_flight: u64,
    /// Sessions.
    pub sessions: u64,
    /// Events and actions that wait to be handled.
    pub queued: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Memory {
    bounds: Bounds,
    flows: u64,
    limits: u64,
    findings: Findings,
}

impl Memory {
    /// Nodes may hold what `bounds` says.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            flows: 0,
            limits: 0,
            findings: Findings::of("memory"),
        }
    }

    fn weigh(&mut self, at: Nanos, node: NodeNo, holds: Holdings) {
        let bounds = self.bounds;
        let flows = self.flows + bounds.flows_extra;
        for (what, has, most) in [
            (
                "heads",
                holds.heads,
                flows * bounds.heads_per_flow + bounds.in_flight,
            ),
            ("flows", holds.flows, flows),
            ("limits", holds.limits, self.limits + bounds.limits_extra),
            ("messages in flight", holds.in_flight, bounds.in_flight),
            ("sessions", holds.sessions, bounds.sessions),
            ("queued events", holds.queued, bounds.queued),
        ] {
            if has > most {
                self.findings.add(at, || {
                    format!("node {node} holds {has} {what}, at most {most}")
                });
            }
        }
    }
}

impl Observer for Memory {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Flow { .. } => self.flows += 1,
            Trace::Limit { .. } => self.limits += 1,
            Trace::Gauge { node, holds } => self.weigh(at, node, holds),
            _ => {}
        }
    }
}

impl Checker for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{found, ms};
    use super::*;
    use outflow_core::class::Class;

    fn after(heads: u64) -> Vec<String> {
        let mut checker = Memory::new(Bounds {
            heads_per_flow: 8,
            flows_extra: 0,
            limits_extra: 0,
            in_flight: 10,
            sessions: 10,
            queued: 100,
        });
        let flow = Trace::Flow {
            flow: 0,
            class: Class::Low,
            tenant: 0,
            limits: &[],
        };
        checker.observe(ms(0), &flow);
        let holds = Holdings {
            heads,
            flows: 1,
            ..Holdings::default()
        };
        checker.observe(ms(1), &Trace::Gauge { node: 0, holds });
        found(&mut checker, ms(2))
    }

    #[test]
    fn a_few_heads_per_flow_are_silent_and_a_queue_in_memory_is_not() {
        assert!(after(18).is_empty());
        assert_eq!(after(1_000_000), ["node 0 holds 1000000 heads, at most 18"]);
    }
}
