//! Flows end when nothing of them is left.
//!
//! The engine asks for it when it has nothing to do for a flow. The name goes
//! when no message lives in it or is on its way to the disk; the number can be
//! given anew when it has no dead letters either. Nothing of that is written: a
//! name without messages means nothing, and a start drops it. A number that is
//! given anew is named anew in the journal, behind all that was written of the
//! flow before, so what is replayed finds the right name.

use std::collections::BTreeMap;

use outflow_core::engine::event::Event;
use outflow_core::handle::FlowId;
use outflow_ports::store::StoreDone;

use super::{Flow, Index};
use crate::opening::Opening;

/// Slabs with less room than this keep it.
const ROOM_KEPT: usize = 1_024;

impl Index {
    /// Closes a flow as soon as nothing of it is left.
    pub fn close(&mut self, id: FlowId, request: u32) {
        match self.flow_mut(id) {
            Some(flow) => {
                flow.closing = request;
                self.look_at_end(id);
            }
            // Its name is on its way to the disk.
            None => self.unnamed.entry(id).or_default().closing = request,
        }
    }

    /// A flow is not to be closed after all.
    pub fn keep_open(&mut self, id: FlowId) {
        if let Some(unnamed) = self.unnamed.get_mut(&id) {
            unnamed.closing = 0;
        }
        if let Some(flow) = self.flow_mut(id) {
            flow.closing = 0;
            flow.is_closed = false;
        }
    }

    /// The name of a flow is durable; perhaps it was to be closed before, or
    /// messages and records are right behind it.
    pub(super) fn named(&mut self, id: FlowId) {
        if let Some(unnamed) = self.unnamed.remove(&id)
            && let Some(flow) = self.flow_mut(id)
        {
            flow.pending += unnamed.pending;
            flow.records += unnamed.records;
            flow.sweeps.add(unnamed.sweeps);
            if unnamed.closing > 0 {
                flow.closing = unnamed.closing;
            }
        }
        self.look_at_end(id);
    }

    /// Something of a flow is gone: it may have been the last.
    pub fn look_at_end(&mut self, id: FlowId) {
        if let Some(flow) = self.flow(id)
            && (flow.closing > 0 || flow.is_closed)
            && flow.is_empty()
        {
            self.ending.push(id);
        }
    }

    /// Closes flows of which nothing is left, and says so. Not those whose names
    /// are on their way to the disk.
    pub fn end_flows(&mut self, opening: &BTreeMap<FlowId, Opening>, done: &mut Vec<StoreDone>) {
        if self.ending.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.ending) {
            if opening.contains_key(&id) {
                self.ending.push(id);
                continue;
            }
            let Some(flow) = self.flow_mut(id).filter(|flow| flow.is_empty()) else {
                continue;
            };
            let (request, is_free) = (std::mem::take(&mut flow.closing), flow.dead == 0);
            if request == 0 && !(flow.is_closed && is_free) {
                continue;
            }
            flow.is_closed = true;
            if is_free && let Some(place) = self.flows.get_mut(id.index()) {
                *place = None;
            }
            done.push(StoreDone::Event(Event::FlowClosed {
                flow: id,
                request,
                is_free,
            }));
        }
        self.cut_flows();
    }

    /// Whether flows may be at their end that were not looked at.
    pub fn has_ending(&self, opening: &BTreeMap<FlowId, Opening>) -> bool {
        let mut ending = self.ending.iter();
        ending.any(|id| !opening.contains_key(id))
    }

    /// After a start: names that mean nothing are dropped.
    pub fn drop_empty(&mut self) {
        for place in &mut self.flows {
            place.take_if(|flow: &mut Flow| flow.live + flow.dead == 0);
        }
        self.cut_flows();
    }

    fn cut_flows(&mut self) {
        while self.flows.pop_if(|last| last.is_none()).is_some() {}
        if self.flows.capacity() > ROOM_KEPT.max(4 * self.flows.len()) {
            self.flows.shrink_to(ROOM_KEPT.max(2 * self.flows.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outflow_core::destination::Destination;
    use outflow_core::flow::FlowKey;

    use super::*;
    use crate::journal::place::Place;
    use crate::settings::Settings;

    const FLOW: FlowId = FlowId(0);

    /// The name becomes durable in one commit, the message in the next: in
    /// between nothing lives in the flow, and yet it must not end.
    #[test]
    fn a_message_right_behind_the_name_of_its_flow_keeps_it() {
        let mut index = Index::new(&Settings::default());
        let mut done = Vec::new();
        index.expect_message(FLOW);
        index.close(FLOW, 1);
        index.open(
            FLOW,
            Arc::new(FlowKey::to(Destination::isp("google"))),
            Place::NONE,
        );
        index.end_flows(&BTreeMap::new(), &mut done);
        assert_eq!(done.len(), 0);
        assert!(index.flow(FLOW).is_some_and(Flow::is_used));
    }
}
