//! A tenant's standing at one place: start-time fair queueing.
//!
//! Every place keeps one node per class and tenant. A node's finish tag `F`
//! grows by cost / weight with each send of that tenant that needs the place,
//! whether it waited here or elsewhere; the place's virtual time `v` follows
//! the tags it serves. The least tag goes next, so tenants share a full limit
//! by weight, however many flows or messages each of them has waiting.

use std::collections::BTreeMap;

use super::place::PlaceId;
use crate::class::Class;
use crate::free_numbers::FreeNumbers;
use crate::handle::FlowId;

/// Tags count in this fraction of a token, so that weights divide finely.
pub(super) const TAG_UNIT: u64 = 1 << 16;

/// A tenant, as a number that the engine gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TenantId(pub u32);

/// A node's place in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(pub u32);

/// One tenant of one class at one place.
#[derive(Debug)]
pub(super) struct Node {
    pub place: PlaceId,
    pub class: Class,
    pub tenant: TenantId,
    pub weight: u32,
    /// `F`: where this tenant's last charge ended.
    pub finish: u64,
    /// The key under which it stands in the queue, if any flow waits here.
    pub queued_at: Option<(u64, u64)>,
    /// The flows of this tenant that wait here, first come first served.
    pub first: Option<FlowId>,
    pub last: Option<FlowId>,
    /// How many wait.
    pub waiting: u32,
    /// How many flows could wait here.
    users: u32,
}

impl Node {
    /// What a cost adds to the finish tag.
    pub fn charge_of(&self, cost: u32) -> u64 {
        u64::from(cost) * TAG_UNIT / u64::from(self.weight.max(1))
    }

    /// The start tag of the next charge: at least `virtual_time` less `grace`.
    pub fn start(&self, virtual_time: u64, grace: u64) -> u64 {
        self.finish.max(virtual_time.saturating_sub(grace))
    }
}

/// All nodes, found by place, class and tenant when a flow is made.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    slab: Vec<Node>,
    free: FreeNumbers,
    by_key: BTreeMap<(PlaceId, Class, TenantId), NodeId>,
}

impl Nodes {
    pub fn get(&self, id: NodeId) -> &Node {
        self.slab
            .get(id.0 as usize)
            .expect("a node outlives the flows that use it")
    }

    pub fn get_mut(&mut self, id: NodeId) -> &mut Node {
        self.slab
            .get_mut(id.0 as usize)
            .expect("a node outlives the flows that use it")
    }

    /// The node of a tenant at a place, made if need be; and the weight it had
    /// so far, if flows wait there under that.
    pub fn join(
        &mut self,
        place: PlaceId,
        class: Class,
        tenant: TenantId,
        weight: u32,
    ) -> (NodeId, Option<u32>) {
        if let Some(&id) = self.by_key.get(&(place, class, tenant)) {
            let node = self.get_mut(id);
            node.users += 1;
            let before = std::mem::replace(&mut node.weight, weight);
            let queued_with = (node.waiting > 0).then_some(before);
            return (id, queued_with);
        }
        let node = Node {
            place,
            class,
            tenant,
            weight,
            finish: 0,
            queued_at: None,
            first: None,
            last: None,
            waiting: 0,
            users: 1,
        };
        let id = match self.free.take(self.slab.len()).map(NodeId) {
            Some(id) => {
                *self.get_mut(id) = node;
                id
            }
            None => {
                let id = NodeId(u32::try_from(self.slab.len()).expect("fewer than 2^32 nodes"));
                self.slab.push(node);
                id
            }
        };
        self.by_key.insert((place, class, tenant), id);
        (id, None)
    }

    /// One flow less uses the node; the last one takes it along.
    pub fn leave(&mut self, id: NodeId) {
        let node = self.get_mut(id);
        node.users -= 1;
        if node.users == 0 {
            let key = (node.place, node.class, node.tenant);
            self.by_key.remove(&key);
            self.free.give(id.0);
            FreeNumbers::cut(&mut self.slab, 0, |node| node.users == 0);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        self.by_key.values().map(|&id| self.get(id))
    }
}
