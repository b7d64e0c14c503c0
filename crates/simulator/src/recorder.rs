//! Counts a run while it goes on.

use std::collections::BTreeMap;

use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_core::time::Nanos;

use crate::backlog::Backlog;
use crate::connections::ConnectionRecorder;
use crate::in_flight::InFlight;
use crate::pressure::PressureRecorder;
use crate::series::Series;
use crate::summary::{Answers, LimitUse, Summary};
use crate::tally::{Fixed, Tally};
use crate::trace::{Answered, FlowNo, LimitNo, MessageNo, Observer, TenantNo, Trace, TraceHash};
use crate::utilisation::Usage;

/// Counts a run while it goes on.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    hash: TraceHash,
    backlog: Backlog,
    in_flight: InFlight,
    all: Tally,
    classes: [Tally; Class::COUNT],
    tenants: BTreeMap<TenantNo, (Name, Tally)>,
    limits: Vec<Option<Usage>>,
    taken: Vec<bool>,
    waiting: [u64; Class::COUNT],
    answers: Answers,
    finished: Nanos,
    series: Series,
    pressure: PressureRecorder,
    connections: ConnectionRecorder,
}

impl Recorder {
    /// The run of scenario `name` with `seed` is over.
    pub fn finish(mut self, name: &str, seed: u64, at: Nanos) -> Summary {
        self.series.finish(at);
        let limits = self.limits.into_iter().flatten();
        let limits = limits.map(|usage| {
            let figures = LimitUse {
                granted: usage.granted,
                utilisation: usage.share_ppm(at).map(|ppm| Fixed(ppm / 1_000)),
                rates: usage.rates,
            };
            (usage.key.as_str().to_owned(), figures)
        });
        let classes = Class::ALL.iter().zip(&self.classes);
        Summary {
            scenario: name.to_owned(),
            seed,
            trace: format!("{:016x}", self.hash.value()),
            events: self.hash.count(),
            ended_s: Fixed::secs(at),
            finished_s: Fixed::secs(self.finished),
            all: self.all.figures(),
            answers: self.answers,
            classes: classes
                .map(|(class, tally)| (class.as_str().to_owned(), tally.figures()))
                .filter(|(_, figures)| figures.accepted > 0)
                .collect(),
            tenants: self
                .tenants
                .into_values()
                .map(|(name, tally)| (name.as_str().to_owned(), tally.figures()))
                .collect(),
            limits: limits.collect(),
            pressure: self.pressure.finish(),
            connections: self.connections.finish(),
            series: self.series,
        }
    }

    /// Everything that counts a message of this flow.
    fn tallies(&mut self, flow: FlowNo, mut count: impl FnMut(&mut Tally)) {
        count(&mut self.all);
        let Some(flow) = self.backlog.flow(flow) else {
            return;
        };
        if let Some(tally) = self.classes.get_mut(flow.class.index()) {
            count(tally);
        }
        if let Some((_, tally)) = self.tenants.get_mut(&flow.tenant) {
            count(tally);
        }
    }

    fn limit(&mut self, limit: LimitNo) -> Option<&mut Usage> {
        self.limits.get_mut(limit as usize)?.as_mut()
    }

    fn took(&mut self, message: MessageNo) {
        let index = message as usize;
        if self.taken.len() <= index {
            self.taken.resize(index + 1, false);
        }
        if let Some(taken) = self.taken.get_mut(index) {
            self.answers.duplicates += u64::from(*taken);
            *taken = true;
        }
    }

    fn declare(&mut self, limit: LimitNo, usage: Usage) {
        let index = limit as usize;
        if self.limits.len() <= index {
            self.limits.resize(index + 1, None);
        }
        if let Some(slot) = self.limits.get_mut(index) {
            *slot = Some(usage);
        }
    }

    fn release(&mut self, at: Nanos, held: Vec<(LimitNo, u32)>) {
        for (limit, cost) in held {
            if let Some(usage) = self.limit(limit) {
                usage.release(at, cost);
            }
        }
    }

    fn dispatched(&mut self, at: Nanos, message: MessageNo, cost: u32, limits: &[LimitNo]) {
        let entry = self.backlog.message(message);
        let wait = (entry.dispatches == 0).then(|| at.minus(entry.since));
        self.answers.retries += u64::from(entry.dispatches > 0);
        self.tallies(entry.flow, |tally| tally.dispatched(wait));
        self.series.sent(at);
        for limit in limits {
            if let Some(usage) = self.limit(*limit) {
                usage.grant(at, cost);
            }
        }
    }

    fn answered(&mut self, answer: Answered) {
        let count = match answer {
            Answered::Accepted => return,
            Answered::Throttled => &mut self.answers.throttled,
            Answered::Deferred => &mut self.answers.deferred,
            Answered::Refused => &mut self.answers.refused,
            Answered::Failed => &mut self.answers.failed,
            Answered::Uncertain => &mut self.answers.uncertain,
        };
        *count += 1;
    }

    /// Follows depth and demand.
    fn follow(&mut self, at: Nanos, trace: &Trace<'_>) {
        // Taken out and put back, because both sides are fields of one thing.
        let mut backlog = std::mem::take(&mut self.backlog);
        let changes = backlog.observe(at, trace).to_vec();
        for change in changes {
            let Some(flow) = backlog.flow(change.flow) else {
                continue;
            };
            if let Some(waiting) = self.waiting.get_mut(flow.class.index()) {
                *waiting = match change.began {
                    true => *waiting + 1,
                    false => waiting.saturating_sub(1),
                };
                self.series.depth(change.at, flow.class, *waiting);
            }
            for limit in &flow.limits {
                if let Some(Some(usage)) = self.limits.get_mut(*limit as usize) {
                    usage.demand(change.at, change.began);
                }
            }
        }
        self.backlog = backlog;
    }
}

impl Observer for Recorder {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        self.hash.observe(at, trace);
        self.pressure.observe(at, trace);
        self.connections.observe(at, trace);
        match *trace {
            Trace::Tenant { tenant, name, .. } => {
                self.tenants
                    .insert(tenant, (name.clone(), Tally::default()));
            }
            Trace::Limit {
                limit, key, spec, ..
            } => self.declare(limit, Usage::new(at, key.clone(), spec.clone())),
            Trace::LimitChanged { limit, spec, .. } => {
                if let Some(usage) = self.limit(limit) {
                    usage.change(at, spec.clone());
                }
            }
            Trace::Accepted { flow, .. } => {
                self.tallies(flow, Tally::accepted);
                self.series.offered(at);
            }
            Trace::Dispatched {
                node,
                message,
                attempt,
                cost,
                limits,
                ..
            } => {
                self.dispatched(at, message, cost, limits);
                let usages = &self.limits;
                let held = limits.iter().copied().filter(|limit| {
                    let usage = usages.get(*limit as usize).and_then(Option::as_ref);
                    usage.is_some_and(Usage::is_concurrency)
                });
                self.in_flight.sent(node, message, attempt, cost, held);
            }
            Trace::Replied {
                node,
                message,
                attempt,
                answer,
            } => {
                self.answered(answer);
                let held = self.in_flight.over(node, message, attempt);
                self.release(at, held);
            }
            Trace::Taken { message, .. } => self.took(message),
            Trace::Settled { message, state } => {
                self.finished = at;
                let flow = self.backlog.message(message).flow;
                self.tallies(flow, |tally| tally.settled(state));
            }
            Trace::LateBounce { .. } => self.answers.late_bounces += 1,
            Trace::Crashed { node } => {
                self.answers.crashes += 1;
                let held = self.in_flight.crashed(node);
                self.release(at, held);
            }
            _ => {}
        }
        self.follow(at, trace);
    }
}
