//! Which of a flow's places will take longest.
//!
//! The estimates need not be exact: a wrong one costs a hop, never a limit.

use super::Schedule;
use super::entry::{Entry, Stop};
use super::node::TAG_UNIT;
use super::place::{Ask, PlaceId};
use crate::class::Class;
use crate::limit::Until;
use crate::limit::need::Need;
use crate::time::{Nanos, Now};

impl Schedule {
    /// How long until the queue at this stop would reach a flow that joins now.
    pub(super) fn queue_wait(&self, entry: &Entry, stop: Stop) -> Nanos {
        let place = self.place(stop.place);
        let queue = place.class(entry.class);
        let node = self.nodes.get(stop.node);
        let mine = u64::from(node.weight);
        let weights = if node.waiting > 0 {
            queue.weight
        } else {
            queue.weight + mine
        };
        // The flows of the same tenant before it each take a turn first.
        let turns = u64::from(node.waiting).saturating_mul(node.charge_of(entry.cost));
        let start = self.start_tag(stop.place, entry.class, stop.node, entry.fresh);
        let distance = start
            .saturating_sub(queue.virtual_time)
            .saturating_add(turns);
        let tokens = u128::from(distance) * u128::from(weights) * 1_000 / u128::from(TAG_UNIT);
        place.time_for(Need(u64::try_from(tokens).unwrap_or(u64::MAX)))
    }

    /// How long until what is asked for is there, if nobody takes anything
    /// meanwhile.
    pub(super) fn token_wait(&self, now: &Now, id: PlaceId, class: Class, ask: Ask) -> Nanos {
        let place = self.place(id);
        let need = ask.need;
        match place.until(now, class, ask) {
            Until::Now => Nanos::ZERO,
            Until::At(at) => at.since(now.mono),
            Until::Released | Until::Granted => place.time_for(need),
            // Others are booked for more than fits at once: as long as it takes
            // to work them off.
            Until::Never => place.time_for(need),
        }
    }
}
