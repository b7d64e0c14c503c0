//! No class and no tenant starves.
//!
//! A class with waiters gets at least 2 % of a limit's grants over a long
//! stretch. A tenant with waiters gets at least a part of its weight's share of
//! what its class gets. A flow needs several limits, and one of them may
//! rightly hold it; so a group of flows that need the same limits starves only
//! if *each* of those limits was busy and none gave it its share. Where pools or
//! tenants have accounts of their own, sessions hold a flow as limits do: then
//! its lane counts as one of its limits. Nothing is judged while an operator
//! holds something.

use std::collections::BTreeMap;

use outflow_core::class::Class;
use outflow_core::time::Nanos;

use super::Findings;
use crate::backlog::Backlog;
use crate::trace::{Checker, FlowNo, LimitNo, Observer, TenantNo, Trace, Violation};

/// Grants of a limit that make a stretch long enough to judge classes.
const LONG: u64 = 2_000;
/// What a class with waiters must get, in thousandths: 2 %, less what the ends
/// of a stretch may cost.
const CLASS_SHARE: u64 = 18;
/// Grants that a tenant should have got before its share is judged.
const FAIR: u64 = 100;
/// What it must have got of them, in thousandths.
const TENANT_SHARE: u64 = 400;
/// How often groups are looked at.
const PERIOD: Nanos = Nanos::from_secs(1);

/// What a limit granted.
#[derive(Clone, Debug, Default)]
struct Grants {
    total: u64,
    by_class: [u64; Class::COUNT],
    by_tenant: BTreeMap<(Class, TenantNo), u64>,
    /// The weights of all tenants that were ever served, by class.
    weights: [u64; Class::COUNT],
}

/// What a limit had granted when a stretch began.
#[derive(Clone, Copy, Debug)]
struct Mark {
    total: u64,
    class: u64,
    tenant: u64,
}

#[derive(Clone, Debug)]
struct Stretch {
    since: Nanos,
    marks: Vec<Mark>,
}

/// Flows of one class and tenant that need the same limits.
#[derive(Clone, Debug)]
struct Group {
    class: Class,
    tenant: TenantNo,
    limits: Vec<LimitNo>,
    waiting: u64,
    for_class: Option<Stretch>,
    for_tenant: Option<Stretch>,
}

/// See the module.
#[derive(Debug)]
pub struct Starvation {
    backlog: Backlog,
    grants: Vec<Grants>,
    weights: BTreeMap<TenantNo, u32>,
    groups: Vec<Group>,
    by_key: BTreeMap<(Class, TenantNo, Vec<LimitNo>), usize>,
    group_of: BTreeMap<FlowNo, usize>,
    /// Messages of each flow that wait.
    waiting: BTreeMap<FlowNo, u64>,
    lanes: BTreeMap<FlowNo, u32>,
    /// Pauses in force and accounts taken out.
    holds: u32,
    next_look: Nanos,
    findings: Findings,
}

impl Default for Starvation {
    fn default() -> Self {
        Self {
            backlog: Backlog::default(),
            grants: Vec::new(),
            weights: BTreeMap::new(),
            groups: Vec::new(),
            by_key: BTreeMap::new(),
            group_of: BTreeMap::new(),
            waiting: BTreeMap::new(),
            lanes: BTreeMap::new(),
            holds: 0,
            next_look: PERIOD,
            findings: Findings::of("starvation"),
        }
    }
}

impl Starvation {
    fn open(&mut self, flow: FlowNo, class: Class, tenant: TenantNo, limits: &[LimitNo]) {
        if self.group_of.contains_key(&flow) {
            return;
        }
        let limits: Vec<LimitNo> = limits.iter().map(|limit| of_limit(*limit)).collect();
        self.join(flow, class, tenant, limits);
    }

    fn join(&mut self, flow: FlowNo, class: Class, tenant: TenantNo, limits: Vec<LimitNo>) {
        let groups = &mut self.groups;
        let index = *self
            .by_key
            .entry((class, tenant, limits.clone()))
            .or_insert_with(|| {
                groups.push(Group {
                    class,
                    tenant,
                    limits,
                    waiting: 0,
                    for_class: None,
                    for_tenant: None,
                });
                groups.len() - 1
            });
        self.group_of.insert(flow, index);
    }

    /// A flow needs other limits from now on: it joins those that do.
    fn regroup(&mut self, flow: FlowNo, lane: Option<u32>, limits: &[LimitNo]) {
        let Some((class, tenant)) = self.backlog.flow(flow).map(|it| (it.class, it.tenant)) else {
            return;
        };
        let waiting = self.waiting.get(&flow).copied().unwrap_or(0);
        let old = self.group_of.get(&flow).copied();
        if let Some(group) = old.and_then(|index| self.groups.get_mut(index)) {
            group.leave(waiting);
        }
        let limits = limits.iter().map(|limit| of_limit(*limit));
        self.join(
            flow,
            class,
            tenant,
            limits.chain(lane.map(of_lane)).collect(),
        );
        self.lanes.extend(lane.map(|lane| (flow, lane)));
        let new = self.group_of.get(&flow).copied();
        if let Some(group) = new.and_then(|index| self.groups.get_mut(index)) {
            group.waiting += waiting;
        }
    }

    fn granted(&mut self, number: FlowNo, limits: &[LimitNo], cost: u32) {
        let Some(flow) = self.backlog.flow(number) else {
            return;
        };
        let (class, tenant) = (flow.class, flow.tenant);
        let weight = weight_of(&self.weights, tenant);
        let lane = self.lanes.get(&number).copied().map(of_lane);
        let limits = limits.iter().map(|limit| of_limit(*limit));
        for limit in limits.chain(lane) {
            let index = limit as usize;
            if self.grants.len() <= index {
                self.grants.resize(index + 1, Grants::default());
            }
            if let Some(grants) = self.grants.get_mut(index) {
                grants.total += u64::from(cost);
                if let Some(of_class) = grants.by_class.get_mut(class.index()) {
                    *of_class += u64::from(cost);
                }
                let of_tenant = grants.by_tenant.entry((class, tenant)).or_insert(0);
                if *of_tenant == 0
                    && let Some(weights) = grants.weights.get_mut(class.index())
                {
                    *weights += weight;
                }
                *of_tenant += u64::from(cost);
            }
        }
    }

    fn look(&mut self, at: Nanos) {
        self.next_look = at + PERIOD;
        if self.holds > 0 {
            return;
        }
        for group in &mut self.groups {
            if group.waiting == 0 || group.limits.is_empty() {
                continue;
            }
            let now = marks(&self.grants, group);
            let stretch = group.for_class.get_or_insert_with(|| Stretch {
                since: at,
                marks: now.clone(),
            });
            let deltas = differences(&now, &stretch.marks);
            if deltas.iter().all(|delta| delta.total >= LONG) {
                let since = stretch.since;
                group.for_class = None;
                if deltas
                    .iter()
                    .all(|it| it.class * 1_000 < it.total * CLASS_SHARE)
                {
                    let most = deltas.iter().map(|it| (it.class, it.total)).max();
                    let (got, of) = most.unwrap_or_default();
                    let class = group.class;
                    self.findings.add(at, || {
                        format!("{class} got {got} of {of} grants while it waited since {since}")
                    });
                }
            }
            judge_tenant(
                at,
                group,
                &now,
                &self.grants,
                &self.weights,
                &mut self.findings,
            );
        }
    }
}

/// Limits and lanes are counted side by side: limits under even numbers.
const fn of_limit(limit: LimitNo) -> LimitNo {
    limit * 2
}

/// See [`of_limit`].
const fn of_lane(lane: u32) -> LimitNo {
    lane * 2 + 1
}

impl Group {
    /// So many messages of it wait no longer.
    fn leave(&mut self, count: u64) {
        self.waiting = self.waiting.saturating_sub(count);
        if self.waiting == 0 {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.for_class = None;
        self.for_tenant = None;
    }
}

fn weight_of(weights: &BTreeMap<TenantNo, u32>, tenant: TenantNo) -> u64 {
    u64::from(weights.get(&tenant).copied().unwrap_or(1))
}

/// What each limit of a group has granted so far.
fn marks(grants: &[Grants], group: &Group) -> Vec<Mark> {
    let mark = |limit: &LimitNo| {
        let grants = grants.get(*limit as usize)?;
        Some(Mark {
            total: grants.total,
            class: grants.by_class.get(group.class.index()).copied()?,
            tenant: grants
                .by_tenant
                .get(&(group.class, group.tenant))
                .copied()
                .unwrap_or(0),
        })
    };
    let none = Mark {
        total: 0,
        class: 0,
        tenant: 0,
    };
    let limits = group.limits.iter();
    limits.map(|limit| mark(limit).unwrap_or(none)).collect()
}

fn differences(now: &[Mark], then: &[Mark]) -> Vec<Mark> {
    now.iter()
        .zip(then)
        .map(|(now, then)| Mark {
            total: now.total - then.total,
            class: now.class - then.class,
            tenant: now.tenant - then.tenant,
        })
        .collect()
}

fn judge_tenant(
    at: Nanos,
    group: &mut Group,
    now: &[Mark],
    grants: &[Grants],
    weights: &BTreeMap<TenantNo, u32>,
    findings: &mut Findings,
) {
    let stretch = group.for_tenant.get_or_insert_with(|| Stretch {
        since: at,
        marks: now.to_vec(),
    });
    let mine = weight_of(weights, group.tenant);
    // Tenants that were ever served count as present: that is lenient.
    let all = |limit: &LimitNo| -> u64 {
        let Some(grants) = grants.get(*limit as usize) else {
            return mine;
        };
        let served = grants.by_tenant.contains_key(&(group.class, group.tenant));
        let weights = grants.weights.get(group.class.index()).copied();
        weights.unwrap_or(0) + if served { 0 } else { mine }
    };
    let deltas = differences(now, &stretch.marks);
    let shares: Vec<(u64, u64)> = group
        .limits
        .iter()
        .zip(&deltas)
        .map(|(limit, delta)| (delta.tenant, delta.class * mine / all(limit).max(1)))
        .collect();
    if !shares.iter().all(|(_, fair)| *fair >= FAIR) {
        return;
    }
    let since = stretch.since;
    group.for_tenant = None;
    if shares
        .iter()
        .all(|(got, fair)| got * 1_000 < fair * TENANT_SHARE)
    {
        let (tenant, class) = (group.tenant, group.class);
        let (got, fair) = shares.iter().copied().max().unwrap_or_default();
        findings.add(at, || {
            format!("tenant {tenant} got {got} of its {fair} grants of {class} since {since}")
        });
    }
}

impl Observer for Starvation {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        if at >= self.next_look {
            self.look(at);
        }
        match *trace {
            Trace::Tenant { tenant, weight, .. } => {
                self.weights.insert(tenant, weight);
            }
            Trace::Flow {
                flow,
                class,
                tenant,
                limits,
            } => self.open(flow, class, tenant, limits),
            Trace::Dispatched {
                message,
                cost,
                limits,
                ..
            } => {
                let flow = self.backlog.message(message).flow;
                self.granted(flow, limits, cost);
            }
            Trace::FlowChanged { flow, lane, limits } => self.regroup(flow, lane, limits),
            Trace::Operated { holds } => {
                self.holds = holds;
                self.groups.iter_mut().for_each(Group::forget);
            }
            Trace::Crashed { .. } => self.groups.iter_mut().for_each(Group::forget),
            _ => {}
        }
        for change in self.backlog.observe(at, trace) {
            let waiting = self.waiting.entry(change.flow).or_insert(0);
            let group = self.group_of.get(&change.flow);
            let Some(group) = group.and_then(|index| self.groups.get_mut(*index)) else {
                continue;
            };
            if change.began {
                *waiting += 1;
                group.waiting += 1;
            } else {
                *waiting = waiting.saturating_sub(1);
                group.leave(1);
            }
        }
    }
}

impl Checker for Starvation {
    fn name(&self) -> &'static str {
        "starvation"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests;
