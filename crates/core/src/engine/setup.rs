//! New flows, lanes, accounts and policies.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Engine;
use super::action::Action;
use super::flows::Flow;
use super::lessons::Lessons;
use super::recipients;
use crate::account::AccountSpec;
use crate::destination::Destination;
use crate::flow::FlowKey;
use crate::handle::{AccountId, FlowId, LaneId, PlaceId};
use crate::limit::Kind;
use crate::message::Head;
use crate::name::Name;
use crate::schedule::place::Holder;
use crate::time::Now;

impl Engine {
    /// The flow of these facts, made if need be.
    pub fn open_flow(&mut self, now: &Now, mut key: FlowKey, actions: &mut Vec<Action>) -> FlowId {
        self.counter.flows.now = now.mono;
        if !key.destination.is_resolved()
            && let Some(known) = self.resolved.find(now.mono, &key.destination.name)
        {
            key.destination = known.clone();
        }
        if let Some(id) = self.counter.flows.find(&key) {
            if let Some(flow) = self.counter.flows.get_mut(id) {
                flow.reopen(id, actions);
                self.counter.flows.rest(id);
            }
            return id;
        }
        let id = self.counter.flows.next_id();
        std::mem::swap(actions, &mut self.counter.actions);
        self.share_names(&mut key);
        let key = Arc::new(key);
        self.note_opened(&key);
        self.counter.actions.push(Action::OpenFlow {
            flow: id,
            key: Arc::clone(&key),
        });
        self.adopt(now, id, key);
        std::mem::swap(actions, &mut self.counter.actions);
        id
    }

    /// Takes over a flow that the store knew before the start.
    pub fn adopt_flow(
        &mut self,
        now: &Now,
        id: FlowId,
        key: Arc<FlowKey>,
        actions: &mut Vec<Action>,
    ) {
        self.counter.flows.now = now.mono;
        std::mem::swap(actions, &mut self.counter.actions);
        self.adopt(now, id, key);
        std::mem::swap(actions, &mut self.counter.actions);
    }

    fn adopt(&mut self, now: &Now, id: FlowId, key: Arc<FlowKey>) {
        let destination = key.destination.clone();
        self.tenants.join(&key.tenant);
        self.counter.flows.insert(id, key);
        self.review_pauses(id);
        let is_twin = |flow: &Flow| flow.is_twin;
        if self.counter.flows.get(id).is_some_and(is_twin) {
            self.join_twin(now, id);
        } else if destination.is_resolved() {
            self.attach(now, id);
        } else {
            let waiting = self.unresolved.entry(destination.name.clone()).or_default();
            if waiting.is_empty() {
                self.counter.actions.push(Action::Resolve {
                    domain: destination.name,
                });
            }
            waiting.insert(id);
        }
    }

    /// A domain's destination is known: its flows join their lanes.
    pub(super) fn resolve(&mut self, now: &Now, domain: Name, destination: Destination) {
        if !destination.is_resolved() {
            return;
        }
        let waiting = self.unresolved.remove(&domain).unwrap_or_default();
        self.resolved.note(now.mono, domain, destination.clone());
        for id in waiting {
            let Some(flow) = self.counter.flows.get(id) else {
                continue;
            };
            let mut key = (*flow.key).clone();
            key.destination = destination.clone();
            let key = Arc::new(key);
            // Receipts and lists, and the next start, know it by this.
            self.counter.actions.push(Action::OpenFlow {
                flow: id,
                key: Arc::clone(&key),
            });
            let is_first = self.counter.flows.rename(id, key);
            // What was paused by destination could not match before.
            self.review_pauses(id);
            if is_first {
                self.attach(now, id);
                self.offer(id);
            } else {
                self.join_twin(now, id);
            }
            self.counter.flows.rest(id);
        }
    }

    /// Works a flow's limits out and makes it known to the schedule.
    pub(super) fn attach(&mut self, now: &Now, id: FlowId) {
        let Some(key) = self.counter.flows.get(id).map(|flow| Arc::clone(&flow.key)) else {
            return;
        };
        let lane = self.lane_of(now, &key);
        let applied = self.counter.policies.for_flow(&key);
        let weight = self.counter.policies.weight(&key);
        let rules = self.counter.policies.for_recipient(&key);
        let limits: Box<[PlaceId]> = applied
            .iter()
            .map(|applied| {
                let maker = &mut self.counter.maker;
                self.limits.join(now, applied, &mut self.schedule, maker)
            })
            .collect();
        let mut lessons = Lessons::default();
        let learners = &self.counter.maker.learners;
        let learnt = applied.iter().filter(|applied| applied.learning.is_some());
        for id in learnt.filter_map(|applied| learners.find(&applied.key)) {
            lessons.add(id);
        }
        let desk_max = self.counter.desk.cost_max(lane);
        let largest = |place: &PlaceId| Some(self.schedule.limit(*place)?.largest_cost());
        let cost_max = limits.iter().filter_map(largest).min();
        let cost_max = cost_max
            .unwrap_or(u32::MAX)
            .min(recipients::cost_max(&rules))
            .min(desk_max);
        let is_slots = |place: &PlaceId| {
            let limit = self.schedule.limit(*place);
            limit.is_some_and(|limit| limit.shape().kind == Kind::Concurrency)
        };
        let slots = limits.iter().copied().filter(is_slots).collect();
        let gate = self.counter.desk.lane(lane).gate;
        let places: Vec<PlaceId> = limits.iter().copied().chain([gate]).collect();
        let tenant = self.tenants.id(&key.tenant);
        self.schedule
            .add_flow(id, key.class, tenant, weight, &places);
        self.counter.desk.join_lane(lane);
        let budgets = self
            .counter
            .budgets
            .join(&key.tenant, key.campaign.as_ref());
        if let Some(flow) = self.counter.flows.get_mut(id) {
            flow.lane = Some(lane);
            flow.limits = limits;
            flow.slots = slots;
            flow.budgets = budgets;
            flow.cost_max = cost_max;
            flow.lessons = lessons;
            flow.recipient_rules = (!rules.is_empty()).then(|| Arc::new(rules));
            if flow.pauses > 0 {
                self.schedule.park(id);
            }
        }
    }

    /// Works the limits of a flow out anew. The new ones are joined before the
    /// old ones are left: a limit that stays keeps its count.
    pub(super) fn reattach(&mut self, now: &Now, id: FlowId) {
        self.schedule.remove_flow(id);
        let Some(flow) = self.counter.flows.get_mut(id) else {
            return;
        };
        let (limits, budgets, lane) = (std::mem::take(&mut flow.limits), flow.budgets, flow.lane);
        self.attach(now, id);
        self.leave_shared(now, &limits, budgets, lane);
        self.refuse_oversized(now, id);
    }

    /// Heads that no longer fit what their flow must pass do not wait for it.
    fn refuse_oversized(&mut self, now: &Now, id: FlowId) {
        let Some(flow) = self.counter.flows.get_mut(id) else {
            return;
        };
        let cost_max = flow.cost_max;
        let refused = flow.heads.iter().filter(|head| head.cost > cost_max);
        let refused: Vec<Head> = refused.copied().collect();
        flow.heads.retain(|head| head.cost <= cost_max);
        for head in refused {
            self.refuse_for_good(now, id, &head);
        }
    }

    fn lane_of(&mut self, now: &Now, key: &Arc<FlowKey>) -> LaneId {
        let pool = self.counter.desk.pool_id(&key.pool);
        if let Some(lane) = self.counter.desk.find_lane(pool, key) {
            return lane;
        }
        let lane = self.counter.desk.next_lane();
        let gate = self.schedule.add_place(Holder::Gate(lane));
        let counter = &mut self.counter;
        let (policies, maker) = (&counter.policies, &mut counter.maker);
        let place = (lane, gate);
        counter
            .desk
            .add_lane(now, key, pool, place, policies, maker);
        self.pause_pairs_of(lane);
        self.recall_lane(now, lane);
        lane
    }

    pub(super) fn set_account(&mut self, now: &Now, spec: AccountSpec) {
        let counter = &mut self.counter;
        let name = spec.id.clone();
        let is_new = counter.desk.find_account(&name).is_none();
        let id = counter
            .desk
            .set_account(now, spec, &counter.policies, &mut counter.maker);
        if is_new {
            self.recall_account(now, id, &name);
        }
        self.bound_account(&name);
        self.review_account_pauses(id);
        self.review_account(id);
    }

    /// The account behind a handle, for whoever carries deliveries out.
    pub fn account(&self, id: AccountId) -> Option<&AccountSpec> {
        self.counter.desk.account(id).map(|account| &account.spec)
    }

    /// The destination of a lane, for whoever opens sessions.
    pub fn lane_destination(&self, id: LaneId) -> &Destination {
        &self.counter.desk.lane(id).destination
    }

    /// The facts of a flow.
    pub fn flow_key(&self, id: FlowId) -> Option<&Arc<FlowKey>> {
        self.counter.flows.get(id).map(|flow| &flow.key)
    }

    /// The heads that are held of each flow, in order of the flows' ids, from
    /// the one with this number on.
    pub fn heads_from(
        &self,
        start: usize,
    ) -> impl Iterator<Item = (FlowId, &Arc<FlowKey>, &VecDeque<Head>)> {
        let flows = self.counter.flows.range(start);
        flows.map(|(id, flow)| (id, &flow.key, &flow.heads))
    }
}
