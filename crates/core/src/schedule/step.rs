//! What a place does next, and when: one list of candidates, from which both
//! are read. So no place can stand with something to give and no timer.

use super::judge::Claims;
use super::place::{Ask, Holder, PlaceId};
use super::{Outlet, Schedule};
use crate::class::Class;
use crate::handle::FlowId;
use crate::limit::Until;
use crate::time::{Mono, Now};

/// Booked flows that are looked at for claims which keep others waiting.
const BARRED_LOOKS: usize = 16;

/// What a place does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A booked flow finds here what it lacks, perhaps by credit.
    Pass(FlowId, bool),
    /// A booked flow that holds tokens elsewhere cannot go on here, since more
    /// urgent ones wait. It would keep others from what it holds for as long as
    /// they do: it waits among its own class instead.
    GiveUp(FlowId),
    /// A waiter has its turn, perhaps by credit.
    Turn(FlowId, bool),
}

impl Schedule {
    /// What a place does next, if it can do anything now.
    pub(super) fn next_step(&self, now: &Now, id: PlaceId, outlet: &impl Outlet) -> Option<Step> {
        let can = |step: &Step| self.can_step(now, id, *step, outlet);
        self.credited(id)
            .find(can)
            .or_else(|| self.head_of_book(id).filter(can))
            .or_else(|| self.barred_claimant(id))
            .or_else(|| self.most_urgent_waiter(id).filter(can))
    }

    /// The step of a flow of a class that is not the most urgent at a gate but
    /// was chosen by the pool; none if none can go. One that merely waits where
    /// those booked above it cannot go has earned nothing by that.
    pub(super) fn step_of(
        &self,
        now: &Now,
        id: PlaceId,
        (class, is_owed): (Class, bool),
        outlet: &impl Outlet,
    ) -> Option<Step> {
        let place = self.place(id);
        if place.most_urgent() == Some(class) {
            return None;
        }
        let by_credit = is_owed || place.has_waiters_above(class);
        let booked = place.first_booked(class).into_iter();
        let waiting = self.first_waiter(id, class).into_iter();
        let steps = booked.map(|flow| Step::Pass(flow, by_credit));
        let mut steps = steps.chain(waiting.map(|(_, flow)| Step::Turn(flow, by_credit)));
        steps.find(|&step| self.can_step(now, id, step, outlet))
    }

    /// The class and cost of a flow that has earned a turn at a place whose
    /// tokens do not serve it: they were leased for a higher class.
    pub fn unserved_credit(&self, now: &Now, id: PlaceId) -> Option<(Class, u32)> {
        let place = self.place(id);
        let mut flows = self.credited(id).map(Step::flow);
        flows.find_map(|flow| {
            let entry = self.entry(flow);
            let ask = Ask::bare(u64::from(entry.cost));
            (!place.fits(now, entry.class, ask)).then_some((entry.class, entry.cost))
        })
    }

    /// Sets the timer for the next step, if time alone brings it.
    pub(super) fn arm(&mut self, now: &Now, id: PlaceId) {
        self.note_fed(id);
        let place = self.place(id);
        let mut at = place.look_at;
        if at <= now.mono {
            at = Mono::NEVER;
        }
        if !place.is_gate() {
            let steps = self.credited(id).chain(self.head_of_book(id));
            let steps = steps.chain(self.most_urgent_waiter(id));
            for step in steps {
                at = at.min(self.comes_at(now, id, step));
            }
        }
        self.set_timer(id, at);
    }

    /// The first flow of each lower class that has earned a turn here: booked
    /// ones come before those who wait.
    fn credited(&self, id: PlaceId) -> impl Iterator<Item = Step> {
        let place = self.place(id);
        let classes = place.most_urgent().into_iter().flat_map(Class::below);
        classes.filter_map(move |class| {
            if place.class(class).credit == 0 {
                return None;
            }
            let booked = place.first_booked(class);
            let step = match booked {
                Some(flow) => Step::Pass(flow, true),
                None => Step::Turn(self.first_waiter(id, class)?.1, true),
            };
            self.has_credit(id, step.flow()).then_some(step)
        })
    }

    /// The first booked flow, unless more urgent ones wait.
    fn head_of_book(&self, id: PlaceId) -> Option<Step> {
        let place = self.place(id);
        let &(class, _, flow) = place.book.first()?;
        (!place.has_waiters_above(class)).then_some(Step::Pass(flow, false))
    }

    fn most_urgent_waiter(&self, id: PlaceId) -> Option<Step> {
        let mut classes = Class::ALL.into_iter();
        let (_, flow) = classes.find_map(|class| self.first_waiter(id, class))?;
        Some(Step::Turn(flow, false))
    }

    fn barred_claimant(&self, id: PlaceId) -> Option<Step> {
        let place = self.place(id);
        let mut book = place.book.iter().take(BARRED_LOOKS);
        let &(_, _, flow) = book.find(|&&(class, _, flow)| {
            let is_barred = place.has_waiters_above(class) && !self.has_credit(id, flow);
            is_barred && self.entry(flow).claims != 0
        })?;
        Some(Step::GiveUp(flow))
    }

    /// What must be there for a step, and the time before which it must not be.
    /// None if somebody else's claim stands against it.
    fn asks_for(&self, now: &Now, id: PlaceId, step: Step) -> Option<(Ask, Mono)> {
        let flow = step.flow();
        let place = self.place(id);
        match step {
            Step::Pass(_, by_credit) => {
                let stop = self.stop_at(flow, id);
                let ask = self.booked_ask(now, flow, stop, by_credit, Claims::Older);
                (!self.is_crowded(id, flow, Claims::Older)).then_some((ask, now.mono))
            }
            Step::Turn(_, by_credit) => {
                let entry = self.entry(flow);
                let paced = match self.others_may_come(id, flow) {
                    true => place.paced_until(now, entry.class, entry.cost),
                    false => now.mono,
                };
                let ask = self.turn_ask(now, id, flow, by_credit);
                (!self.is_crowded(id, flow, Claims::All)).then_some((ask, paced))
            }
            Step::GiveUp(_) => None,
        }
    }

    fn can_step(&self, now: &Now, id: PlaceId, step: Step, outlet: &impl Outlet) -> bool {
        let place = self.place(id);
        let entry = self.entry(step.flow());
        if let Holder::Gate(lane) = place.holder {
            return outlet.gate_open(lane, entry.class, entry.cost);
        }
        let asks = self.asks_for(now, id, step);
        asks.is_some_and(|(ask, from)| from <= now.mono && place.fits(now, entry.class, ask))
    }

    /// When time alone lets a step come. Claims that stand against it mark the
    /// place when they end.
    fn comes_at(&self, now: &Now, id: PlaceId, step: Step) -> Mono {
        let class = self.entry(step.flow()).class;
        let Some((ask, from)) = self.asks_for(now, id, step) else {
            return Mono::NEVER;
        };
        match self.place(id).until(now, class, ask) {
            Until::At(at) => at.max(from),
            Until::Now if from > now.mono => from,
            _ => Mono::NEVER,
        }
    }
}

impl Step {
    fn flow(self) -> FlowId {
        match self {
            Self::Pass(flow, _) | Self::GiveUp(flow) | Self::Turn(flow, _) => flow,
        }
    }
}
