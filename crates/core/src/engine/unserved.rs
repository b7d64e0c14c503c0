//! Messages that lack nothing but a session, for those who watch that no
//! connection is idle beside them.

use super::Engine;
use super::matching::GATE_SAMPLE;
use crate::handle::AccountId;
use crate::message::Seq;
use crate::name::Name;
use crate::pool::Carrier;

/// A message that waits at a gate, and who would carry it with a session.
#[derive(Clone, Debug)]
pub struct Unserved {
    /// Which.
    pub seq: Seq,
    /// The accounts that have tokens for it, and whether each may connect.
    pub carriers: Vec<(Name, bool)>,
}

impl Engine {
    /// The first such message of at most `max` lanes.
    pub fn unserved(&self, max: usize) -> Vec<Unserved> {
        let desk = &self.counter.desk;
        if !self.counter.is_open() {
            return Vec::new();
        }
        let lanes = desk.carriers().filter_map(|(lane, classes, carriers)| {
            let gate = desk.lane(lane).gate;
            let flows = self.schedule.first_flows_at(gate, GATE_SAMPLE);
            let flows = flows.filter_map(|flow| self.counter.flows.get(flow));
            let mut waiting = flows.filter(|flow| classes.contains(flow.key.class));
            let seq = waiting.find_map(|flow| flow.heads.front())?.seq;
            let name = |id: AccountId| Some(desk.account(id)?.spec.id.clone());
            let named = |it: &Carrier| Some((name(it.account)?, it.may_connect));
            let carriers = carriers.iter().filter_map(named).collect();
            Some(Unserved { seq, carriers })
        });
        lanes.take(max).collect()
    }
}
