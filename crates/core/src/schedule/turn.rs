//! Placing, turns, attempts, collecting, sending: the decisions of the
//! schedule. The terms are those of the module's doc.

use super::entry::{Standing, Stop};
use super::judge::Claims;
use super::place::{Holder, PlaceId, Ticket};
use super::step::Step;
use super::{Outlet, Schedule, Task};
use crate::handle::FlowId;
use crate::limit::Kind;
use crate::time::{Nanos, Now};

impl Schedule {
    /// Sends a flow that nothing holds, or finds the place where it waits.
    pub(super) fn place_flow(
        &mut self,
        now: &Now,
        flow: FlowId,
        budget: &mut u32,
        outlet: &mut impl Outlet,
    ) {
        let Some(entry) = self.flows.get_mut(flow.index()).and_then(Option::as_mut) else {
            return;
        };
        if entry.standing != Standing::Arriving {
            return;
        }
        *budget = budget.saturating_sub(1);
        entry.by_credit = false;
        self.note_cost(flow);
        if self.is_free(now, flow, outlet) {
            self.visits += 1;
            self.charge(flow);
            self.dispatch(now, flow, outlet);
        } else if self.may_book_at_once(now, flow, outlet) {
            self.visits += 1;
            self.take_ticket(flow);
            self.collect(now, flow, None, outlet);
        } else {
            let stop = self.bottleneck(now, flow, outlet);
            self.enter_queue(now.mono, flow, stop);
        }
    }

    /// Serves a place: those booked here first, then turns for those who wait.
    pub(super) fn serve(
        &mut self,
        now: &Now,
        id: PlaceId,
        budget: &mut u32,
        outlet: &mut impl Outlet,
    ) {
        while self.serve_one(now, id, outlet) {
            *budget = budget.saturating_sub(1);
            if *budget == 0 {
                self.mark(id);
                return;
            }
        }
        self.arm(now, id);
    }

    /// One booked flow or one waiter moves on; false if nobody can.
    pub(super) fn serve_one(&mut self, now: &Now, id: PlaceId, outlet: &mut impl Outlet) -> bool {
        let Some(step) = self.next_step(now, id, outlet) else {
            return false;
        };
        self.take_step(now, id, step, outlet);
        true
    }

    pub(super) fn take_step(
        &mut self,
        now: &Now,
        id: PlaceId,
        step: Step,
        outlet: &mut impl Outlet,
    ) {
        match step {
            Step::Pass(flow, by_credit) => self.pass(now, id, flow, by_credit, outlet),
            Step::GiveUp(flow) => {
                let stop = self.stop_at(flow, id);
                self.unbook(flow);
                self.enter_queue(now.mono, flow, stop);
            }
            Step::Turn(flow, by_credit) => self.turn(now, id, flow, by_credit, outlet),
        }
    }

    /// A booked flow found what it lacked here and collects the rest.
    fn pass(
        &mut self,
        now: &Now,
        id: PlaceId,
        flow: FlowId,
        by_credit: bool,
        outlet: &mut impl Outlet,
    ) {
        let stop = self.stop_at(flow, id);
        let class = self.entry(flow).class;
        if by_credit || self.goes_on_by_credit(id, flow) {
            self.pay_credit(id, flow);
        }
        if !self.place(id).is_gate() {
            while self.is_barred_by_claims(now, flow, stop)
                && self.take_claim_from_younger(id, flow)
            {}
        }
        self.leave_book(flow);
        self.end_wait(now.mono, flow, id);
        if !self.place(id).is_gate() && !self.place(id).is_cheap(self.entry(flow).cost) {
            self.take_weak_claims(id, class);
            self.claim(flow, stop);
        }
        self.collect(now, flow, Some(stop), outlet);
    }

    /// Whether claims must be given up before a booked flow can have its tokens.
    fn is_barred_by_claims(&self, now: &Now, flow: FlowId, stop: u8) -> bool {
        let entry = self.entry(flow);
        let id = entry.stop(stop).place;
        let ask = self.booked_ask(now, flow, stop, entry.by_credit, Claims::All);
        self.is_crowded(id, flow, Claims::All) || !self.place(id).fits(now, entry.class, ask)
    }

    /// A waiter has its turn here and tries its other stops.
    fn turn(
        &mut self,
        now: &Now,
        id: PlaceId,
        flow: FlowId,
        by_credit: bool,
        outlet: &mut impl Outlet,
    ) {
        let stop = self.entry(flow).stop(self.stop_at(flow, id));
        let tag = self
            .nodes
            .get(stop.node)
            .queued_at
            .map_or(0, |(tag, _)| tag);
        self.leave_queue(flow);
        self.end_wait(now.mono, flow, id);
        if by_credit || self.goes_on_by_credit(id, flow) {
            self.pay_credit(id, flow);
        }
        self.attempt(now, flow, self.stop_at(flow, id), tag, outlet);
    }

    /// A flow whose turn came at one stop tries the others.
    fn attempt(&mut self, now: &Now, flow: FlowId, from: u8, tag: u64, outlet: &mut impl Outlet) {
        self.visits += 1;
        if let Some(stop) = self.blocking_stop(now, flow, from, outlet) {
            self.send_on(now, flow, stop);
            return;
        }
        if let Some((stop, _)) = self.lacking_stop(now, flow, Some(from), outlet)
            && !self.has_ticket_left(flow)
        {
            self.send_on(now, flow, stop);
            return;
        }
        let entry = self.entry(flow);
        let (class, id, cost) = (entry.class, entry.stop(from).place, entry.cost);
        self.take_ticket(flow);
        self.advance(id, class, tag);
        if !self.place(id).is_gate() && !self.place(id).is_cheap(cost) {
            self.take_weak_claims(id, class);
            self.claim(flow, from);
        }
        self.collect(now, flow, Some(from), outlet);
    }

    /// A flow goes to wait at another stop; what it paid for a turn goes along.
    fn send_on(&mut self, now: &Now, flow: FlowId, stop: u8) {
        let entry = self.entry_mut(flow);
        entry.hops = entry.hops.saturating_add(1);
        self.enter_queue(now.mono, flow, stop);
        self.carry_credit(now, flow, stop);
    }

    /// Sends a booked flow that lacks nothing, or books it where it lacks most.
    /// The stop it comes from counts as passed.
    fn collect(&mut self, now: &Now, flow: FlowId, from: Option<u8>, outlet: &mut impl Outlet) {
        let Some((stop, wait)) = self.lacking_stop(now, flow, from, outlet) else {
            self.dispatch(now, flow, outlet);
            return;
        };
        let entry = self.entry(flow);
        let is_costly = !self.place(entry.stop(stop).place).is_cheap(entry.cost);
        if is_costly && entry.claims != 0 && wait > self.patience(flow, stop, None) {
            self.unbook(flow);
            self.send_on(now, flow, stop);
        } else {
            self.enter_book(now.mono, flow, stop);
            self.carry_credit(now, flow, stop);
        }
    }

    /// The stop at which a booked flow collects next, and how long that takes:
    /// ordinary buckets first, since their tokens are not held meanwhile; of
    /// the others windows, then slots, then the slowest bucket, gates last.
    fn lacking_stop(
        &self,
        now: &Now,
        flow: FlowId,
        from: Option<u8>,
        outlet: &impl Outlet,
    ) -> Option<(u8, Nanos)> {
        let mut worst: Option<((u8, Nanos), u8)> = None;
        let entry = self.entry(flow);
        for index in entry.stop_indices() {
            if Some(index) == from || self.has_collected(now, flow, index, outlet) {
                continue;
            }
            let place = self.place(entry.stop(index).place);
            let rank = match place.shape.kind {
                _ if place.is_gate() => 0,
                _ if place.is_cheap(entry.cost) => 4,
                Kind::SlidingWindow | Kind::CalendarWindow => 3,
                Kind::Concurrency => 2,
                Kind::TokenBucket | Kind::LeakyBucket => 1,
            };
            let wait = self.wait_for_booked(now, flow, index);
            worst = worst.max(Some(((rank, wait), index)));
        }
        worst.map(|((_, wait), index)| (index, wait))
    }

    /// Takes every limit and hands the head over; then the flow is placed anew.
    fn dispatch(&mut self, now: &Now, flow: FlowId, outlet: &mut impl Outlet) {
        let charged = self.entry(flow).cost;
        match outlet.prepare(now, flow) {
            Some(cost) if cost == charged => {
                self.take_all(now, flow);
                self.end_booking(flow);
                let next = outlet.send(now, flow);
                self.settle_in(flow, next);
            }
            // Another message came to the head, or none is left: what was
            // charged for the old one is taken back.
            other => {
                self.refund(flow);
                self.end_booking(flow);
                self.settle_in(flow, other);
            }
        }
    }

    /// After a send: the flow goes on with its next message, or rests.
    fn settle_in(&mut self, flow: FlowId, next: Option<u32>) {
        let entry = self.entry_mut(flow);
        entry.hops = 0;
        entry.fresh = false;
        match next {
            Some(cost) if !entry.parked => {
                entry.cost = cost;
                entry.standing = Standing::Arriving;
                self.tasks.push_back(Task::Place(flow));
            }
            _ => self.rest(flow),
        }
    }

    fn take_all(&mut self, now: &Now, flow: FlowId) {
        let entry = self.entry_mut(flow);
        let (class, cost) = (entry.class, entry.cost);
        let stops = std::mem::take(&mut entry.stops);
        for &Stop { place: id, .. } in &stops {
            let place = self.place_mut(id);
            if let Holder::Limit(limit) = &mut place.holder {
                limit.take(now, class, cost);
            }
            place.note_grant(now.mono, cost);
            if place.is_fed {
                place.spent = place.spent.saturating_add(cost);
                self.note_fed(id);
            }
            self.earn_below(id, class, cost);
        }
        self.entry_mut(flow).stops = stops;
    }

    fn note_cost(&mut self, flow: FlowId) {
        let entry = self.entry(flow);
        let cost = entry.cost;
        // Every place has seen a cost of 1.
        if cost <= 1 {
            return;
        }
        for index in entry.stop_indices() {
            let id = self.entry(flow).stop(index).place;
            let place = self.place_mut(id);
            if cost > place.cost_max {
                place.cost_max = cost;
                if let Holder::Limit(limit) = &mut place.holder {
                    limit.expect_cost(cost);
                }
                // Less is kept from lower classes, so that this one fits.
                self.mark(id);
            }
        }
    }

    pub(super) fn stop_at(&self, flow: FlowId, id: PlaceId) -> u8 {
        let entry = self.entry(flow);
        entry
            .stop_indices()
            .find(|&index| entry.stop(index).place == id)
            .expect("a flow stands only at its own stops")
    }

    pub(super) fn ticket(&self, flow: FlowId) -> Ticket {
        match self.entry(flow).standing {
            Standing::Booked { ticket, .. } => ticket,
            _ => Ticket(u64::MAX),
        }
    }
}
