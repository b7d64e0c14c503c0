//! Runs the schedule alone in virtual time, every flow always with work.

use std::collections::BTreeSet;

use outflow_core::class::Class;
use outflow_core::entropy::Entropy;
use outflow_core::handle::{FlowId, LaneId};
use outflow_core::limit::spec::{Headroom, LimitSpec};
use outflow_core::limit::{Fill, Limit};
use outflow_core::schedule::place::{Holder, PlaceId};
use outflow_core::schedule::{Outlet, Schedule, TenantId};
use outflow_core::time::{Mono, Nanos, Now};

use super::optimum::{Problem, max_min};
use crate::driver::at;

/// A flow that always has work.
#[derive(Clone)]
pub struct Flow {
    /// Its limits, by place in the case.
    pub limits: Vec<usize>,
    /// What each of its messages takes.
    pub cost: u32,
    /// How urgent it is.
    pub class: Class,
}

/// Something that happens in the middle of a case.
#[derive(Clone)]
pub enum Change {
    /// Nothing fits at a limit from a time for so long.
    Pause {
        limit: usize,
        at: Nanos,
        length: Nanos,
    },
    /// A limit gets new numbers at a time.
    Set {
        limit: usize,
        at: Nanos,
        spec: LimitSpec,
    },
}

/// A case: limits, flows and how long to look.
#[derive(Clone)]
pub struct Case {
    /// As in the table.
    pub name: String,
    /// The limits.
    pub limits: Vec<LimitSpec>,
    /// What is kept for critical.
    pub headroom: Headroom,
    /// The flows.
    pub flows: Vec<Flow>,
    /// How long a slot of a concurrency limit is held, give or take half.
    pub hold: Nanos,
    /// How long the case runs before it is measured.
    pub warm_up: Nanos,
    /// How long it is measured.
    pub length: Nanos,
    /// What happens meanwhile.
    pub changes: Vec<Change>,
}

/// What a case showed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// As in the table.
    pub name: String,
    /// The lowest use of a limit that the optimum fills.
    pub use_min: f64,
    /// The worst flow against its fair share.
    pub share_min: f64,
    /// Looks at a flow per send.
    pub visits: f64,
    /// All tokens against the optimum's.
    pub total: f64,
    /// The share of full limits used to at least 99 %.
    pub use_99: f64,
    /// Sends in the measured time.
    pub sends: u64,
}

struct Sink {
    costs: Vec<u32>,
    holds: Vec<Vec<PlaceId>>,
    sent: Vec<u64>,
    releases: BTreeSet<(Mono, u64, PlaceId, u32)>,
    hold: Nanos,
    random: Entropy,
    total: u64,
}

impl Outlet for Sink {
    fn gate_open(&self, _: LaneId, _: Class, _: u32) -> bool {
        true
    }

    fn prepare(&mut self, _: &Now, flow: FlowId) -> Option<u32> {
        self.costs.get(flow.index()).copied()
    }

    fn send(&mut self, now: &Now, flow: FlowId) -> Option<u32> {
        let index = flow.index();
        self.sent[index] += 1;
        self.total += 1;
        let cost = self.costs[index];
        if !self.holds[index].is_empty() {
            let held = self.random.between(self.hold.0 / 2, self.hold.0 * 3 / 2);
            for &place in &self.holds[index] {
                self.releases
                    .insert((now.mono + Nanos(held), self.total, place, cost));
            }
        }
        Some(cost)
    }
}

/// Runs one case.
pub fn run(case: &Case) -> Outcome {
    let mut schedule = Schedule::default();
    let mut now = at(Mono(0));
    let places: Vec<PlaceId> = case
        .limits
        .iter()
        .map(|spec| {
            let limit = Limit::owned(spec.clone(), case.headroom, &now, Fill::Full);
            schedule.add_place(Holder::Limit(Box::new(limit)))
        })
        .collect();
    let mut sink = Sink {
        costs: case.flows.iter().map(|flow| flow.cost).collect(),
        holds: case
            .flows
            .iter()
            .map(|flow| slots(case, flow, &places))
            .collect(),
        sent: vec![0; case.flows.len()],
        releases: BTreeSet::new(),
        hold: case.hold,
        random: Entropy(1),
        total: 0,
    };
    for (index, flow) in case.flows.iter().enumerate() {
        let id = FlowId(index as u32);
        let stops: Vec<PlaceId> = flow.limits.iter().map(|&limit| places[limit]).collect();
        schedule.add_flow(id, flow.class, TenantId(index as u32), 1, &stops);
        schedule.offer(id, flow.cost);
    }
    let mut changes = case.changes.clone();
    let mut before: Option<(Vec<u64>, u64, u64)> = None;
    let end = Mono(0) + case.warm_up + case.length;
    while now.mono < end {
        if before.is_none() && now.mono >= Mono(0) + case.warm_up {
            before = Some((sink.sent.clone(), sink.total, schedule.visits()));
        }
        while let Some(&(time, order, place, cost)) = sink.releases.first() {
            if time > now.mono {
                break;
            }
            sink.releases.remove(&(time, order, place, cost));
            if let Some(limit) = schedule.limit_mut(place) {
                limit.release(cost);
            }
            schedule.mark(place);
        }
        apply(&mut changes, &mut schedule, &places, &now);
        let mut budget = 32;
        schedule.run(&now, &mut budget, &mut sink);
        feed(&mut schedule);
        let mut next = schedule.next_wake();
        if let Some(&(time, ..)) = sink.releases.first() {
            next = next.min(time);
        }
        for change in &changes {
            let (Change::Pause { at, .. } | Change::Set { at, .. }) = change;
            next = next.min(Mono(at.0));
        }
        if next == Mono::NEVER {
            break;
        }
        now = at(next.max(now.mono));
    }
    let (sent, total, visits) = before.unwrap_or_default();
    let sends = sink.total - total;
    let measured: Vec<f64> = sink
        .sent
        .iter()
        .zip(&sent)
        .zip(&sink.costs)
        .map(|((after, before), cost)| {
            ((after - before) * u64::from(*cost)) as f64 / case.length.as_secs_f64()
        })
        .collect();
    compare(
        case,
        &measured,
        (schedule.visits() - visits) as f64 / sends.max(1) as f64,
        sends,
    )
}

fn compare(case: &Case, measured: &[f64], visits: f64, sends: u64) -> Outcome {
    let capacity: Vec<f64> = case
        .limits
        .iter()
        .map(|spec| tokens_per_second(spec, case))
        .collect();
    let flows: Vec<Vec<usize>> = case.flows.iter().map(|flow| flow.limits.clone()).collect();
    let (fair, used) = max_min(&Problem {
        capacity: &capacity,
        flows: &flows,
    });
    let mut measured_use = vec![0.0; capacity.len()];
    for (flow, limits) in flows.iter().enumerate() {
        for &limit in limits {
            measured_use[limit] += measured[flow];
        }
    }
    let full: Vec<f64> = (0..capacity.len())
        .filter(|&limit| used[limit] > 0.999 * capacity[limit])
        .map(|limit| measured_use[limit] / capacity[limit])
        .collect();
    let classes: BTreeSet<Class> = case.flows.iter().map(|flow| flow.class).collect();
    // With several classes fairness holds within a class only.
    let share_min = if classes.len() > 1 {
        1.0
    } else {
        measured
            .iter()
            .zip(&fair)
            .map(|(got, fair)| got / fair)
            .fold(f64::INFINITY, f64::min)
    };
    Outcome {
        name: case.name.clone(),
        use_min: full.iter().copied().fold(1.0, f64::min),
        share_min,
        visits,
        total: measured.iter().sum::<f64>() / fair.iter().sum::<f64>(),
        use_99: full.iter().filter(|&&used| used >= 0.99).count() as f64 / full.len().max(1) as f64,
        sends,
    }
}

fn apply(changes: &mut Vec<Change>, schedule: &mut Schedule, places: &[PlaceId], now: &Now) {
    changes.retain(|change| match change {
        Change::Pause { limit, at, length } if Mono(at.0) <= now.mono => {
            if let Some(limit) = schedule.limit_mut(places[*limit]) {
                limit.block_until(now.mono + *length);
            }
            schedule.mark(places[*limit]);
            false
        }
        Change::Set { limit, at, spec } if Mono(at.0) <= now.mono => {
            schedule.reconfigure(now, places[*limit], spec.clone());
            false
        }
        _ => true,
    });
}

/// Windows spend what a journal promised; this journal is always done at once.
fn feed(schedule: &mut Schedule) {
    while let Some(place) = schedule.take_fed() {
        let Some(limit) = schedule.limit_mut(place) else {
            continue;
        };
        if let Some(block) = limit.reservation_due() {
            limit.reserve_asked(block);
            limit.reserve_committed(block);
            schedule.mark(place);
        }
    }
}

fn slots(case: &Case, flow: &Flow, places: &[PlaceId]) -> Vec<PlaceId> {
    flow.limits
        .iter()
        .filter(|&&limit| matches!(case.limits[limit], LimitSpec::Concurrency { .. }))
        .map(|&limit| places[limit])
        .collect()
}

fn tokens_per_second(spec: &LimitSpec, case: &Case) -> f64 {
    match spec {
        LimitSpec::TokenBucket { rate, .. } | LimitSpec::LeakyBucket { rate } => {
            f64::from(rate.count) / rate.per.as_secs_f64()
        }
        LimitSpec::SlidingWindow { count, window } => f64::from(*count) / window.as_secs_f64(),
        LimitSpec::CalendarWindow { count, .. } => f64::from(*count) / 86_400.0,
        LimitSpec::Concurrency { slots } => f64::from(*slots) / case.hold.as_secs_f64(),
    }
}
