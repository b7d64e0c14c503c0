//! No class and no tenant starves.
//!
//! A class with waiters gets at least 2 % of a limit's grants over a long
//! stretch. A tenant with waiters gets at least a part of its weight's share of
//! what its class gets *at the node where it waits*: nodes of a fleet do not know
//! of each other's tenants, and each shares what it is granted among its own. A
//! class gets its part of what the whole fleet grants. A flow needs several limits, and one of them may
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
use crate::trace::{Checker, FlowNo, LimitNo, NodeNo, Observer, TenantNo, Trace, Violation};

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

/// Whose grants are counted: those of one node, or of the whole fleet.
type Of = Option<NodeNo>;

/// What a limit granted, at one node or everywhere.
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

/// What all limits granted.
type AllGrants = BTreeMap<(Of, LimitNo), Grants>;

#[derive(Clone, Debug)]
struct Stretch {
    since: Nanos,
    marks: Vec<Mark>,
}

/// Flows of one class and tenant that need the same limits: at one node, whose
/// fairness to the tenant is judged, or everywhere, for the class.
#[derive(Clone, Debug)]
struct Group {
    of: Of,
    class: Class,
    tenant: TenantNo,
    limits: Vec<LimitNo>,
    waiting: u64,
    stretch: Option<Stretch>,
}

/// What flows have in common that are judged together.
type Key = (Of, Class, TenantNo, Vec<LimitNo>);

/// See the module.
#[derive(Debug)]
pub struct Starvation {
    backlog: Backlog,
    grants: AllGrants,
    weights: BTreeMap<TenantNo, u32>,
    groups: Vec<Group>,
    by_key: BTreeMap<Key, usize>,
    /// The groups of a flow's messages at a node: for the class, for the tenant.
    groups_of: BTreeMap<(FlowNo, NodeNo), [usize; 2]>,
    /// What the messages of each flow need.
    needs: BTreeMap<FlowNo, Vec<LimitNo>>,
    /// Messages of each flow that wait at a node.
    waiting: BTreeMap<(FlowNo, NodeNo), u64>,
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
            grants: AllGrants::new(),
            weights: BTreeMap::new(),
            groups: Vec::new(),
            by_key: BTreeMap::new(),
            groups_of: BTreeMap::new(),
            needs: BTreeMap::new(),
            waiting: BTreeMap::new(),
            lanes: BTreeMap::new(),
            holds: 0,
            next_look: PERIOD,
            findings: Findings::of("starvation"),
        }
    }
}

impl Starvation {
    fn open(&mut self, flow: FlowNo, limits: &[LimitNo]) {
        let limits = || limits.iter().map(|limit| of_limit(*limit)).collect();
        self.needs.entry(flow).or_insert_with(limits);
    }

    /// So many messages of a flow began to wait at a node, or ceased to.
    fn count(&mut self, flow: FlowNo, node: NodeNo, (count, began): (u64, bool)) {
        let known = self.groups_of.get(&(flow, node)).copied();
        let Some(groups) = known.or_else(|| self.find_groups(flow, node)) else {
            return;
        };
        for index in groups {
            match self.groups.get_mut(index) {
                Some(group) if began => group.waiting += count,
                Some(group) => group.leave(count),
                None => {}
            }
        }
    }

    /// The groups of a flow's messages at a node, made if there are none.
    fn find_groups(&mut self, flow: FlowNo, node: NodeNo) -> Option<[usize; 2]> {
        let known = self.backlog.flow(flow)?;
        let (class, tenant) = (known.class, known.tenant);
        let limits = self.needs.get(&flow)?;
        let groups = &mut self.groups;
        let found = [None, Some(node)].map(|of| {
            let key = (of, class, tenant, limits.clone());
            *self.by_key.entry(key).or_insert_with(|| {
                groups.push(Group {
                    of,
                    class,
                    tenant,
                    limits: limits.clone(),
                    waiting: 0,
                    stretch: None,
                });
                groups.len() - 1
            })
        });
        self.groups_of.insert((flow, node), found);
        Some(found)
    }

    /// A flow needs other limits from now on: it joins those that do.
    fn regroup(&mut self, flow: FlowNo, lane: Option<u32>, limits: &[LimitNo]) {
        if self.backlog.flow(flow).is_none() {
            return;
        }
        let at_nodes = self.waiting.range((flow, 0)..=(flow, NodeNo::MAX));
        let at_nodes: Vec<(NodeNo, u64)> = at_nodes.map(|(key, count)| (key.1, *count)).collect();
        for (node, count) in &at_nodes {
            self.count(flow, *node, (*count, false));
            self.groups_of.remove(&(flow, *node));
        }
        let limits = limits.iter().map(|limit| of_limit(*limit));
        let needs = limits.chain(lane.map(of_lane)).collect();
        self.needs.insert(flow, needs);
        self.lanes.extend(lane.map(|lane| (flow, lane)));
        for (node, count) in &at_nodes {
            self.count(flow, *node, (*count, true));
        }
    }

    fn granted(&mut self, (number, node): (FlowNo, NodeNo), limits: &[LimitNo], cost: u32) {
        let Some(flow) = self.backlog.flow(number) else {
            return;
        };
        let (class, tenant) = (flow.class, flow.tenant);
        let weight = weight_of(&self.weights, tenant);
        let lane = self.lanes.get(&number).copied().map(of_lane);
        let limits = limits.iter().map(|limit| of_limit(*limit));
        for limit in limits.chain(lane) {
            for of in [None, Some(node)] {
                let grants = self.grants.entry((of, limit)).or_default();
                grants.add((class, tenant, weight), u64::from(cost));
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
            if group.of.is_none() {
                judge_class(at, group, &now, &mut self.findings);
                continue;
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

impl Grants {
    fn add(&mut self, (class, tenant, weight): (Class, TenantNo, u64), cost: u64) {
        self.total += cost;
        if let Some(of_class) = self.by_class.get_mut(class.index()) {
            *of_class += cost;
        }
        let of_tenant = self.by_tenant.entry((class, tenant)).or_insert(0);
        if *of_tenant == 0
            && let Some(weights) = self.weights.get_mut(class.index())
        {
            *weights += weight;
        }
        *of_tenant += cost;
    }
}

fn judge_class(at: Nanos, group: &mut Group, now: &[Mark], findings: &mut Findings) {
    let stretch = group.stretch.get_or_insert_with(|| Stretch {
        since: at,
        marks: now.to_vec(),
    });
    let deltas = differences(now, &stretch.marks);
    if !deltas.iter().all(|delta| delta.total >= LONG) {
        return;
    }
    let since = stretch.since;
    group.stretch = None;
    if deltas
        .iter()
        .all(|it| it.class * 1_000 < it.total * CLASS_SHARE)
    {
        let most = deltas.iter().map(|it| (it.class, it.total)).max();
        let (got, of) = most.unwrap_or_default();
        let class = group.class;
        findings.add(at, || {
            format!("{class} got {got} of {of} grants while it waited since {since}")
        });
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
        self.stretch = None;
    }
}

fn weight_of(weights: &BTreeMap<TenantNo, u32>, tenant: TenantNo) -> u64 {
    u64::from(weights.get(&tenant).copied().unwrap_or(1))
}

/// What each limit of a group has granted so far.
fn marks(grants: &AllGrants, group: &Group) -> Vec<Mark> {
    let mark = |limit: &LimitNo| {
        let grants = grants.get(&(group.of, *limit))?;
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
    grants: &AllGrants,
    weights: &BTreeMap<TenantNo, u32>,
    findings: &mut Findings,
) {
    let stretch = group.stretch.get_or_insert_with(|| Stretch {
        since: at,
        marks: now.to_vec(),
    });
    let mine = weight_of(weights, group.tenant);
    // Tenants that were ever served count as present: that is lenient.
    let all = |limit: &LimitNo| -> u64 {
        let Some(grants) = grants.get(&(group.of, *limit)) else {
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
    group.stretch = None;
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
            Trace::Flow { flow, limits, .. } => self.open(flow, limits),
            Trace::Dispatched {
                node,
                message,
                cost,
                limits,
                ..
            } => {
                let flow = self.backlog.message(message).flow;
                self.granted((flow, node), limits, cost);
            }
            Trace::FlowChanged { flow, lane, limits } => self.regroup(flow, lane, limits),
            Trace::Operated { holds } => {
                self.holds = holds;
                self.groups.iter_mut().for_each(Group::forget);
            }
            Trace::Crashed { .. } => self.groups.iter_mut().for_each(Group::forget),
            _ => {}
        }
        for change in self.backlog.observe(at, trace).to_vec() {
            let waiting = self.waiting.entry((change.flow, change.node)).or_insert(0);
            *waiting = match change.began {
                true => *waiting + 1,
                false => waiting.saturating_sub(1),
            };
            self.count(change.flow, change.node, (1, change.began));
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
