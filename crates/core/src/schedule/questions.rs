//! What others ask of the schedule. Nothing here changes anything.

use super::Schedule;
use super::entry::Standing;
use super::place::{Holder, PlaceId};
use crate::class::Class;
use crate::handle::{FlowId, LaneId};
use crate::limit::Kind;
use crate::pool::ClassMask;

/// What the next messages at a gate cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCosts {
    /// The least of each class that may go next; 0 where none stands.
    pub least: [u32; Class::COUNT],
    /// The largest of all that stand first.
    pub heaviest: u32,
}

impl Schedule {
    /// The most urgent class that waits at a place, and how many tokens those
    /// of it that stand first would take.
    pub fn wanted_at(&self, id: PlaceId) -> Option<(Class, u32)> {
        let place = self.place(id);
        let booked = place.book.first().map(|&(class, _, flow)| (class, flow));
        let waiting = Class::ALL
            .into_iter()
            .find_map(|class| Some((class, self.first_waiter(id, class)?.1)));
        let first = booked.into_iter().chain(waiting);
        if let Some((class, _)) = first.clone().min() {
            // Whichever of them goes first must find what it takes.
            let of_class = first.filter(|(of, _)| *of == class);
            let costs = of_class.map(|(_, flow)| self.entry(flow).cost);
            return Some((class, costs.max().unwrap_or(1)));
        }
        // Booked flows that stand elsewhere will come here: granted tokens
        // must be there when they do.
        let coming = Class::ALL
            .into_iter()
            .find(|&class| place.class(class).soft > 0)?;
        Some((coming, place.cost_max))
    }

    /// Whether a flow stands at a bucket or a gate and nobody is before it
    /// there: then what it lacks is not the others' turn, and no window that
    /// errs on the safe side.
    pub fn is_first_at_bucket(&self, id: FlowId) -> bool {
        let entry = self.entry(id);
        let is_bucket = |stop: u8| {
            let place = self.place(entry.stop(stop).place);
            place.is_gate() || place.shape.kind == Kind::TokenBucket
        };
        match entry.standing {
            Standing::Waiting { stop }
            | Standing::Booked {
                stop: Some(stop), ..
            } if !is_bucket(stop) => false,
            Standing::Waiting { stop } => {
                let place = entry.stop(stop).place;
                let first = Class::ALL
                    .into_iter()
                    .find_map(|class| self.first_waiter(place, class));
                self.place(place).book.is_empty() && first.is_some_and(|(_, flow)| flow == id)
            }
            Standing::Booked {
                stop: Some(stop), ..
            } => {
                let place = self.place(entry.stop(stop).place);
                let first = place.book.first().map(|&(_, _, flow)| flow);
                first == Some(id) && !place.has_waiters_above(entry.class)
            }
            Standing::Booked { stop: None, .. } | Standing::Idle | Standing::Arriving => true,
        }
    }

    /// How many flows of this class or a higher one wait or are booked at a
    /// place.
    pub fn waiting_at(&self, id: PlaceId, class: Class) -> u64 {
        let place = self.place(id);
        let booked = place
            .book
            .iter()
            .filter(|(other, ..)| *other <= class)
            .count() as u64;
        let waiting: u64 = place
            .classes
            .iter()
            .take(class.index() + 1)
            .flat_map(|queue| &queue.nodes)
            .map(|&(_, _, node)| u64::from(self.nodes.get(node).waiting))
            .sum();
        booked + waiting
    }

    /// How many flows wait or are booked at a place, by class.
    pub fn waiters_at(&self, id: PlaceId) -> [u64; Class::COUNT] {
        let place = self.place(id);
        let mut waiters = [0; Class::COUNT];
        for (count, queue) in waiters.iter_mut().zip(place.classes.iter()) {
            let nodes = queue.nodes.iter();
            *count = nodes
                .map(|&(_, _, node)| u64::from(self.nodes.get(node).waiting))
                .sum();
        }
        for (class, ..) in &place.book {
            if let Some(count) = waiters.get_mut(class.index()) {
                *count += 1;
            }
        }
        waiters
    }

    /// How many tenants' queues and booked flows of a class want tokens of a
    /// place, and which classes do.
    pub fn demand_at(&self, id: PlaceId, class: Class) -> (usize, ClassMask) {
        let place = self.place(id);
        let booked = place
            .book
            .iter()
            .filter(|(other, ..)| *other == class)
            .count();
        let wants = |class: &Class| {
            let queue = place.class(*class);
            !queue.nodes.is_empty() || queue.soft > 0
        };
        let wanted = Class::ALL.into_iter().filter(wants);
        (
            booked + place.class(class).nodes.len(),
            wanted.fold(ClassMask::NONE, ClassMask::with),
        )
    }

    /// The lane of a gate and the classes that want through it.
    pub fn gate_classes(&self, id: PlaceId) -> Option<(LaneId, Vec<Class>)> {
        let place = self.place(id);
        let Holder::Gate(lane) = place.holder else {
            return None;
        };
        let wanted = |class: &Class| {
            let queue = place.class(*class);
            !queue.nodes.is_empty() || queue.booked > 0
        };
        Some((lane, Class::ALL.into_iter().filter(wanted).collect()))
    }

    /// The place at which a flow waits or is booked, if it does.
    pub fn place_of(&self, id: FlowId) -> Option<PlaceId> {
        let entry = self.flows.get(id.index())?.as_ref()?;
        match entry.standing {
            Standing::Waiting { stop }
            | Standing::Booked {
                stop: Some(stop), ..
            } => Some(entry.stop(stop).place),
            _ => None,
        }
    }

    /// What the next messages at a gate cost. None if all that ever came here
    /// cost 1.
    ///
    /// Of a class it is the least that one which may go next costs: an account
    /// that is too small for the first in the book lets the first waiter pass.
    /// Messages that must not go before a more urgent one count as no smaller
    /// than that.
    pub fn gate_costs(&self, id: PlaceId) -> Option<GateCosts> {
        let place = self.place(id);
        if place.cost_max <= 1 {
            return None;
        }
        let mut costs = GateCosts::default();
        let mut above = 0;
        let (mut booked_above, mut waits_above) = (false, false);
        for (class, told) in Class::ALL.into_iter().zip(&mut costs.least) {
            let booked = place.first_booked(class);
            let waiting = self.first_waiter(id, class).map(|(_, flow)| flow);
            let may_go = [
                booked.filter(|_| !booked_above && !waits_above),
                waiting.filter(|_| !waits_above),
                booked.or(waiting).filter(|&flow| self.has_credit(id, flow)),
            ];
            booked_above |= booked.is_some();
            waits_above |= waiting.is_some();
            let cost = |flow: FlowId| self.entry(flow).cost;
            let standing = [booked, waiting].into_iter().flatten().map(cost);
            let Some(least) = standing.clone().min() else {
                continue;
            };
            costs.heaviest = standing.max().unwrap_or(0).max(costs.heaviest);
            let next = may_go.into_iter().flatten().map(cost).min();
            *told = next.unwrap_or_else(|| least.max(above));
            above = above.max(*told);
        }
        Some(costs)
    }

    /// The first flows that wait or are booked at a place, in no order of turns.
    pub fn first_flows_at(&self, id: PlaceId, max: usize) -> impl Iterator<Item = FlowId> {
        let place = self.place(id);
        let booked = place.book.iter().map(|&(_, _, flow)| flow);
        let nodes = place.classes.iter().flat_map(|queue| &queue.nodes);
        let waiting = nodes.flat_map(|&(_, _, node)| {
            let first = self.nodes.get(node).first;
            std::iter::successors(first, |&flow| self.entry(flow).next)
        });
        booked.chain(waiting).take(max)
    }
}
