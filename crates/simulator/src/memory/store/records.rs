//! What records do to messages.
//!
//! A record takes its message out of the queue when it is handed over, so that
//! nobody is given a message that is being cancelled; it has its effect when it
//! is durable. A lost record leaves the message out: the record comes again, or
//! a crash forgets both.

use outflow_core::engine::SavedLimit;
use outflow_core::engine::action::{Attempt, Hasten, Record};
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::Wall;

use super::image::Image;
use super::slab::{Place, Slot};

impl Image {
    /// A record is on its way to the disk.
    pub fn expect(&mut self, record: &Record) {
        match record {
            Record::Deferral { seq, .. }
            | Record::Settlement { seq, .. }
            | Record::Dead { seq, .. } => self.take_out(*seq),
            Record::Cancelled { flow, through } => self.sweep(*flow, *through),
            Record::Moved {
                flow,
                through,
                held,
                ..
            } => {
                self.sweep(*flow, *through);
                for &seq in held {
                    self.take_out(seq);
                }
            }
            Record::Reservation { .. }
            | Record::Forgotten { .. }
            | Record::Held { .. }
            | Record::Adapted { .. }
            | Record::Feedback { .. }
            | Record::Hastened { .. } => {}
        }
    }

    /// A record is durable.
    pub fn apply(&mut self, now: Wall, record: &Record) {
        match record {
            Record::Deferral {
                seq,
                until,
                attempt,
                ..
            } => self.defer(*seq, *until, attempt.as_deref()),
            Record::Settlement { seq, state, .. } => self.finish(now, *seq, *state),
            Record::Dead { seq, .. } => self.finish(now, *seq, State::Dead),
            Record::Cancelled { flow, through } => {
                for slot in self.swept(*flow, *through) {
                    self.settle(now, slot, State::Cancelled);
                }
                self.end_sweep(*flow);
            }
            Record::Moved {
                flow,
                to,
                through,
                held,
            } => {
                self.relocate(*flow, *to, *through, held);
                self.end_sweep(*flow);
            }
            Record::Reservation { key, saved, block } => {
                // The state was saved before this block and after all blocks
                // before it, so it knows those.
                let known = SavedLimit {
                    saved: saved.clone(),
                    reserved_since: u64::from(*block),
                };
                self.limits.insert((**key).clone(), known);
            }
            Record::Forgotten { key } => {
                self.limits.remove(&**key);
            }
            Record::Held { key, hold } => {
                self.holds.insert((**key).clone(), *hold);
            }
            Record::Adapted { key, lore } => {
                self.adapted.insert((**key).clone(), (**lore).clone());
            }
            Record::Hastened { flow, which } => self.hasten(now, *flow, *which),
            // A receipt would keep it; nobody asks this store for receipts.
            Record::Feedback { .. } => {}
        }
    }

    /// A record did not reach the disk. It will come again.
    pub fn lose(&mut self, record: &Record) {
        match record {
            Record::Deferral { seq, .. }
            | Record::Settlement { seq, .. }
            | Record::Dead { seq, .. } => {
                self.one_record_less(*seq);
            }
            Record::Cancelled { flow, .. } => self.lose_sweep(*flow),
            Record::Moved { flow, held, .. } => {
                self.lose_sweep(*flow);
                for &seq in held {
                    self.one_record_less(seq);
                }
            }
            Record::Reservation { .. }
            | Record::Forgotten { .. }
            | Record::Held { .. }
            | Record::Adapted { .. }
            | Record::Feedback { .. }
            | Record::Hastened { .. } => {}
        }
    }

    /// Messages that were put off are due now. A time that the submitter gave
    /// stands.
    fn hasten(&mut self, now: Wall, flow: FlowId, which: Hasten) {
        let slots: Vec<Slot> = match which {
            Hasten::One(seq) => self.slab.find(seq).into_iter().collect(),
            Hasten::Through(_) => {
                let flow = self.flow(flow);
                flow.map_or_else(Vec::new, |flow| flow.later.iter(&self.slab).collect())
            }
        };
        for slot in slots {
            let Some(entry) = self.slab.get_mut(slot) else {
                continue;
            };
            let meant = match which {
                Hasten::One(_) => true,
                Hasten::Through(through) => entry.head.seq <= through,
            };
            if meant && entry.is_deferred && entry.place == Place::Later && entry.flow == flow {
                entry.due_at = Some(now);
                self.queue(slot, false);
            }
        }
    }

    fn take_out(&mut self, seq: Seq) {
        if let Some(slot) = self.slab.find(seq) {
            self.put(slot, Place::Leaving);
            if let Some(entry) = self.slab.get_mut(slot) {
                entry.records += 1;
            }
        }
    }

    /// The message, and whether no other record about it is under way.
    fn one_record_less(&mut self, seq: Seq) -> Option<(Slot, bool)> {
        let slot = self.slab.find(seq)?;
        let entry = self.slab.get_mut(slot)?;
        entry.records = entry.records.saturating_sub(1);
        Some((slot, entry.records == 0))
    }

    fn defer(&mut self, seq: Seq, until: Wall, attempt: Option<&Attempt>) {
        let Some((slot, is_last)) = self.one_record_less(seq) else {
            return;
        };
        let Some(entry) = self.slab.get_mut(slot) else {
            return;
        };
        entry.due_at = Some(until);
        entry.is_deferred = true;
        if let Some(attempt) = attempt {
            entry.head.first_attempt_at = attempt.first_attempt_at;
            entry.head.attempts = attempt.attempts;
            entry.head.uncertain = attempt.uncertain;
            entry.head.last_delay = attempt.delay;
        }
        if is_last {
            self.put(slot, Place::Later);
            self.due.insert(until, slot, seq);
            self.watch_again(slot);
        }
    }

    /// A message whose expiry passed while it was out is told of again.
    fn watch_again(&mut self, slot: Slot) {
        if let Some(entry) = self.slab.get_mut(slot)
            && std::mem::take(&mut entry.overdue)
        {
            self.expiry
                .insert(entry.head.expires_at, slot, entry.head.seq);
        }
    }

    fn finish(&mut self, now: Wall, seq: Seq, state: State) {
        if let Some(slot) = self.slab.find(seq) {
            self.settle(now, slot, state);
        }
    }

    /// Sets the messages of a flow aside that wait in its queue.
    fn sweep(&mut self, id: FlowId, through: Seq) {
        let Some(flow) = self.flow_mut(id) else {
            // Its messages are behind its name, and before the sweep.
            self.sweeps_ahead.entry(id).or_default().begin(through);
            return;
        };
        flow.sweeps.begin(through);
        let (due, fresh) = (flow.due, flow.fresh);
        let queued: Vec<Slot> = due
            .iter(&self.slab)
            .chain(fresh.iter(&self.slab))
            .filter(|slot| self.is_through(*slot, through))
            .collect();
        for slot in queued {
            self.put(slot, Place::Aside);
        }
    }

    fn is_through(&self, slot: Slot, through: Seq) -> bool {
        let entry = self.slab.get(slot);
        entry.is_some_and(|entry| entry.head.seq <= through)
    }

    /// The messages that a durable sweep is about.
    fn swept(&self, id: FlowId, through: Seq) -> Vec<Slot> {
        let Some(flow) = self.flow(id) else {
            return Vec::new();
        };
        let waiting = flow.aside.iter(&self.slab);
        let waiting = waiting.chain(flow.later.iter(&self.slab));
        waiting
            .filter(|slot| self.is_through(*slot, through))
            .collect()
    }

    fn relocate(&mut self, from: FlowId, to: FlowId, through: Seq, held: &[Seq]) {
        let mut moving = Vec::new();
        for &seq in held {
            moving.extend(self.one_record_less(seq).map(|(slot, _)| slot));
        }
        moving.extend(self.swept(from, through));
        for slot in moving {
            let Some(entry) = self.slab.get(slot) else {
                continue;
            };
            let stays_later = entry.place == Place::Later;
            let old = entry.flow;
            self.put(slot, Place::Leaving);
            if let Some(entry) = self.slab.get_mut(slot) {
                entry.flow = to;
            }
            if let Some(flow) = self.flow_mut(old) {
                flow.live -= 1;
            }
            if let Some(flow) = self.flow_mut(to) {
                flow.live += 1;
            }
            if stays_later {
                self.put(slot, Place::Later);
            } else {
                self.queue(slot, false);
                self.watch_again(slot);
            }
        }
    }

    fn end_sweep(&mut self, id: FlowId) {
        let Some(flow) = self.flow_mut(id) else {
            return;
        };
        flow.sweeps.open = flow.sweeps.open.saturating_sub(1);
        if flow.sweeps.open > 0 {
            return;
        }
        flow.sweeps.through = Seq(0);
        let aside = flow.aside;
        let left: Vec<Slot> = aside.iter(&self.slab).collect();
        for slot in left {
            self.queue(slot, false);
            self.watch_again(slot);
        }
        self.look_at_end(id);
    }

    fn lose_sweep(&mut self, id: FlowId) {
        if let Some(flow) = self.flow_mut(id) {
            flow.sweeps.lost += 1;
        } else if let Some(sweeps) = self.sweeps_ahead.get_mut(&id) {
            sweeps.lost += 1;
        }
    }
}
