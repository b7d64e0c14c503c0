//! Judging a place for a flow: what must be there, who is before it, how long
//! it is worth waiting. Nothing here changes anything.

use super::entry::Standing;
use super::place::{Holder, PlaceId};
use super::{Outlet, Schedule};
use crate::class::Class;
use crate::handle::FlowId;
use crate::limit::need::Need;
use crate::time::{Nanos, Now};

/// Claims that may be held at one costly place at a time.
const TURNS_OUT_MAX: usize = 1;
/// A wait for the next place that is not worth another queue, if both are cheap.
const PATIENCE_CHEAP: Nanos = Nanos::from_millis(10);
/// The same, if one of them is costly.
const PATIENCE_COSTLY: Nanos = Nanos::from_millis(30);

impl Schedule {
    /// What must be available before a waiter's turn; none if not even a full
    /// limit would do, since so many are booked: then a send marks the place.
    pub(super) fn turn_need(
        &self,
        now: &Now,
        id: PlaceId,
        flow: FlowId,
        by_credit: bool,
    ) -> Option<Need> {
        let place = self.place(id);
        let entry = self.entry(flow);
        let (class, cost) = (entry.class, entry.cost);
        if by_credit {
            let claimed = place.claimed_from(class);
            return Some(Need((claimed + u64::from(cost)) * 1_000));
        }
        let need = place.need(now, class, cost);
        if !place.is_cheap(cost) {
            return Some(need);
        }
        let burst = Need::whole(place.shape.capacity);
        // Where nobody can come from elsewhere everything may be used.
        let reserve = if self.others_may_come(id, flow) {
            place.reserve(now, class)
        } else {
            Need::ZERO
        };
        (need <= burst).then(|| (need + reserve).min(burst))
    }

    /// Whether no further turn may be out at a costly place. Claims of less
    /// urgent flows give way. The flow's own claim does not count: it may stand in the book again, if granted tokens
    /// ran out under its claim.
    pub(super) fn is_crowded(&self, id: PlaceId, flow: FlowId) -> bool {
        let place = self.place(id);
        let entry = self.entry(flow);
        let claims = place.claims.iter();
        let standing = claims.filter(|claim| claim.flow != flow && claim.class <= entry.class);
        !place.is_cheap(entry.cost) && standing.count() >= TURNS_OUT_MAX
    }

    /// Whether flows that need this place stand elsewhere.
    pub(super) fn others_may_come(&self, id: PlaceId, flow: FlowId) -> bool {
        let place = self.place(id);
        let arriving = self.entry(flow).standing == Standing::Arriving;
        place.active > place.waiting + u32::from(arriving)
    }

    /// What must be available for a booked flow at one of its stops.
    pub(super) fn booked_need(&self, now: &Now, flow: FlowId, index: u8) -> Need {
        let entry = self.entry(flow);
        let place = self.place(entry.stop(index).place);
        let cost = u64::from(entry.cost);
        let own_claim = if entry.holds(index) { cost } else { 0 };
        let claimed = place.claimed_from(entry.class) - own_claim;
        if entry.by_credit {
            return Need((claimed + cost) * 1_000);
        }
        let older = match place.book.first() {
            Some(&(class, ticket, _)) if (class, ticket) < (entry.class, self.ticket(flow)) => {
                place.class(entry.class).booked
            }
            _ => 0,
        };
        let spoken_for = claimed + place.soft_above(entry.class) + older + cost;
        Need(spoken_for * 1_000) + place.floor(now, entry.class)
    }

    pub(super) fn has_collected(
        &self,
        now: &Now,
        flow: FlowId,
        index: u8,
        outlet: &impl Outlet,
    ) -> bool {
        let entry = self.entry(flow);
        let place = self.place(entry.stop(index).place);
        if entry.holds(index) {
            // Granted tokens can run out under a claim: a lease ends.
            return place.fits(now, entry.class, Need::whole(entry.cost));
        }
        match place.holder {
            Holder::Gate(lane) => outlet.gate_open(lane, entry.class, entry.cost),
            Holder::Limit(_) => place.fits(now, entry.class, self.booked_need(now, flow, index)),
        }
    }

    pub(super) fn wait_for_booked(&self, now: &Now, flow: FlowId, index: u8) -> Nanos {
        let entry = self.entry(flow);
        let need = self.booked_need(now, flow, index);
        self.token_wait(now, entry.stop(index).place, entry.class, need)
    }

    /// Whether every stop has what the flow needs and nobody is before it.
    pub(super) fn is_free(&self, now: &Now, flow: FlowId, outlet: &impl Outlet) -> bool {
        let entry = self.entry(flow);
        entry.stops.iter().all(|stop| {
            let place = self.place(stop.place);
            if place.has_waiters_from(entry.class) {
                return false;
            }
            // A flow that goes on leaves the reserve alone, as in a turn: else
            // a lone flow would drain the bucket that others come to.
            if entry.fresh || place.is_gate() {
                return self.is_open(now, stop.place, entry.class, entry.cost, outlet);
            }
            if self.others_may_come(stop.place, flow)
                && place.paced_until(now, entry.class, entry.cost) > now.mono
            {
                return false;
            }
            self.turn_need(now, stop.place, flow, false)
                .is_some_and(|need| place.fits(now, entry.class, need))
        })
    }

    /// Whether a newcomer of this class and cost would find the place open.
    pub(super) fn is_open(
        &self,
        now: &Now,
        id: PlaceId,
        class: Class,
        cost: u32,
        outlet: &impl Outlet,
    ) -> bool {
        let place = self.place(id);
        match place.holder {
            Holder::Gate(lane) => place.ahead(class) == 0 && outlet.gate_open(lane, class, cost),
            Holder::Limit(_) => place.fits(now, class, place.need(now, class, cost)),
        }
    }

    /// A flow that was empty may take a ticket without a queue where only a
    /// cheap limit is short for a moment and nobody is there.
    pub(super) fn may_book_at_once(&self, now: &Now, flow: FlowId, outlet: &impl Outlet) -> bool {
        let entry = self.entry(flow);
        entry.fresh
            && entry.stops.iter().all(|stop| {
                let place = self.place(stop.place);
                if place.has_waiters_from(entry.class) {
                    return false;
                }
                if self.is_open(now, stop.place, entry.class, entry.cost, outlet) {
                    return true;
                }
                let need = place.need(now, entry.class, entry.cost);
                let patience = PATIENCE_CHEAP.max(place.time_for(Need::whole(entry.cost * 3)));
                place.is_cheap(entry.cost)
                    && !place.is_leased()
                    && place.ahead(entry.class) == 0
                    && self.token_wait(now, stop.place, entry.class, need) <= patience
            })
    }

    /// The stop whose queue will reach the flow last.
    pub(super) fn bottleneck(&self, now: &Now, flow: FlowId, outlet: &impl Outlet) -> u8 {
        let entry = self.entry(flow);
        let mut worst = (Nanos::ZERO, Nanos::ZERO, 0);
        for index in entry.stop_indices() {
            let stop = entry.stop(index);
            let place = self.place(stop.place);
            let open = self.is_open(now, stop.place, entry.class, entry.cost, outlet);
            if open && !place.has_waiters_from(entry.class) {
                continue;
            }
            let queue = self.queue_wait(entry, stop);
            let need = place.need(now, entry.class, entry.cost);
            let tokens = if open {
                Nanos::ZERO
            } else {
                self.token_wait(now, stop.place, entry.class, need)
            };
            worst = worst.max((queue + tokens, tokens + Nanos(1), index));
        }
        worst.2
    }

    /// The stop that holds a flow although its turn came at another, if any:
    /// others are rightly before it there, or the wait is not worth a booking.
    pub(super) fn blocking_stop(
        &self,
        now: &Now,
        flow: FlowId,
        from: u8,
        outlet: &impl Outlet,
    ) -> Option<u8> {
        let entry = self.entry(flow);
        let mut worst: Option<(Nanos, u8)> = None;
        for index in entry.stop_indices().filter(|&index| index != from) {
            let stop = entry.stop(index);
            let place = self.place(stop.place);
            let open = self.is_open(now, stop.place, entry.class, entry.cost, outlet);
            let wait = if open {
                Nanos::ZERO
            } else {
                let need = place.need(now, entry.class, entry.cost);
                self.token_wait(now, stop.place, entry.class, need)
            };
            let others_first = !entry.by_credit && self.others_first(flow, index);
            if others_first || wait > self.patience(flow, index, Some(from)) {
                worst = worst.max(Some((self.queue_wait(entry, stop) + wait, index)));
            }
        }
        worst.map(|(_, index)| index)
    }

    /// Whether flows that wait at a stop come before this one there.
    pub(super) fn others_first(&self, flow: FlowId, index: u8) -> bool {
        let entry = self.entry(flow);
        let stop = entry.stop(index);
        let place = self.place(stop.place);
        if place.has_waiters_above(entry.class) {
            return true;
        }
        let mine = self.start_tag(stop.place, entry.class, stop.node, entry.fresh);
        place
            .class(entry.class)
            .nodes
            .first()
            .is_some_and(|&(tag, _, _)| tag < mine)
    }

    /// How long a flow waits for a stop as a booked one before it gives way.
    /// Patience grows with each time it was sent on: capping it where a costly
    /// place is involved starved flows.
    pub(super) fn patience(&self, flow: FlowId, index: u8, from: Option<u8>) -> Nanos {
        let entry = self.entry(flow);
        let place = self.place(entry.stop(index).place);
        let from = from.map(|from| self.place(entry.stop(from).place));
        let cheap = place.is_cheap(entry.cost) && from.is_none_or(|from| from.is_cheap(entry.cost));
        if cheap {
            let base = PATIENCE_CHEAP.times(1 << entry.hops.min(2));
            return base.max(place.time_for(Need::whole(entry.cost.saturating_mul(3))));
        }
        let base = PATIENCE_COSTLY.times(1 << entry.hops.min(20));
        let turn = place.time_for(Need::whole(entry.cost));
        let faster = from.is_some_and(|from| turn < from.time_for(Need::whole(entry.cost)));
        if faster { base.max(turn) } else { base }
    }
}
