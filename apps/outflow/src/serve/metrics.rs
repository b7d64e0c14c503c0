//! The page of metrics: what was counted, and what the node says now.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use outflow_core::class::Class;
use outflow_core::message::{Channel, State};
use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::schedule::waits::Waits;
use outflow_feedback::SuppressionList;
use outflow_pipeline::{Handle, Meters};
use outflow_ports::intake::Then;
use outflow_ports::query::{Depth, LaneView, LimitView, Query};
use outflow_telemetry::snapshot::{self, LimitNow};
use outflow_telemetry::{AttemptLog, Logs, Metrics, Snapshot};
use outflow_throttle::Counts;

/// A node that is slower than this is left out of the page.
const PATIENCE: Duration = Duration::from_secs(2);

/// Renders the page.
#[derive(Clone)]
pub struct MetricsPage {
    /// What was counted.
    pub metrics: Arc<Metrics>,
    /// Who knows what is so now.
    pub node: Handle,
    /// Who counts what is asked before it is done.
    pub throttle: Arc<outflow_throttle::Service>,
    /// Who is not sent to any more.
    pub suppressed: Arc<SuppressionList>,
    /// The server's log.
    pub logs: Arc<Logs>,
    /// The log of attempts.
    pub attempts: Option<Arc<AttemptLog>>,
}

impl outflow_api::Metrics for MetricsPage {
    /// Asks the node on a thread that may wait.
    fn render(&self, then: Then<String>) {
        let page = self.clone();
        tokio::task::spawn_blocking(move || then(page.metrics.render(&page.snapshot())));
    }
}

impl MetricsPage {
    fn snapshot(&self) -> Snapshot {
        let depth = asked(|then| self.node.depth(then)).unwrap_or_default();
        let lanes = asked(|then| self.node.lanes(then)).unwrap_or_default();
        let limits = asked(|then| self.node.limits(then)).unwrap_or_default();
        let counts = self.throttle.counts();
        let meters: Meters = asked(|then| self.node.meters(then)).unwrap_or_default();
        Snapshot {
            queue: queue(&depth),
            oldest_age: depth.oldest_age,
            in_flight: lanes.iter().map(|lane: &LaneView| lane.in_flight).sum(),
            sessions: lanes.iter().map(|lane| u64::from(lane.sessions)).sum(),
            limits: most_wanted_first(limits),
            accounts: meters.accounts,
            breakers: breakers(&lanes),
            waits: together(meters.waits, &counts.waits),
            throttle: throttle_now(&counts),
            suppressed: self.suppressed.in_force() as u64,
            suppressions_held: self.suppressed.held(),
            suppressions_let_go: self.suppressed.let_go(),
            lines_dropped: [
                self.logs.dropped(),
                self.attempts.as_ref().map_or(0, |log| log.dropped()),
                self.throttle.log_dropped(),
            ],
        }
    }
}

/// How the breakers of each lane stand, the broken ones first.
fn breakers(lanes: &[LaneView]) -> Vec<(String, u8)> {
    let state = |lane: &LaneView| match (lane.broken, lane.half_open) {
        (0, 0) => 0,
        (0, _) => 1,
        _ => 2,
    };
    let mut states: Vec<_> = lanes
        .iter()
        .map(|lane| (lane.name.clone(), state(lane)))
        .collect();
    states.sort_by_key(|(_, state)| std::cmp::Reverse(*state));
    states
}

fn throttle_now(counts: &Counts) -> snapshot::ThrottleNow {
    snapshot::ThrottleNow {
        results: [counts.granted, counts.refused, counts.failed],
        waited: counts.waited,
        waiting: counts.waiting,
        keys: counts.keys,
        permits: counts.permits,
    }
}

/// Flows and requests to the throttle that were held up, by the same scopes.
fn together(
    mut flows: Vec<(ScopeSet, Waits)>,
    requests: &[(ScopeSet, Waits)],
) -> Vec<(ScopeSet, Waits)> {
    for (scopes, waits) in requests {
        match flows.iter_mut().find(|(other, _)| other == scopes) {
            Some((_, same)) => same.merge(waits),
            None => flows.push((*scopes, *waits)),
        }
    }
    flows
}

/// Asks the node, and waits for its answer for a while.
pub fn asked<T: Send + 'static>(question: impl FnOnce(Then<T>)) -> Option<T> {
    let (sender, answer) = channel();
    question(Box::new(move |value| {
        // Who waited too long hears nothing.
        let _ = sender.send(value);
    }));
    answer.recv_timeout(PATIENCE).ok()
}

/// Mail is the only channel there is.
fn queue(depth: &Depth) -> Vec<snapshot::Depth> {
    let states = [
        (State::Queued, depth.queued),
        (State::Sending, depth.sending),
        (State::Deferred, depth.deferred),
    ];
    let of_state = |(state, counts): (State, [u64; Class::COUNT])| {
        let counts = Class::ALL.into_iter().zip(counts);
        counts.map(move |(class, messages)| snapshot::Depth {
            channel: Channel::Email,
            class,
            state,
            messages,
        })
    };
    states.into_iter().flat_map(of_state).collect()
}

fn most_wanted_first(mut limits: Vec<LimitView>) -> Vec<LimitNow> {
    limits.sort_by_key(|limit| std::cmp::Reverse(limit.waiters.iter().sum::<u64>()));
    let limits = limits.into_iter().map(|limit| LimitNow {
        key: limit.key.to_string(),
        tokens: limit.tokens,
        rate: limit.rate,
    });
    limits.collect()
}
