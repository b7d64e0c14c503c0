//! Memory is bounded, however long the queue is.
//!
//! A node may hold a few heads per flow, what is in flight, and bounded queues.
//! A million waiting messages must not show. Nor must what is over: flows count
//! as long as a message of theirs is not settled, and a while longer; lanes as
//! long as something may be remembered of them.

use std::collections::BTreeMap;

use outflow_core::engine::FLOW_GRACE;
use outflow_core::time::Nanos;

use super::Findings;
use crate::trace::{Checker, FlowNo, Holdings, MessageNo, NodeNo, Observer, Trace, Violation};

/// What a node may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Heads for each flow that lives.
    pub heads_per_flow: u64,
    /// Flows for each that lives: they may be known by two names.
    pub flows_per_live: u64,
    /// Lanes for each flow that lives. Those of a tenant with accounts of its
    /// own may have had the shared one before: a node that starts hears of its
    /// flows before it hears of all accounts.
    pub lanes_per_flow: u64,
    /// Flows beyond those.
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

/// A flow counts for so long after its last message was settled: it is idle for
/// a while, and then the store is asked.
const FLOW_KEPT: Nanos = FLOW_GRACE.times(2);
/// A lane counts for so long after its last flow: failed connects are remembered,
/// and what nobody uses is looked at once a minute at least.
const LANE_KEPT: Nanos = Nanos::from_secs(900);

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Messages that are not settled.
    live: u64,
    /// When it was last heard of.
    at: Nanos,
    /// Nothing of it was accepted yet: it may be on its way.
    is_new: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Memory {
    bounds: Bounds,
    flows: BTreeMap<FlowNo, Seen>,
    /// The flow of each message that is not settled.
    messages: BTreeMap<MessageNo, FlowNo>,
    limits: u64,
    findings: Findings,
}

impl Memory {
    /// Nodes may hold what `bounds` says.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            flows: BTreeMap::new(),
            messages: BTreeMap::new(),
            limits: 0,
            findings: Findings::of("memory"),
        }
    }

    /// Flows that have messages, or had some so lately.
    fn live(&self, at: Nanos, kept: Nanos) -> u64 {
        let lives = |seen: &&Seen| seen.live > 0 || seen.is_new || at.minus(seen.at) <= kept;
        self.flows.values().filter(lives).count() as u64
    }

    fn accepted(&mut self, at: Nanos, message: MessageNo, flow: FlowNo) {
        self.messages.insert(message, flow);
        if let Some(seen) = self.flows.get_mut(&flow) {
            (seen.live, seen.at, seen.is_new) = (seen.live + 1, at, false);
        }
    }

    fn settled(&mut self, at: Nanos, message: MessageNo) {
        let flow = self.messages.remove(&message);
        if let Some(seen) = flow.and_then(|flow| self.flows.get_mut(&flow)) {
            (seen.live, seen.at) = (seen.live - 1, at);
        }
    }

    fn weigh(&mut self, at: Nanos, node: NodeNo, holds: Holdings) {
        let bounds = self.bounds;
        let live = self.live(at, FLOW_KEPT) * bounds.flows_per_live;
        let flows = live + bounds.flows_extra;
        let lanes = self.live(at, LANE_KEPT) * bounds.flows_per_live * bounds.lanes_per_flow
            + bounds.flows_extra;
        for (what, has, most) in [
            (
                "heads",
                holds.heads,
                live * bounds.heads_per_flow + bounds.in_flight,
            ),
            ("flows", holds.flows, flows),
            ("tenants", holds.tenants, flows),
            ("lanes", holds.lanes, lanes),
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
            Trace::Flow { flow, .. } => {
                self.flows.entry(flow).or_insert(Seen {
                    live: 0,
                    at,
                    is_new: true,
                });
            }
            Trace::Accepted { message, flow, .. } => self.accepted(at, message, flow),
            Trace::Settled { message, .. } => self.settled(at, message),
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

    /// A checker that knows of one flow.
    fn with_lanes(lanes_per_flow: u64) -> Memory {
        let mut checker = Memory::new(Bounds {
            heads_per_flow: 8,
            flows_per_live: 1,
            lanes_per_flow,
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
        checker
    }

    #[test]
    fn a_lane_more_than_flows_may_have_is_noticed() {
        let found_with = |lanes_per_flow, lanes| {
            let mut checker = with_lanes(lanes_per_flow);
            let holds = Holdings {
                lanes,
                ..Holdings::default()
            };
            checker.observe(ms(1), &Trace::Gauge { node: 0, holds });
            found(&mut checker, ms(2))
        };
        assert!(found_with(1, 1).is_empty() && found_with(2, 2).is_empty());
        assert_eq!(found_with(1, 2), ["node 0 holds 2 lanes, at most 1"]);
        assert_eq!(found_with(2, 3), ["node 0 holds 3 lanes, at most 2"]);
    }

    fn after(heads: u64) -> Vec<String> {
        let mut checker = with_lanes(1);
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

    /// What is said of a node that still has a flow this long after its only
    /// message was settled.
    fn after_the_end(later: Nanos) -> Vec<String> {
        let mut checker = with_lanes(1);
        let accepted = Trace::Accepted {
            message: 0,
            flow: 0,
            cost: 1,
            due: ms(0),
            expires: Nanos::MAX,
        };
        let state = outflow_core::message::State::Delivered;
        checker.observe(ms(0), &accepted);
        checker.observe(ms(5), &Trace::Settled { message: 0, state });
        let holds = Holdings {
            flows: 1,
            ..Holdings::default()
        };
        let at = ms(5) + later;
        checker.observe(at, &Trace::Gauge { node: 0, holds });
        found(&mut checker, at)
    }

    #[test]
    fn a_flow_that_outlives_its_messages_by_more_than_its_grace_is_noticed() {
        assert!(after_the_end(FLOW_GRACE).is_empty());
        let late = Nanos::from_secs(60);
        assert_eq!(after_the_end(late), ["node 0 holds 1 flows, at most 0"]);
    }
}
