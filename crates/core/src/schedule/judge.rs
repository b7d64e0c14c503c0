//! Judging a place for a flow: what must be there, who is before it, how long
//! it is worth waiting. Nothing here changes anything.

use super::entry::Standing;
use super::place::{Ask, Claim, Holder, Place, PlaceId, Spoken};
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

/// Whose claims a flow must leave alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Claims {
    /// Those of older bookings and more urgent ones; it takes the others away.
    Older,
    /// Those of all that are no less urgent.
    All,
}

impl Schedule {
    /// What must be available before a waiter's turn.
    pub(super) fn turn_ask(&self, now: &Now, id: PlaceId, flow: FlowId, by_credit: bool) -> Ask {
        let place = self.place(id);
        let entry = self.entry(flow);
        let (class, cost) = (entry.class, entry.cost);
        let claimed = place.claimed_from(class);
        if by_credit {
            return Ask::bare(claimed + u64::from(cost));
        }
        let floor = place.floor(now, class);
        // Where nobody can come from elsewhere everything may be used.
        let reserve = if place.is_cheap(cost) && self.others_may_come(id, flow) {
            place.reserve(class, floor)
        } else {
            Need::ZERO
        };
        let before = Spoken {
            claimed: claimed + self.earned_below(now, id, class),
            ahead: place.ahead(class),
            reserve,
        };
        place.ask(cost, before, floor)
    }

    /// `y`: what must be available so that a newcomer of this class and cost
    /// takes nothing from those before it.
    pub(super) fn newcomer(&self, now: &Now, id: PlaceId, class: Class, cost: u32) -> Ask {
        let place = self.place(id);
        let before = Spoken {
            claimed: place.claimed_from(class) + self.earned_below(now, id, class),
            ahead: place.ahead(class),
            reserve: Need::ZERO,
        };
        place.ask(cost, before, place.floor(now, class))
    }

    /// Whether no further turn may be out at a costly place. Claims of less
    /// urgent flows give way.
    pub(super) fn is_crowded(&self, id: PlaceId, flow: FlowId, respects: Claims) -> bool {
        let place = self.place(id);
        !place.is_cheap(self.entry(flow).cost)
            && self.claims_before(place, flow, respects).count() >= TURNS_OUT_MAX
    }

    /// Whether flows that need this place stand elsewhere.
    pub(super) fn others_may_come(&self, id: PlaceId, flow: FlowId) -> bool {
        let place = self.place(id);
        let arriving = self.entry(flow).standing == Standing::Arriving;
        place.active > place.waiting + u32::from(arriving)
    }

    /// What must be available for a booked flow at one of its stops, if those
    /// whose claims it respects keep them.
    pub(super) fn booked_ask(
        &self,
        now: &Now,
        flow: FlowId,
        index: u8,
        by_credit: bool,
        respects: Claims,
    ) -> Ask {
        let entry = self.entry(flow);
        let id = entry.stop(index).place;
        let place = self.place(id);
        let claimed = self.claims_before(place, flow, respects);
        let claimed: u64 = claimed.map(|claim| u64::from(claim.cost)).sum();
        if by_credit {
            return Ask::bare(claimed + u64::from(entry.cost));
        }
        let before_it = match place.book.first() {
            Some(&(class, ticket, _)) if (class, ticket) < (entry.class, self.ticket(flow)) => {
                place.class(entry.class).booked
            }
            _ => 0,
        };
        let before = Spoken {
            claimed: claimed + self.earned_below(now, id, entry.class),
            ahead: place.soft_above(entry.class) + before_it,
            reserve: Need::ZERO,
        };
        place.ask(entry.cost, before, place.floor(now, entry.class))
    }

    /// The claims at a place that a flow must respect; not its own, since it
    /// may stand in the book again if granted tokens ran out under its claim.
    fn claims_before<'a>(
        &self,
        place: &'a Place,
        flow: FlowId,
        respects: Claims,
    ) -> impl Iterator<Item = &'a Claim> {
        let (class, ticket) = (self.entry(flow).class, self.ticket(flow));
        place.claims.iter().filter(move |claim| {
            claim.flow != flow
                && match respects {
                    Claims::Older => (claim.class, claim.ticket) < (class, ticket),
                    Claims::All => claim.class <= class,
                }
        })
    }

    /// Whether a ticket is left for the flow at each of its stops.
    pub(super) fn has_ticket_left(&self, flow: FlowId) -> bool {
        let entry = self.entry(flow);
        entry.stops.iter().all(|stop| {
            let place = self.place(stop.place);
            place.class(entry.class).soft + u64::from(entry.cost) <= place.book_depth()
        })
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
            return place.fits(now, entry.class, Ask::bare(u64::from(entry.cost)));
        }
        match place.holder {
            Holder::Gate(lane) => outlet.gate_open(lane, entry.class, entry.cost),
            Holder::Limit(_) => {
                let ask = self.booked_ask(now, flow, index, entry.by_credit, Claims::All);
                place.fits(now, entry.class, ask)
            }
        }
    }

    pub(super) fn wait_for_booked(&self, now: &Now, flow: FlowId, index: u8) -> Nanos {
        let entry = self.entry(flow);
        let ask = self.booked_ask(now, flow, index, entry.by_credit, Claims::All);
        self.token_wait(now, entry.stop(index).place, entry.class, ask)
    }

    /// Whether every stop has what the flow needs and nobody is before it.
    pub(super) fn is_free(&self, now: &Now, flow: FlowId, outlet: &impl Outlet) -> bool {
        let entry = self.entry(flow);
        entry.stops.iter().all(|stop| {
            let place = self.place(stop.place);
            // The way of most messages: nobody else is about.
            if place.is_quiet() && (entry.fresh || !self.others_may_come(stop.place, flow)) {
                return match place.holder {
                    Holder::Gate(lane) => outlet.gate_open(lane, entry.class, entry.cost),
                    Holder::Limit(_) => {
                        let ask = place.ask_alone(now, entry.class, entry.cost);
                        place.fits(now, entry.class, ask)
                    }
                };
            }
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
            let ask = self.turn_ask(now, stop.place, flow, false);
            place.fits(now, entry.class, ask)
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
            Holder::Limit(_) => place.fits(now, class, self.newcomer(now, id, class, cost)),
        }
    }

    /// A flow that was empty may take a ticket without a queue where only a
    /// cheap limit is short for a moment and nobody is there.
    pub(super) fn may_book_at_once(&self, now: &Now, flow: FlowId, outlet: &impl Outlet) -> bool {
        let entry = self.entry(flow);
        entry.fresh
            && self.has_ticket_left(flow)
            && entry.stops.iter().all(|stop| {
                let place = self.place(stop.place);
                if place.has_waiters_from(entry.class) {
                    return false;
                }
                if self.is_open(now, stop.place, entry.class, entry.cost, outlet) {
                    return true;
                }
                let ask = self.newcomer(now, stop.place, entry.class, entry.cost);
                let patience = PATIENCE_CHEAP.max(place.time_for(Need::whole(entry.cost * 3)));
                place.is_cheap(entry.cost)
                    && !place.is_leased()
                    && place.ahead(entry.class) == 0
                    && self.token_wait(now, stop.place, entry.class, ask) <= patience
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
            let ask = self.newcomer(now, stop.place, entry.class, entry.cost);
            let tokens = if open {
                Nanos::ZERO
            } else {
                self.token_wait(now, stop.place, entry.class, ask)
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
            let open = self.is_open(now, stop.place, entry.class, entry.cost, outlet);
            let wait = if open {
                Nanos::ZERO
            } else {
                let ask = self.newcomer(now, stop.place, entry.class, entry.cost);
                self.token_wait(now, stop.place, entry.class, ask)
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
