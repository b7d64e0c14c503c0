//! What ends a flow, and what goes with it.
//!
//! The engine knows what it holds of a flow and what is on its way; whether
//! messages wait for their time, or are on their way to the disk, only the store
//! knows. So a flow that had nothing to do for a while is *asked* to be closed.
//! The store answers once it keeps nothing of the flow, which may be much later,
//! and never if the request is withdrawn (`OpenFlow`) before. Requests are
//! numbered: an answer to one that was withdrawn finds another number. The
//! answer is the last that the store says of the flow, so its number can be
//! given anew.
//!
//! With the flow go its places in queues and what it shared with others, if it
//! was the last: limits, budgets, its lane, its tenant. What was learnt or is
//! held stands under keys of its own and stays.

use std::sync::Arc;

use super::Engine;
use super::action::{Action, Record};
use super::budgets::FlowBudgets;
use super::counter::Counter;
use crate::handle::{FlowId, LaneId, PlaceId};
use crate::message::Seq;
use crate::name::Name;
use crate::policy::key::LimitKey;
use crate::time::Now;

/// Flows that are asked to be closed in one step.
const CLOSE_SLICE: usize = 64;

impl Counter {
    /// A record or a page on its way names a flow: it must not end.
    pub(super) fn hold_flow(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.reopen(id, &mut self.actions);
            flow.uses += 1;
        }
    }

    /// It is there. An order about a flow that had nothing to do gives it no new
    /// grace.
    pub(super) fn release_flow(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.uses = flow.uses.saturating_sub(1);
            self.flows.let_end(id);
        }
    }

    /// A limit is forgotten that a new one knows as much as; the journal need
    /// not keep it either.
    pub(super) fn forget_limit(&mut self, (key, is_written): (Arc<LimitKey>, bool)) {
        if is_written {
            self.append(Record::Forgotten { key });
        }
    }

    /// Flows that a record names as a whole. One about a single message does
    /// not count: as long as that lives, the store keeps its flow.
    pub(super) const fn flows_of(record: &Record) -> [Option<FlowId>; 2] {
        match record {
            Record::Cancelled { flow, .. } | Record::Hastened { flow, .. } => [Some(*flow), None],
            Record::Moved { flow, to, .. } => [Some(*flow), Some(*to)],
            _ => [None, None],
        }
    }
}

impl Engine {
    /// How many flows there are: those with messages, and those that had some
    /// a moment ago.
    pub fn live_flows(&self) -> usize {
        self.counter.flows.len()
    }

    /// The same, of one tenant.
    pub fn live_flows_of(&self, tenant: &Name) -> usize {
        self.tenants.flows(tenant)
    }

    /// Says which numbers of flows the store keeps something under though they
    /// have no live messages. Called once, after the flows were adopted.
    pub fn reserve_flows(&mut self, numbers: impl IntoIterator<Item = FlowId>) {
        self.counter.flows.reserve(numbers);
    }

    /// Asks for flows to be closed that had nothing to do for a while.
    pub(super) fn close_idle(&mut self) {
        for _ in 0..CLOSE_SLICE {
            let Some((flow, request)) = self.counter.flows.next_to_close() else {
                return;
            };
            let action = Action::CloseFlow { flow, request };
            self.counter.actions.push(action);
        }
    }

    /// The store keeps no messages of a flow, and nothing at all under its
    /// number if that `is_free`.
    pub(super) fn flow_closed(&mut self, now: &Now, id: FlowId, request: u32, is_free: bool) {
        match self.counter.flows.get(id) {
            // There was something to do after all, and the store was told.
            Some(flow) if flow.closing != request || request == 0 => return,
            Some(_) => self.remove_flow(now, id),
            None => {}
        }
        if is_free {
            self.counter.flows.free(id);
        }
    }

    fn remove_flow(&mut self, now: &Now, id: FlowId) {
        let Some(flow) = self.counter.flows.remove(id) else {
            return;
        };
        self.tenants.leave(&flow.key.tenant);
        let domain = &flow.key.destination.name;
        if let Some(waiting) = self.unresolved.get_mut(domain) {
            waiting.remove(&id);
            if waiting.is_empty() {
                self.unresolved.remove(domain);
            }
        }
        self.schedule.remove_flow(id);
        self.leave_shared(now, &flow.limits, flow.budgets, flow.lane);
    }

    /// A flow leaves what it shared with others.
    pub(super) fn leave_shared(
        &mut self,
        now: &Now,
        limits: &[PlaceId],
        budgets: FlowBudgets,
        lane: Option<LaneId>,
    ) {
        for &place in limits {
            self.limits.leave(place);
        }
        self.counter.budgets.leave(now.mono, budgets);
        if let Some(lane) = lane {
            self.counter.desk.leave_lane(now.mono, lane);
        }
    }

    /// Moves what is ready in a flow to the one that has the same facts. If
    /// that is gone by now, the flow takes its place.
    pub(super) fn join_twin(&mut self, now: &Now, id: FlowId) {
        let Some(flow) = self.counter.flows.get_mut(id) else {
            return;
        };
        // What is under way reaches all that the engine has heard of.
        if flow.uses > 0 {
            return;
        }
        let key = flow.key.clone();
        let first = self.counter.flows.find(&key);
        let Some(flow) = self.counter.flows.get_mut(id) else {
            return;
        };
        match first {
            Some(to) if to != id => {
                flow.in_store = 0;
                self.counter.append(Record::Moved {
                    flow: id,
                    to,
                    through: Seq(u64::MAX),
                    held: Vec::new(),
                });
            }
            _ => {
                self.counter.flows.rename(id, key);
                self.attach(now, id);
                self.offer(id);
            }
        }
    }
}
