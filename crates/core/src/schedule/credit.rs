//! Credit: what a lower class may take out of turn, so that it does not starve.
//!
//! Each class that waits or is booked at a place earns a part of every grant to
//! a higher one there. When that covers the cost of its first flow, this one
//! goes out of turn. Credit stands at a place. What a flow paid for its turn
//! goes along to the next place that holds it, so that it need not be earned
//! at each of them anew.

use super::Schedule;
use super::judge::Claims;
use super::place::{Ask, PlaceId};
use crate::class::Class;
use crate::handle::FlowId;
use crate::ledger::owed;
use crate::limit::need::Need;
use crate::limit::{Kind, Until};
use crate::time::Now;

/// The credit that pays for a cost of 1.
const CREDIT_OF_ONE: u64 = 1_000;

impl Schedule {
    /// Each class below one that was granted something earns a part of it, if
    /// it waits.
    pub(super) fn earn_below(&mut self, id: PlaceId, class: Class, cost: u32) {
        let mut a_turn_more = false;
        let place = self.place_mut(id);
        let a_turn = price(place.cost_max);
        for queue in place.classes.iter_mut().skip(class.index() + 1) {
            if queue.nodes.is_empty() && queue.soft == 0 {
                // Less than one turn is left to a class that steps away for a
                // moment: its last flow may be on its way back.
                queue.credit = queue.credit.min(a_turn - 1);
                continue;
            }
            let turns = queue.credit / CREDIT_OF_ONE;
            queue.credit += u64::from(cost) * owed::PERMILLE;
            a_turn_more |= queue.credit / CREDIT_OF_ONE > turns;
        }
        if a_turn_more {
            self.note_turn(id);
        }
    }

    /// A class may have earned a turn: the place is looked at, and of a gate
    /// the pool hears who may go now.
    fn note_turn(&mut self, id: PlaceId) {
        self.note_gate(id);
        self.mark(id);
    }

    /// What a fleet owes to classes that wait here is earned at this place.
    pub fn earn(&mut self, id: PlaceId, owed: &owed::Tokens) {
        let place = self.place_mut(id);
        let mut is_more = false;
        for (queue, tokens) in place.classes.iter_mut().zip(owed) {
            if *tokens > 0 && (!queue.nodes.is_empty() || queue.soft > 0) {
                queue.credit += u64::from(*tokens) * CREDIT_OF_ONE;
                is_more = true;
            }
        }
        if is_more {
            self.mark(id);
        }
    }

    /// Whether a class has earned a turn of this flow at a place.
    pub(super) fn has_credit(&self, id: PlaceId, flow: FlowId) -> bool {
        let entry = self.entry(flow);
        self.place(id).class(entry.class).credit >= price(entry.cost)
    }

    /// What a class below this one has earned here and time is about to bring.
    /// Whoever costs less would take each token as it comes, and those that
    /// cost more would never find theirs together.
    pub(super) fn earned_below(&self, now: &Now, id: PlaceId, class: Class) -> u64 {
        match self.place(id).cost_max {
            // The first token that comes is theirs.
            0..=1 => 0,
            _ => self.earned_by_heavier(now, id, class),
        }
    }

    fn earned_by_heavier(&self, now: &Now, id: PlaceId, class: Class) -> u64 {
        let place = self.place(id);
        let kind = place.shape.kind;
        let comes_together = match kind {
            Kind::TokenBucket | Kind::SlidingWindow | Kind::Concurrency => !place.is_leased(),
            Kind::CalendarWindow | Kind::LeakyBucket => false,
        };
        if !comes_together {
            return 0;
        }
        let below = Class::ALL.into_iter().skip(class.index() + 1);
        let earned = below.filter_map(|below| {
            if place.class(below).credit < 2 * CREDIT_OF_ONE {
                return None;
            }
            let waiting = || self.first_waiter(id, below).map(|(_, flow)| flow);
            let flow = place.first_booked(below).or_else(waiting)?;
            let cost = self.entry(flow).cost;
            let may_go =
                cost > 1 && self.has_credit(id, flow) && !self.is_crowded(id, flow, Claims::Older);
            if !may_go {
                return None;
            }
            // A window may bring them in a long time only.
            let soon = match place.until(now, below, Ask::bare(u64::from(cost))) {
                Until::Now => true,
                Until::At(at) => {
                    let wait = at.since(now.mono);
                    kind == Kind::TokenBucket || wait <= place.time_for(Need::whole(cost))
                }
                // Slots come back with the replies.
                Until::Released => kind == Kind::Concurrency,
                Until::Granted | Until::Never => false,
            };
            soon.then_some(u64::from(cost))
        });
        earned.max().unwrap_or(0)
    }

    /// Whether a turn in order goes on with what the flow paid for one elsewhere.
    /// It must not stay behind where it is not needed: it would have to be earned
    /// again at the place from which it came.
    pub(super) fn goes_on_by_credit(&self, id: PlaceId, flow: FlowId) -> bool {
        self.entry(flow).brought && self.has_credit(id, flow)
    }

    /// Pays for a turn out of order.
    pub(super) fn pay_credit(&mut self, id: PlaceId, flow: FlowId) {
        let entry = self.entry_mut(flow);
        entry.by_credit = true;
        let (class, price) = (entry.class, price(entry.cost));
        let queue = self.place_mut(id).class_mut(class);
        queue.credit = queue.credit.saturating_sub(price);
    }

    /// A turn by credit that another stop did not let through was not used:
    /// what was paid for it goes along. Else a lower class would have to earn
    /// each stop anew, and get its share only once in as many turns.
    ///
    /// Two stops each of which lets it pass by credit alone would send it to and
    /// fro for ever. So it is carried past each stop once at an instant; then it
    /// is used up.
    pub(super) fn carry_credit(&mut self, now: &Now, flow: FlowId, stop: u8) {
        let entry = self.entry_mut(flow);
        if !std::mem::take(&mut entry.by_credit) {
            return;
        }
        let times = match entry.carried {
            (at, times) if at == now.mono => times.saturating_add(1),
            _ => 1,
        };
        entry.carried = (now.mono, times);
        if usize::from(times) > entry.stops.len() {
            return;
        }
        let (class, price) = (entry.class, price(entry.cost));
        let id = entry.stop(stop).place;
        let queue = self.place_mut(id).class_mut(class);
        queue.credit = queue.credit.saturating_add(price);
        self.entry_mut(flow).brought = true;
        self.note_turn(id);
    }
}

fn price(cost: u32) -> u64 {
    u64::from(cost) * CREDIT_OF_ONE
}
