//! Waiting at a place: nodes in tag order, flows of a node in order of arrival.

use super::Schedule;
use super::entry::Standing;
use super::node::NodeId;
use super::place::PlaceId;
use crate::class::Class;
use crate::handle::FlowId;
use crate::time::Mono;

impl Schedule {
    /// Puts a flow at the end of its tenant's queue at one of its stops.
    pub(super) fn enter_queue(&mut self, now: Mono, flow: FlowId, stop_index: u8) {
        let entry = self.entry_mut(flow);
        entry.standing = Standing::Waiting { stop: stop_index };
        entry.brought = false;
        let stop = entry.stop(stop_index);
        let (fresh, class, cost) = (entry.fresh, entry.class, entry.cost);
        let node = self.nodes.get_mut(stop.node);
        let last = node.last.replace(flow);
        node.waiting += 1;
        if last.is_none() {
            node.first = Some(flow);
        }
        let entry = self.entry_mut(flow);
        entry.previous = last;
        entry.next = None;
        if let Some(last) = last {
            self.entry_mut(last).next = Some(flow);
        } else {
            let weight = u64::from(self.nodes.get(stop.node).weight);
            let place = self.place_mut(stop.place);
            place.cost_max = place.cost_max.max(cost);
            place.class_mut(class).weight += weight;
            self.arrivals += 1;
            let tag = self.start_tag(stop.place, class, stop.node, fresh);
            self.insert_node(stop.node, (tag, self.arrivals));
        }
        self.begin_wait(now, flow, stop.place);
        let place = self.place_mut(stop.place);
        place.waiting += 1;
        let queue = place.class_mut(class);
        queue.standing += 1;
        queue.came += 1;
        self.note_gate(stop.place);
        self.mark(stop.place);
    }

    /// Takes a flow out of the queue it waits in.
    pub(super) fn leave_queue(&mut self, flow: FlowId) {
        let entry = self.entry_mut(flow);
        let Standing::Waiting { stop } = entry.standing else {
            return;
        };
        entry.standing = Standing::Idle;
        let (class, stop) = (entry.class, entry.stop(stop));
        let (previous, next) = (entry.previous.take(), entry.next.take());
        match previous {
            Some(previous) => self.entry_mut(previous).next = next,
            None => self.nodes.get_mut(stop.node).first = next,
        }
        match next {
            Some(next) => self.entry_mut(next).previous = previous,
            None => self.nodes.get_mut(stop.node).last = previous,
        }
        let node = self.nodes.get_mut(stop.node);
        node.waiting -= 1;
        if node.waiting == 0 {
            let weight = u64::from(node.weight);
            self.remove_node(stop.node);
            self.place_mut(stop.place).class_mut(class).weight -= weight;
        }
        let place = self.place_mut(stop.place);
        place.waiting -= 1;
        place.class_mut(class).standing -= 1;
        self.note_gate(stop.place);
        self.mark(stop.place);
    }

    /// The flow that has waited longest of the tenant whose turn it is.
    pub(super) fn first_waiter(&self, place: PlaceId, class: Class) -> Option<(NodeId, FlowId)> {
        let &(_, _, node) = self.place(place).class(class).nodes.first()?;
        Some((node, self.nodes.get(node).first?))
    }

    /// Where the next charge of this node would start.
    pub(super) fn start_tag(&self, place: PlaceId, class: Class, node: NodeId, fresh: bool) -> u64 {
        let place = self.place(place);
        let node = self.nodes.get(node);
        // A flow that goes on may catch up one turn that it lost to waiting
        // elsewhere; one that was empty may not.
        let grace = if fresh {
            0
        } else {
            node.charge_of(place.cost_max)
        };
        node.start(place.class(class).virtual_time, grace)
    }

    /// Charges a flow's cost at all its stops, whichever it waited at.
    pub(super) fn charge(&mut self, flow: FlowId) {
        let entry = self.entry_mut(flow);
        let (class, cost, fresh) = (entry.class, entry.cost, entry.fresh);
        let stops = std::mem::take(&mut entry.stops);
        for stop in &stops {
            let start = self.start_tag(stop.place, class, stop.node, fresh);
            let node = self.nodes.get_mut(stop.node);
            node.finish = start + node.charge_of(cost);
            let queued = node.queued_at;
            let queue = self.place_mut(stop.place).class_mut(class);
            // Without this, flows that had used an idle limit would get
            // nothing for a while once it fills.
            if queue.nodes.is_empty() {
                queue.virtual_time = queue.virtual_time.max(start);
            }
            self.requeue(stop.node, queued);
        }
        self.entry_mut(flow).stops = stops;
    }

    /// Takes a charge back: the flow gave up its booking.
    pub(super) fn refund(&mut self, flow: FlowId) {
        let entry = self.entry(flow);
        let cost = entry.cost;
        for index in entry.stop_indices() {
            let stop = self.entry(flow).stop(index);
            let node = self.nodes.get_mut(stop.node);
            node.finish = node.finish.saturating_sub(node.charge_of(cost));
            let queued = node.queued_at;
            self.requeue(stop.node, queued);
        }
    }

    /// Moves a node to where its tag belongs after a charge or refund.
    fn requeue(&mut self, node: NodeId, queued: Option<(u64, u64)>) {
        if let Some((old, arrival)) = queued {
            let (place, class) = {
                let node = self.nodes.get(node);
                (node.place, node.class)
            };
            let tag = self.start_tag(place, class, node, false);
            if tag != old {
                self.remove_node(node);
                self.insert_node(node, (tag, arrival));
                self.mark(place);
                // Another cost may be first now, and ask for another account.
                if self.place(place).cost_max > 1 {
                    self.note_gate(place);
                }
            }
        }
    }

    fn insert_node(&mut self, id: NodeId, key: (u64, u64)) {
        let node = self.nodes.get_mut(id);
        node.queued_at = Some(key);
        let (place, class) = (node.place, node.class);
        self.place_mut(place)
            .class_mut(class)
            .nodes
            .insert((key.0, key.1, id));
    }

    fn remove_node(&mut self, id: NodeId) {
        let node = self.nodes.get_mut(id);
        if let Some((tag, arrival)) = node.queued_at.take() {
            let (place, class) = (node.place, node.class);
            self.place_mut(place)
                .class_mut(class)
                .nodes
                .remove(&(tag, arrival, id));
        }
    }

    /// Moves virtual time on to the tag that is served now.
    pub(super) fn advance(&mut self, place: PlaceId, class: Class, tag: u64) {
        let queue = self.place_mut(place).class_mut(class);
        queue.virtual_time = queue.virtual_time.max(tag);
    }

    /// Remembers that the pool must hear of a gate's waiters.
    pub(super) fn note_gate(&mut self, id: PlaceId) {
        let place = self.place_mut(id);
        if place.is_gate() && !place.gate_changed {
            place.gate_changed = true;
            self.changed_gates.push(id);
        }
    }
}
