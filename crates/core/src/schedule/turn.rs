//! Placing, turns, attempts, collecting, sending: the decisions of the
//! schedule. The terms are those of the module's doc.

use super::entry::{Standing, Stop};
use super::node::NodeId;
use super::place::{Holder, PlaceId, Ticket};
use super::{Outlet, Schedule, Task};
use crate::class::Class;
use crate::handle::FlowId;
use crate::limit::need::Need;
use crate::limit::{Kind, Until};
use crate::time::{Mono, Nanos, Now};

/// Booked flows that are looked at for claims which keep others waiting.
const BARRED_LOOKS: usize = 16;
/// What each lower class with waiters earns of every grant, in thousandths.
const LOWER_CLASS_PERMILLE: u64 = 20;
/// The credit that pays for a cost of 1.
const CREDIT_OF_ONE: u64 = 1_000;

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
        let place = self.place(id);
        if let Some(&(class, _, flow)) = place.book.first()
            && (self.entry(flow).by_credit || !place.has_waiters_above(class))
            && self.booked_may_pass(now, id, flow, outlet)
        {
            let stop = self.stop_at(flow, id);
            self.leave_book(flow);
            self.end_wait(now.mono, flow, id);
            if !self.place(id).is_gate() && !self.place(id).is_cheap(self.entry(flow).cost) {
                self.take_weak_claims(id, class);
                self.claim(flow, stop);
            }
            self.collect(now, flow, Some(stop), outlet);
            return true;
        }
        if let Some((flow, stop)) = self.barred_claimant(id) {
            // It would keep others from what it holds for as long as more
            // urgent flows wait here: it waits among its own class instead.
            self.unbook(flow);
            self.enter_queue(now.mono, flow, stop);
            return true;
        }
        let Some((class, by_credit, node, flow)) = self.next_turn(now, id, outlet) else {
            return false;
        };
        let tag = self.nodes.get(node).queued_at.map_or(0, |(tag, _)| tag);
        self.leave_queue(flow);
        self.end_wait(now.mono, flow, id);
        if by_credit {
            let cost = u64::from(self.entry(flow).cost) * CREDIT_OF_ONE;
            let queue = self.place_mut(id).class_mut(class);
            queue.credit = queue.credit.saturating_sub(cost);
        }
        self.entry_mut(flow).by_credit = by_credit;
        self.attempt(now, flow, self.stop_at(flow, id), tag, outlet);
        true
    }

    /// A booked flow that holds tokens elsewhere and cannot go on here, since
    /// more urgent ones wait.
    fn barred_claimant(&self, id: PlaceId) -> Option<(FlowId, u8)> {
        let place = self.place(id);
        let mut book = place.book.iter().take(BARRED_LOOKS);
        let &(_, _, flow) = book.find(|&&(class, _, flow)| {
            let entry = self.entry(flow);
            entry.claims != 0 && !entry.by_credit && place.has_waiters_above(class)
        })?;
        Some((flow, self.stop_at(flow, id)))
    }

    /// A turn by credit that another stop did not let through was not used:
    /// what was paid for it goes along. Else a lower class would have to earn
    /// each stop anew, and get its share only once in as many turns.
    fn carry_credit(&mut self, flow: FlowId, stop: u8) {
        let entry = self.entry_mut(flow);
        if !std::mem::take(&mut entry.by_credit) {
            return;
        }
        let (class, cost) = (entry.class, u64::from(entry.cost) * CREDIT_OF_ONE);
        let id = entry.stop(stop).place;
        let queue = self.place_mut(id).class_mut(class);
        queue.credit = queue.credit.max(cost);
        self.mark(id);
    }

    /// A flow whose turn came at one stop tries the others.
    fn attempt(&mut self, now: &Now, flow: FlowId, from: u8, tag: u64, outlet: &mut impl Outlet) {
        self.visits += 1;
        if let Some(stop) = self.blocking_stop(now, flow, from, outlet) {
            let entry = self.entry_mut(flow);
            entry.hops = entry.hops.saturating_add(1);
            self.enter_queue(now.mono, flow, stop);
            self.carry_credit(flow, stop);
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

    /// Sends a booked flow that lacks nothing, or books it where it lacks most.
    /// The stop it comes from counts as passed.
    fn collect(&mut self, now: &Now, flow: FlowId, from: Option<u8>, outlet: &mut impl Outlet) {
        let mut cheap: Option<(Nanos, u8)> = None;
        let mut costly: Option<((u8, Nanos), u8)> = None;
        for index in self.entry(flow).stop_indices() {
            if Some(index) == from || self.has_collected(now, flow, index, outlet) {
                continue;
            }
            let entry = self.entry(flow);
            let place = self.place(entry.stop(index).place);
            let wait = self.wait_for_booked(now, flow, index);
            if place.is_cheap(entry.cost) {
                cheap = cheap.max(Some((wait, index)));
            } else {
                // Windows first, then slots, then the slowest bucket, gates last.
                let rank = match place.shape.kind {
                    _ if place.is_gate() => 0,
                    Kind::SlidingWindow | Kind::CalendarWindow => 3,
                    Kind::Concurrency => 2,
                    Kind::TokenBucket | Kind::LeakyBucket => 1,
                };
                costly = costly.max(Some(((rank, wait), index)));
            }
        }
        match (cheap, costly) {
            (None, None) => self.dispatch(now, flow, outlet),
            (Some((_, index)), _) => self.enter_book(now.mono, flow, index),
            (None, Some(((_, wait), index))) => {
                if self.entry(flow).claims != 0 && wait > self.patience(flow, index, None) {
                    self.unbook(flow);
                    let entry = self.entry_mut(flow);
                    entry.hops = entry.hops.saturating_add(1);
                    self.enter_queue(now.mono, flow, index);
                } else {
                    self.enter_book(now.mono, flow, index);
                }
            }
        }
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

    /// Each class below one that was granted something earns a part of it, if
    /// it waits.
    fn earn_below(&mut self, id: PlaceId, class: Class, cost: u32) {
        let mut a_turn_more = false;
        let place = self.place_mut(id);
        for queue in place.classes.iter_mut().skip(class.index() + 1) {
            if queue.nodes.is_empty() && queue.soft == 0 {
                // Less than one turn is left to a class that steps away for a
                // moment: its last flow may be on its way back.
                queue.credit = queue.credit.min(CREDIT_OF_ONE - 1);
                continue;
            }
            let turns = queue.credit / CREDIT_OF_ONE;
            queue.credit += u64::from(cost) * LOWER_CLASS_PERMILLE;
            a_turn_more |= queue.credit / CREDIT_OF_ONE > turns;
        }
        if a_turn_more {
            self.mark(id);
        }
    }

    /// The waiter whose turn it is: of a lower class that earned one, else of
    /// the most urgent class that waits.
    fn next_turn(
        &self,
        now: &Now,
        id: PlaceId,
        outlet: &impl Outlet,
    ) -> Option<(Class, bool, NodeId, FlowId)> {
        let (highest, earned) = self.classes_to_serve(id)?;
        let candidates = earned
            .map(|class| (class, true))
            .into_iter()
            .chain([(highest, false)]);
        candidates.into_iter().find_map(|(class, by_credit)| {
            let (node, flow) = self.first_waiter(id, class)?;
            self.may_turn(now, id, class, flow, by_credit, outlet)
                .then_some((class, by_credit, node, flow))
        })
    }

    /// The most urgent class that waits, and a lower one that earned a turn.
    fn classes_to_serve(&self, id: PlaceId) -> Option<(Class, Option<Class>)> {
        let place = self.place(id);
        let waits = |class: &Class| !place.class(*class).nodes.is_empty();
        let highest = Class::ALL.into_iter().find(waits)?;
        let earned = highest.below().find(|&class| {
            let cost = self
                .first_waiter(id, class)
                .map(|(_, flow)| self.entry(flow).cost);
            cost.is_some_and(|cost| place.class(class).credit >= u64::from(cost) * CREDIT_OF_ONE)
        });
        Some((highest, earned))
    }

    /// Whether a waiter's turn has come.
    fn may_turn(
        &self,
        now: &Now,
        id: PlaceId,
        class: Class,
        flow: FlowId,
        by_credit: bool,
        outlet: &impl Outlet,
    ) -> bool {
        let place = self.place(id);
        let cost = self.entry(flow).cost;
        if let Holder::Gate(lane) = place.holder {
            return outlet.gate_open(lane, class, cost);
        }
        if self.is_crowded(id, flow) {
            return false;
        }
        if self.others_may_come(id, flow) && place.paced_until(now, class, cost) > now.mono {
            return false;
        }
        self.turn_need(now, id, flow, by_credit)
            .is_some_and(|need| place.fits(now, class, need))
    }

    /// Whether the first booked flow at a place finds there what it lacks.
    fn booked_may_pass(
        &mut self,
        now: &Now,
        id: PlaceId,
        flow: FlowId,
        outlet: &impl Outlet,
    ) -> bool {
        let (class, cost) = (self.entry(flow).class, self.entry(flow).cost);
        if let Holder::Gate(lane) = self.place(id).holder {
            return outlet.gate_open(lane, class, cost);
        }
        loop {
            let need = self.booked_need(now, flow, self.stop_at(flow, id));
            if !self.is_crowded(id, flow) && self.place(id).fits(now, class, need) {
                return true;
            }
            if !self.take_claim_from_younger(id, flow) {
                return false;
            }
        }
    }

    /// Sets the timer for the next booked flow or turn, if time alone brings it.
    fn arm(&mut self, now: &Now, id: PlaceId) {
        self.note_fed(id);
        let mut at = Mono::NEVER;
        let place = self.place(id);
        if !place.is_gate() {
            let mut consider = |need: Need, class: Class, paced: Mono, by_credit: bool| {
                let time = match place.until(now, class, need, by_credit) {
                    Until::At(time) => time.max(paced),
                    Until::Now => paced,
                    _ => return,
                };
                if time > now.mono {
                    at = at.min(time);
                }
            };
            if let Some(&(class, _, flow)) = place.book.first() {
                consider(
                    self.booked_need(now, flow, self.stop_at(flow, id)),
                    class,
                    Mono(0),
                    self.entry(flow).by_credit,
                );
            }
            if let Some((highest, earned)) = self.classes_to_serve(id) {
                let turns = [(Some(highest), false), (earned, true)];
                for (class, by_credit) in turns {
                    let Some(class) = class else { continue };
                    let Some((_, flow)) = self.first_waiter(id, class) else {
                        continue;
                    };
                    if let Some(need) = self.turn_need(now, id, flow, by_credit) {
                        let cost = self.entry(flow).cost;
                        let paced = if self.others_may_come(id, flow) {
                            place.paced_until(now, class, cost)
                        } else {
                            now.mono
                        };
                        consider(need, class, paced, by_credit);
                    }
                }
            }
        }
        let look_at = self.place(id).look_at;
        if look_at > now.mono {
            at = at.min(look_at);
        }
        self.set_timer(id, at);
    }

    /// Whether [`Schedule::serve`] would find something to do at a place.
    pub(super) fn would_serve(&self, now: &Now, id: PlaceId, outlet: &impl Outlet) -> bool {
        let place = self.place(id);
        if let Some(&(class, _, flow)) = place.book.first()
            && (self.entry(flow).by_credit || !place.has_waiters_above(class))
            && !self.is_crowded(id, flow)
            && place.fits(
                now,
                class,
                self.booked_need(now, flow, self.stop_at(flow, id)),
            )
        {
            return true;
        }
        self.barred_claimant(id).is_some() || self.next_turn(now, id, outlet).is_some()
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
