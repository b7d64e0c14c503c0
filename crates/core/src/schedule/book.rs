//! Bookings: who has had a turn and collects the rest, and what they hold.

use super::Schedule;
use super::entry::Standing;
use super::place::{Claim, PlaceId, Ticket};
use crate::class::Class;
use crate::handle::FlowId;
use crate::time::Mono;

impl Schedule {
    /// Gives a flow the next ticket and charges it everywhere.
    pub(super) fn take_ticket(&mut self, flow: FlowId) {
        self.charge(flow);
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.entry_mut(flow).standing = Standing::Booked { ticket, stop: None };
    }

    /// Puts a booked flow into the book of a stop that it lacks.
    pub(super) fn enter_book(&mut self, now: Mono, flow: FlowId, stop_index: u8) {
        let entry = self.entry_mut(flow);
        let Standing::Booked { ticket, .. } = entry.standing else {
            return;
        };
        entry.standing = Standing::Booked {
            ticket,
            stop: Some(stop_index),
        };
        entry.brought = false;
        let (class, cost, id) = (
            entry.class,
            u64::from(entry.cost),
            entry.stop(stop_index).place,
        );
        if !std::mem::replace(&mut entry.soft, true) {
            self.change_soft(flow, true);
        }
        let place = self.place_mut(id);
        place.book.insert((class, ticket, flow));
        let queue = place.class_mut(class);
        queue.booked += cost;
        queue.standing += 1;
        queue.came += 1;
        self.begin_wait(now, flow, id);
        self.note_gate(id);
        self.mark(id);
    }

    /// Takes a booked flow out of the book it stands in; it stays booked.
    pub(super) fn leave_book(&mut self, flow: FlowId) {
        let entry = self.entry_mut(flow);
        let Standing::Booked {
            ticket,
            stop: Some(stop_index),
        } = entry.standing
        else {
            return;
        };
        entry.standing = Standing::Booked { ticket, stop: None };
        let (class, cost, id) = (
            entry.class,
            u64::from(entry.cost),
            entry.stop(stop_index).place,
        );
        let place = self.place_mut(id);
        place.book.remove(&(class, ticket, flow));
        let queue = place.class_mut(class);
        queue.booked -= cost;
        queue.standing -= 1;
        self.note_gate(id);
    }

    /// Ends a booking without a send: claims and charges are taken back.
    pub(super) fn unbook(&mut self, flow: FlowId) {
        self.leave_book(flow);
        self.refund(flow);
        self.end_booking(flow);
        self.entry_mut(flow).standing = Standing::Idle;
    }

    /// Drops what a booking held; whoever stood behind it is looked at.
    pub(super) fn end_booking(&mut self, flow: FlowId) {
        let entry = self.entry(flow);
        if entry.claims != 0 {
            for index in entry.stop_indices() {
                self.release_claim(flow, index);
            }
        }
        if std::mem::replace(&mut self.entry_mut(flow).soft, false) {
            self.change_soft(flow, false);
        }
    }

    /// Holds tokens of a costly place for a booked flow.
    pub(super) fn claim(&mut self, flow: FlowId, stop_index: u8) {
        let entry = self.entry_mut(flow);
        let Standing::Booked { ticket, .. } = entry.standing else {
            return;
        };
        if entry.holds(stop_index) {
            return;
        }
        entry.claims |= 1 << stop_index;
        let claim = Claim {
            class: entry.class,
            ticket,
            flow,
            cost: entry.cost,
        };
        let id = entry.stop(stop_index).place;
        self.place_mut(id).claims.push(claim);
    }

    /// Gives up a claim, if there is one.
    pub(super) fn release_claim(&mut self, flow: FlowId, stop_index: u8) {
        let entry = self.entry_mut(flow);
        if !entry.holds(stop_index) {
            return;
        }
        entry.claims &= !(1 << stop_index);
        let id = entry.stop(stop_index).place;
        self.place_mut(id).claims.retain(|claim| claim.flow != flow);
        self.mark(id);
    }

    /// Takes the claim of a less urgent or younger holder away. Without this,
    /// two flows that each hold what the other lacks would wait for ever.
    pub(super) fn take_claim_from_younger(&mut self, id: PlaceId, flow: FlowId) -> bool {
        let entry = self.entry(flow);
        let Standing::Booked { ticket, .. } = entry.standing else {
            return false;
        };
        let mine = (entry.class, ticket, flow);
        let youngest = self.place(id).claims.iter().max().copied();
        match youngest {
            Some(claim) if (claim.class, claim.ticket, claim.flow) > mine => {
                self.release_claim(claim.flow, self.stop_at(claim.flow, id));
                true
            }
            _ => false,
        }
    }

    /// Takes the claims of less urgent flows away.
    pub(super) fn take_weak_claims(&mut self, id: PlaceId, class: Class) {
        let claims = self.place(id).claims.iter().copied();
        let weak = claims.filter(|claim| claim.class > class);
        for claim in weak.collect::<Vec<_>>() {
            self.release_claim(claim.flow, self.stop_at(claim.flow, id));
        }
    }

    fn change_soft(&mut self, flow: FlowId, add: bool) {
        let entry = self.entry(flow);
        let (class, cost) = (entry.class, u64::from(entry.cost));
        for index in entry.stop_indices() {
            let id = self.entry(flow).stop(index).place;
            let place = self.place_mut(id);
            if add {
                place.soft_all += cost;
                place.class_mut(class).soft += cost;
            } else {
                place.soft_all -= cost;
                place.class_mut(class).soft -= cost;
            }
            if self.place(id).is_wanted() {
                self.mark(id);
            }
        }
    }
}
