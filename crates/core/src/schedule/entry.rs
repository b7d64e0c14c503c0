//! A flow as the schedule sees it: its stops and where it stands.

use super::node::NodeId;
use super::place::{PlaceId, Ticket};
use crate::class::Class;
use crate::handle::FlowId;
use crate::time::Mono;

/// A place that a flow must pass, and its tenant's node there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub place: PlaceId,
    pub node: NodeId,
}

/// Where a flow stands. It is in one place at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing to send, or paused.
    Idle,
    /// In the list of flows to be placed.
    Arriving,
    /// In the queue of one place: its bottleneck.
    Waiting { stop: u8 },
    /// Had its turn there and collects what it still lacks.
    Booked { ticket: Ticket, stop: Option<u8> },
}

/// A flow's standing, cost and stops.
#[derive(Debug)]
pub(super) struct Entry {
    pub class: Class,
    /// What its first message takes.
    pub cost: u32,
    pub standing: Standing,
    /// Whether it had nothing to send before: then it may not use the past.
    pub fresh: bool,
    /// Whether its turn came from the share kept for lower classes.
    pub by_credit: bool,
    /// When it last took what it paid for such a turn to another place, and how
    /// often at that instant.
    pub carried: (Mono, u8),
    /// Whether what it paid stands where it stands.
    pub brought: bool,
    /// Whether it must not be placed for now.
    pub parked: bool,
    /// Whether its cost is in `soft` of its places.
    pub soft: bool,
    /// Stops at which it holds tokens, by bit.
    pub claims: u16,
    /// How often it was sent on to another place since its last send.
    pub hops: u8,
    /// Since when it waits where it stands.
    pub since: Mono,
    pub stops: Box<[Stop]>,
    /// Neighbours in its node's queue.
    pub previous: Option<FlowId>,
    pub next: Option<FlowId>,
}

impl Entry {
    pub fn stop(&self, index: u8) -> Stop {
        *self
            .stops
            .get(usize::from(index))
            .expect("a stop of this flow")
    }

    pub fn holds(&self, index: u8) -> bool {
        self.claims & (1 << index) != 0
    }

    pub fn stop_indices(&self) -> std::ops::Range<u8> {
        0..u8::try_from(self.stops.len()).expect("a flow has few stops")
    }
}
