//! What must hold after every step, recounted from scratch.
//!
//! Costs time in proportion to everything there is; simulations and tests call
//! it, the engine never does.

use std::collections::BTreeMap;

use super::entry::Standing;
use super::place::PlaceId;
use super::{Outlet, Schedule};
use crate::class::Class;
use crate::handle::FlowId;
use crate::limit::Kind;
use crate::limit::lease::PARTING_SEEN;
use crate::time::{Nanos, Now};

/// What a recount finds at one place.
#[derive(Default)]
struct Recount {
    claimed: u64,
    soft: [u64; Class::COUNT],
    booked: [u64; Class::COUNT],
    waiting: u64,
}

impl Schedule {
    /// The first thing that is wrong, in words.
    pub fn check(&self, now: &Now, outlet: &impl Outlet) -> Result<(), String> {
        let counts = self.recount()?;
        for (index, place) in self.places.iter().enumerate() {
            let id = PlaceId(index as u32);
            let fallback = Recount::default();
            let count = counts.get(&id).unwrap_or(&fallback);
            let soft: Vec<u64> = place.classes.iter().map(|queue| queue.soft).collect();
            let booked: Vec<u64> = place.classes.iter().map(|queue| queue.booked).collect();
            let waiting: u64 = place
                .classes
                .iter()
                .flat_map(|queue| &queue.nodes)
                .map(|&(_, _, node)| u64::from(self.nodes.get(node).waiting))
                .sum();
            let claimed: u64 = place.claims.iter().map(|it| u64::from(it.cost)).sum();
            if claimed != count.claimed
                || soft != count.soft
                || place.soft_all != soft.iter().sum::<u64>()
                || u64::from(place.waiting) != count.waiting
                || booked != count.booked
                || waiting != count.waiting
            {
                return Err(format!("place {index}: counts do not agree with its flows"));
            }
            self.check_depth(id)?;
            self.check_awake(now, id, outlet)?;
        }
        self.check_tags()
    }

    /// Nothing can be granted at a place that nobody is about to look at. A
    /// timer of a later time is no excuse.
    fn check_awake(&self, now: &Now, id: PlaceId, outlet: &impl Outlet) -> Result<(), String> {
        let place = self.place(id);
        // The timer of a calendar window goes by the wall clock, and a parting
        // of the clocks is noticed only from this on.
        let late = match place.shape.kind {
            Kind::CalendarWindow => PARTING_SEEN,
            _ => Nanos::ZERO,
        };
        if place.marked || place.timer <= now.mono + late || !place.is_wanted() {
            return Ok(());
        }
        match self.next_step(now, id, outlet) {
            Some(_) if place.is_gate() => Err(format!(
                "gate {}: open beside a waiting flow, unmarked",
                id.0
            )),
            Some(step) => Err(format!(
                "place {}: could be served ({step:?}), but is neither marked nor timed",
                id.0
            )),
            None => Ok(()),
        }
    }

    /// Booked flows are few, whatever waits.
    fn check_depth(&self, id: PlaceId) -> Result<(), String> {
        let place = self.place(id);
        let depth = place.book_depth();
        for class in Class::ALL {
            let queue = place.class(class);
            if queue.soft > depth.max(queue.soft_before) {
                return Err(format!(
                    "place {}: booked flows of {class} cost {}, more than {depth}",
                    id.0, queue.soft
                ));
            }
        }
        Ok(())
    }

    fn recount(&self) -> Result<BTreeMap<PlaceId, Recount>, String> {
        let mut counts: BTreeMap<PlaceId, Recount> = BTreeMap::new();
        let flows = self
            .flows
            .iter()
            .enumerate()
            .filter_map(|(i, e)| Some((i, e.as_ref()?)));
        for (index, entry) in flows {
            let flow = FlowId(index as u32);
            let class = entry.class.index();
            let cost = u64::from(entry.cost);
            for stop in entry.stop_indices() {
                let count = counts.entry(entry.stop(stop).place).or_default();
                if entry.holds(stop) {
                    count.claimed += cost;
                }
                if entry.soft
                    && let Some(soft) = count.soft.get_mut(class)
                {
                    *soft += cost;
                }
            }
            match entry.standing {
                Standing::Idle | Standing::Arriving if entry.soft || entry.claims != 0 => {
                    return Err(format!("flow {flow} rests but holds something"));
                }
                Standing::Idle | Standing::Arriving => {}
                Standing::Waiting { stop } => {
                    counts.entry(entry.stop(stop).place).or_default().waiting += 1;
                }
                Standing::Booked {
                    ticket,
                    stop: Some(stop),
                } => {
                    let id = entry.stop(stop).place;
                    if !self.place(id).book.contains(&(entry.class, ticket, flow)) {
                        return Err(format!("flow {flow} is not in the book it stands in"));
                    }
                    let count = counts.entry(id).or_default();
                    if let Some(booked) = count.booked.get_mut(class) {
                        *booked += cost;
                    }
                }
                Standing::Booked { stop: None, .. } => {
                    return Err(format!("flow {flow} is booked but stands in no book"));
                }
            }
        }
        Ok(counts)
    }

    fn check_tags(&self) -> Result<(), String> {
        for node in self.nodes.iter() {
            let queued = node.queued_at.is_some();
            if queued != (node.waiting > 0) || queued != node.first.is_some() {
                return Err(format!(
                    "a node of place {} is queued without flows",
                    node.place.0
                ));
            }
        }
        Ok(())
    }
}
