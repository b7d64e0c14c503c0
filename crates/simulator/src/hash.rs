//! A hash over everything that happened, to compare two runs.
//!
//! FNV-1a over a canonical encoding: a tag for the kind, then each field as
//! eight bytes. Two runs with the same seed must agree in it, whatever machine
//! they ran on.

use outflow_core::time::Nanos;

use crate::trace::{ConnectionChange, Observer, Trace};

/// The hash of a trace so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash {
    hash: u64,
    count: u64,
}

impl Default for TraceHash {
    fn default() -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            count: 0,
        }
    }
}

impl TraceHash {
    /// The hash.
    pub fn value(&self) -> u64 {
        self.hash
    }

    /// Over how many events.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.bytes(&number.to_le_bytes());
        }
    }

    fn text(&mut self, text: &str) {
        self.numbers([text.len() as u64]);
        self.bytes(text.as_bytes());
    }

    fn limits(&mut self, limits: &[u32]) {
        self.numbers([limits.len() as u64]);
        self.numbers(limits.iter().map(|limit| u64::from(*limit)));
    }
}

impl Observer for TraceHash {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        self.count += 1;
        self.numbers([at.0]);
        match *trace {
            Trace::Tenant {
                tenant,
                name,
                weight,
            } => {
                self.numbers([1, u64::from(tenant), u64::from(weight)]);
                self.text(name.as_str());
            }
            Trace::Limit {
                limit,
                key,
                spec,
                leased,
            } => {
                self.numbers([2, u64::from(limit), u64::from(leased)]);
                self.text(key.as_str());
                self.text(&crate::meter::describe(spec));
            }
            Trace::LimitChanged { limit, spec, cause } => {
                self.numbers([3, u64::from(limit), cause as u64]);
                self.text(&crate::meter::describe(spec));
            }
            Trace::Flow {
                flow,
                class,
                tenant,
                limits,
            } => {
                self.numbers([4, u64::from(flow), class as u64, u64::from(tenant)]);
                self.limits(limits);
            }
            Trace::Accepted {
                node,
                message,
                flow,
                cost,
                due,
                expires,
            } => {
                self.numbers([
                    5,
                    u64::from(node),
                    message,
                    u64::from(flow),
                    u64::from(cost),
                    due.0,
                    expires.0,
                ]);
            }
            Trace::Dispatched {
                node,
                message,
                attempt,
                account,
                cost,
                limits,
            } => {
                let (node, attempt) = (u64::from(node), u64::from(attempt));
                self.numbers([
                    6,
                    node,
                    message,
                    attempt,
                    u64::from(account),
                    u64::from(cost),
                ]);
                self.limits(limits);
            }
            Trace::Taken { message, attempt } => self.numbers([7, message, u64::from(attempt)]),
            Trace::Replied {
                node,
                message,
                attempt,
                answer,
            } => {
                self.numbers([
                    8,
                    u64::from(node),
                    message,
                    u64::from(attempt),
                    answer as u64,
                ]);
            }
            Trace::AskedToWait { account, until } => {
                self.numbers([14, u64::from(account), until.0]);
            }
            Trace::Deferred { message, until } => self.numbers([9, message, until.0]),
            Trace::Settled { message, state } => self.numbers([10, message, state as u64]),
            Trace::LateBounce { message } => self.numbers([11, message]),
            Trace::Crashed { node } => self.numbers([12, u64::from(node)]),
            Trace::FlowChanged { flow, lane, limits } => {
                let lane = lane.map_or(0, |lane| u64::from(lane) + 1);
                self.numbers([25, u64::from(flow), lane]);
                self.limits(limits);
            }
            Trace::Moved { message, flow } => self.numbers([26, message, u64::from(flow)]),
            Trace::Operated { holds } => self.numbers([27, u64::from(holds)]),
            Trace::Restarted { node } => self.numbers([13, u64::from(node)]),
            // Probes and gauges look at a run and must not change what it is.
            Trace::Waits { .. }
            | Trace::Explained { .. }
            | Trace::ConnectFailed { .. }
            | Trace::LacksSession { .. }
            | Trace::Gauge { .. } => {}
            Trace::FlowTo { flow, .. } => self.numbers([19, u64::from(flow)]),
            Trace::Connects { account, .. } => self.numbers([20, u64::from(account)]),
            Trace::Connection {
                node,
                connection,
                change,
            } => {
                let change = match change {
                    ConnectionChange::Opened { ready, .. } => [0, ready.0],
                    ConnectionChange::Busy => [1, 0],
                    ConnectionChange::Idle => [2, 0],
                    ConnectionChange::Closed { at } => [3, at.0],
                };
                self.numbers([21, u64::from(node), connection]);
                self.numbers(change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_time_and_fields_all_count_and_probes_do_not() {
        let hash = |events: &[(u64, Trace<'_>)]| {
            let mut hash = TraceHash::default();
            for (at, trace) in events {
                hash.observe(Nanos(*at), trace);
            }
            hash.value()
        };
        let taken = |message| Trace::Taken {
            message,
            attempt: 1,
        };
        let base = hash(&[(1, taken(1)), (2, taken(2))]);
        assert_eq!(base, hash(&[(1, taken(1)), (2, taken(2))]));
        assert_ne!(base, hash(&[(1, taken(2)), (2, taken(1))]));
        assert_ne!(base, hash(&[(1, taken(1)), (3, taken(2))]));
        assert_ne!(base, hash(&[(1, taken(1))]));
    }
}
