//! Permits in flight: what was sent and has no reply yet.
//!
//! Each delivery gets exactly one reply that counts. A second answer finds its
//! permit's generation gone; a delivery without any is declared uncertain at
//! its deadline, else its slots would never come back.

use std::collections::VecDeque;

use super::lessons::Lessons;
use crate::handle::{AccountId, AccountLimitId, FlowId, LaneId, PermitId, SessionRef};
use crate::message::{Head, Seq};
use crate::schedule::place::PlaceId;
use crate::time::Mono;

/// One delivery in flight.
#[derive(Debug)]
pub(super) struct Permit {
    pub flow: FlowId,
    /// The lane it was sent in: its flow may have another by now.
    pub lane: LaneId,
    pub account: AccountId,
    pub session: SessionRef,
    pub head: Head,
    pub sent_at: Mono,
    /// Concurrency limits of the flow that hold a slot for it.
    pub slots: Box<[PlaceId]>,
    /// Concurrency limits of the account that hold a slot for it.
    pub held: Box<[AccountLimitId]>,
    /// Whom its reply teaches.
    pub lessons: Lessons,
}

/// All deliveries in flight.
#[derive(Debug, Default)]
pub(super) struct Permits {
    slab: Vec<(u32, Option<Permit>)>,
    free: Vec<u32>,
    /// In order of sending, which is the order of deadlines.
    deadlines: VecDeque<(Mono, PermitId)>,
    in_flight: usize,
}

impl Permits {
    /// Notes a delivery.
    pub fn issue(&mut self, permit: Permit, deadline: Mono) -> PermitId {
        self.in_flight += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slab.push((0, None));
            u32::try_from(self.slab.len() - 1).expect("fewer than 2^32 deliveries in flight")
        });
        let slot = self
            .slab
            .get_mut(index as usize)
            .expect("a free or new slot");
        slot.1 = Some(permit);
        let id = PermitId {
            index,
            generation: slot.0,
        };
        self.deadlines.push_back((deadline, id));
        id
    }

    /// Ends a delivery; nothing if it had ended already.
    pub fn end(&mut self, id: PermitId) -> Option<Permit> {
        let slot = self.slab.get_mut(id.index as usize)?;
        if slot.0 != id.generation {
            return None;
        }
        let permit = slot.1.take()?;
        slot.0 = slot.0.wrapping_add(1);
        self.free.push(id.index);
        self.in_flight -= 1;
        // Ended deliveries leave their deadlines behind; drop those in front.
        while let Some(&(_, front)) = self.deadlines.front() {
            if self.is_live(front) {
                break;
            }
            self.deadlines.pop_front();
        }
        Some(permit)
    }

    /// The next delivery whose deadline has passed.
    pub fn overdue(&self, now: Mono) -> Option<PermitId> {
        self.deadlines
            .front()
            .filter(|&&(deadline, _)| deadline <= now)
            .map(|&(_, id)| id)
    }

    /// When the next deadline passes.
    pub fn next_wake(&self) -> Mono {
        self.deadlines
            .front()
            .map_or(Mono::NEVER, |&(deadline, _)| deadline)
    }

    /// How many are in flight.
    pub fn len(&self) -> usize {
        self.in_flight
    }

    /// Whether a message is on its way. Looks at all that are: for rare use.
    pub fn is_in_flight(&self, flow: FlowId, seq: Seq) -> bool {
        self.slab
            .iter()
            .filter_map(|(_, permit)| permit.as_ref())
            .any(|permit| permit.flow == flow && permit.head.seq == seq)
    }

    /// The numbers of all messages on their way, in order.
    pub fn seqs(&self) -> Vec<Seq> {
        let permits = self.slab.iter().filter_map(|(_, permit)| permit.as_ref());
        let mut seqs: Vec<Seq> = permits.map(|permit| permit.head.seq).collect();
        seqs.sort_unstable();
        seqs
    }

    fn is_live(&self, id: PermitId) -> bool {
        self.slab
            .get(id.index as usize)
            .is_some_and(|(generation, permit)| *generation == id.generation && permit.is_some())
    }
}
