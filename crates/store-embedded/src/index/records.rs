//! What records do to messages.
//!
//! A record takes its message out of the queue when it is handed over, so that
//! nobody is given a message that is being cancelled; it has its effect when it
//! is durable. A lost record leaves the message out: the record comes again, or
//! a crash forgets both.
//!
//! A sweep (all of a flow is cancelled or moved) reaches what waits when it is
//! durable, not what was handed out before. After a crash nobody knows any more
//! what was handed out, so the record says which messages it does not reach.

use std::sync::Arc;

use outflow_core::engine::SavedLimit;
use outflow_core::engine::action::{Attempt, Hasten, Record};
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::Wall;

use super::slots::{Slot, Stamp, Stand};
use super::{Index, Reserved};
use crate::journal::entry::{Context, Tried};
use crate::journal::place::Place;
use crate::journal::task::Numbered;

impl Index {
    /// Takes a new message in.
    pub fn accept(&mut self, now: Wall, it: &Numbered) {
        let seq = it.given.seq;
        let not_before = it
            .message
            .not_before
            .filter(|at| *at > it.given.accepted_at);
        let slot = Slot {
            root: it.root,
            body: it.body,
            recipient: it.message.recipient.0,
            key: it.key,
            flow: it.message.flow.0,
            // Not sent after it, be it by microseconds.
            expires_at: Stamp::floor(it.message.expires_at),
            accepted_at: Stamp::of(it.given.accepted_at),
            stand: Stand::Dead,
            ..Slot::default()
        };
        let expires_at = slot.expires_at.wall();
        self.add(seq, slot, it.message.cost, not_before);
        self.expiry.insert(now, expires_at, seq);
        match not_before {
            Some(at) => {
                self.put(seq, Stand::Later);
                self.due.insert(now, at, seq);
            }
            None => self.queue(seq, true),
        }
    }

    /// A record is on its way to the disk. What it needs to be replayed.
    pub fn expect(&mut self, at: Wall, record: &Record) -> Context {
        let mut context = Context {
            at,
            ..Context::default()
        };
        match record {
            Record::Deferral { seq, .. } => {
                let slot = self.slots.get(*seq);
                let more = slot.and_then(|slot| self.more(*seq, slot));
                context.before = more.map_or(Place::NONE, |more| more.latest);
                self.take_out(*seq, true);
            }
            Record::Settlement { seq, .. } | Record::Dead { seq, .. } => {
                self.take_out(*seq, false);
            }
            Record::Cancelled { flow, through } => {
                self.add_flow_record(*flow);
                self.sweep(*flow, *through);
                context.except = self.out_of_reach(*flow, *through);
            }
            Record::Moved {
                flow,
                to,
                through,
                held,
            } => {
                self.add_flow_record(*flow);
                self.add_flow_record(*to);
                self.sweep(*flow, *through);
                context.except = self.out_of_reach(*flow, *through);
                for &seq in held {
                    self.take_out(seq, false);
                }
            }
            Record::Hastened { flow, .. } => self.add_flow_record(*flow),
            Record::Reservation { key, .. }
            | Record::Forgotten { key }
            | Record::Held { key, .. }
            | Record::Adapted { key, .. } => {
                *self.under_way.entry(Arc::clone(key)).or_insert(0) += 1;
            }
            Record::Feedback { .. } => {}
        }
        context
    }

    /// A record that was expected is durable or lost: what it says of a limit or
    /// an account is not under way any more.
    pub fn arrived_of_limit(&mut self, record: &Record) {
        let (Record::Reservation { key, .. }
        | Record::Forgotten { key }
        | Record::Held { key, .. }
        | Record::Adapted { key, .. }) = record
        else {
            return;
        };
        if let Some(count) = self.under_way.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(key);
            }
        }
    }

    /// A record is durable, at `place`.
    pub fn apply(&mut self, now: Wall, record: Record, context: &Context, place: Place) {
        let at = context.at;
        self.take_flow_record(&record);
        match record {
            Record::Deferral {
                seq,
                until,
                attempt,
                ..
            } => self.defer(now, seq, until, attempt.as_deref(), place),
            Record::Settlement { seq, state, .. } => self.settle(at, seq, state, place),
            Record::Dead { seq, .. } => self.settle(at, seq, State::Dead, place),
            Record::Cancelled { flow, through } => {
                for seq in self.swept(flow, through) {
                    self.settle(at, seq, State::Cancelled, place);
                }
                self.end_sweep(now, flow);
            }
            Record::Moved {
                flow,
                to,
                through,
                held,
            } => {
                self.relocate(now, flow, to, through, &held);
                self.end_sweep(now, flow);
            }
            Record::Reservation { key, saved, block } => {
                // The state was saved before this block and after all blocks
                // before it, so it knows those.
                let limit = SavedLimit {
                    saved,
                    reserved_since: u64::from(block),
                };
                self.limits
                    .insert((*key).clone(), Reserved { limit, place });
            }
            Record::Forgotten { key } => {
                self.limits.remove(&*key);
            }
            Record::Held { key, hold } => {
                self.holds.insert((*key).clone(), (hold, place));
            }
            Record::Adapted { key, lore } => {
                self.adapted.insert((*key).clone(), (*lore, place));
            }
            Record::Hastened { flow, which } => self.hasten(at, flow, which),
            Record::Feedback { seq, error, .. } => self.feedback.push((seq, at, *error)),
        }
    }

    /// A record did not reach the disk. It will come again.
    pub fn lose(&mut self, record: &Record) {
        self.take_flow_record(record);
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

    fn add_flow_record(&mut self, id: FlowId) {
        match self.flow_mut(id) {
            Some(flow) => flow.records += 1,
            None => self.unnamed.entry(id).or_default().records += 1,
        }
    }

    fn take_flow_record(&mut self, record: &Record) {
        let (flow, to) = match record {
            Record::Cancelled { flow, .. } | Record::Hastened { flow, .. } => (*flow, None),
            Record::Moved { flow, to, .. } => (*flow, Some(*to)),
            _ => return,
        };
        for id in std::iter::once(flow).chain(to) {
            if let Some(it) = self.flow_mut(id) {
                it.records = it.records.saturating_sub(1);
                self.look_at_end(id);
            } else if let Some(unnamed) = self.unnamed.get_mut(&id) {
                unnamed.records = unnamed.records.saturating_sub(1);
            }
        }
    }

    /// Dead letters are about to be forgotten.
    pub fn expect_forgetting(&mut self, seqs: &[Seq]) {
        for &seq in seqs {
            if let Some(slot) = self.slots.get_mut(seq) {
                slot.flags.add_record();
            }
        }
    }

    /// Whether a copy of the message as it is now would overtake a record about
    /// it that is on its way to the disk.
    pub fn is_about_to_change(&self, slot: &Slot) -> bool {
        let flow = self.flow(slot.flow());
        slot.flags.records() > 0 || flow.is_some_and(|flow| flow.records > 0)
    }

    /// Messages that were put off are due now. A time that the submitter gave
    /// stands.
    fn hasten(&mut self, at: Wall, flow: FlowId, which: Hasten) {
        let seqs: Vec<Seq> = match which {
            Hasten::One(seq) => vec![seq],
            Hasten::Through(through) => {
                let later = self.flow(flow).map(|flow| flow.later).unwrap_or_default();
                let later = later.iter(&self.slots);
                later.filter(|seq| *seq <= through).collect()
            }
        };
        for seq in seqs {
            let is_meant = |slot: &Slot| slot.stand == Stand::Later && slot.flow() == flow;
            if self.slots.get(seq).is_some_and(is_meant)
                && let Some(more) = self.more_mut(seq).filter(|more| more.is_deferred)
            {
                more.due_at = Some(at);
                self.queue(seq, false);
            }
        }
    }

    fn take_out(&mut self, seq: Seq, deferring: bool) {
        if self.live(seq).is_none() {
            return;
        }
        self.put(seq, Stand::Leaving);
        if let Some(slot) = self.slots.get_mut(seq) {
            slot.flags.add_record();
            slot.flags.set_deferring(deferring);
        }
    }

    /// Whether the message lives and no other record about it is under way.
    fn one_record_less(&mut self, seq: Seq) -> bool {
        if self.live(seq).is_none() {
            return false;
        }
        let Some(slot) = self.slots.get_mut(seq) else {
            return false;
        };
        slot.flags.take_record();
        slot.flags.records() == 0
    }

    fn defer(&mut self, now: Wall, seq: Seq, until: Wall, attempt: Option<&Attempt>, place: Place) {
        if self.live(seq).is_none() {
            return;
        }
        let is_last = self.one_record_less(seq);
        let Some(more) = self.more_mut(seq) else {
            return;
        };
        more.due_at = Some(until);
        more.is_deferred = true;
        more.latest = place;
        if let Some(attempt) = attempt {
            more.tried = Tried {
                attempts: attempt.attempts,
                uncertain: attempt.uncertain,
                first_attempt_at: attempt.first_attempt_at,
                last_delay: attempt.delay,
                dead: false,
            };
        }
        if is_last {
            self.put(seq, Stand::Later);
            self.due.insert(now, until, seq);
            self.watch_again(now, seq);
        }
    }

    /// A message whose expiry passed while it was out is told of again.
    fn watch_again(&mut self, now: Wall, seq: Seq) {
        if let Some(slot) = self.slots.get_mut(seq)
            && slot.flags.overdue()
        {
            slot.flags.set_overdue(false);
            let expires_at = slot.expires_at.wall();
            self.expiry.insert(now, expires_at, seq);
        }
    }

    /// Sets the messages of a flow aside that wait in its queue.
    fn sweep(&mut self, id: FlowId, through: Seq) {
        let Some(flow) = self.flow_mut(id) else {
            // Its messages are behind its name, and before the sweep.
            self.unnamed.entry(id).or_default().sweeps.begin(through);
            return;
        };
        flow.sweeps.begin(through);
        let (due, fresh) = (flow.due, flow.fresh);
        let queued = due.iter(&self.slots).chain(fresh.iter(&self.slots));
        let queued: Vec<Seq> = queued.filter(|seq| *seq <= through).collect();
        for seq in queued {
            self.put(seq, Stand::Aside);
        }
    }

    /// Messages of a flow that a sweep handed over now will not reach. One
    /// whose deferral is under way will wait again by then.
    fn out_of_reach(&self, id: FlowId, through: Seq) -> Vec<u64> {
        let out = self.flow(id).map(|flow| flow.out).unwrap_or_default();
        let out = out.iter(&self.slots).filter(|seq| *seq <= through);
        let out = out.filter(|seq| {
            let slot = self.slots.get(*seq);
            !slot.is_some_and(|slot| {
                slot.stand == Stand::Leaving && slot.flags.records() > 0 && slot.flags.deferring()
            })
        });
        out.map(|seq| seq.0).collect()
    }

    /// The messages that a durable sweep is about.
    fn swept(&self, id: FlowId, through: Seq) -> Vec<Seq> {
        let Some(flow) = self.flow(id) else {
            return Vec::new();
        };
        let waiting = flow.aside.iter(&self.slots);
        let waiting = waiting.chain(flow.later.iter(&self.slots));
        waiting.filter(|seq| *seq <= through).collect()
    }

    fn relocate(&mut self, now: Wall, from: FlowId, to: FlowId, through: Seq, held: &[Seq]) {
        let mut moving = Vec::new();
        for &seq in held {
            self.one_record_less(seq);
            moving.extend(self.live(seq).map(|_| seq));
        }
        moving.extend(self.swept(from, through));
        for seq in moving {
            let stays_later = self
                .slots
                .get(seq)
                .is_some_and(|slot| slot.stand == Stand::Later);
            self.give(seq, to);
            if stays_later {
                self.put(seq, Stand::Later);
            } else {
                self.queue(seq, false);
                self.watch_again(now, seq);
            }
        }
    }

    /// A message belongs to another flow, in which it stands nowhere yet.
    pub(super) fn give(&mut self, seq: Seq, to: FlowId) {
        // Stands in no list: the links belong to the flow.
        self.put(seq, Stand::Dead);
        let Some(slot) = self.slots.get_mut(seq) else {
            return;
        };
        let old = slot.flow();
        slot.flow = to.0;
        if let Some(flow) = self.flow_mut(old) {
            flow.live = flow.live.saturating_sub(1);
            self.look_at_end(old);
        }
        if let Some(flow) = self.flow_mut(to) {
            flow.live += 1;
        }
    }

    fn end_sweep(&mut self, now: Wall, id: FlowId) {
        let Some(flow) = self.flow_mut(id) else {
            return;
        };
        if !flow.sweeps.end() {
            return;
        }
        let aside = flow.aside;
        let left: Vec<Seq> = aside.iter(&self.slots).collect();
        for seq in left {
            self.queue(seq, false);
            self.watch_again(now, seq);
        }
        self.look_at_end(id);
    }

    fn lose_sweep(&mut self, id: FlowId) {
        if let Some(flow) = self.flow_mut(id) {
            flow.sweeps.lose();
        } else if let Some(unnamed) = self.unnamed.get_mut(&id) {
            unnamed.sweeps.lose();
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_core::destination::Destination;
    use outflow_core::flow::FlowKey;
    use outflow_core::message::Recipient;
    use outflow_core::time::Nanos;
    use outflow_ports::intake::Given;
    use outflow_ports::store::NewMessage;

    use super::*;
    use crate::settings::Settings;

    const NEW_YEAR: Wall = Wall(1_767_225_600_000_000_000);

    #[test]
    fn a_message_is_kept_no_longer_than_until_its_expiry() {
        let mut index = Index::new(&Settings::default());
        let (flow, seq) = (FlowId(0), Seq(1));
        let key = FlowKey::to(Destination::isp("google"));
        index.open(flow, Arc::new(key), Place::NONE);
        for micros in [0, 1, 4, 9, 10, 19] {
            let expires_at = NEW_YEAR + Nanos(micros * 1_000);
            let given = Given {
                seq: Seq(seq.0 + micros),
                accepted_at: NEW_YEAR,
                known: false,
            };
            let message = NewMessage {
                flow,
                idempotency_key: None,
                not_before: None,
                expires_at,
                recipient: Recipient(1),
                cost: 1,
                envelope: Arc::from(*b"to somebody"),
                body: Arc::from(*b"hello"),
            };
            index.accept(
                NEW_YEAR,
                &Numbered {
                    given,
                    key: 0,
                    message,
                    root: Place::NONE,
                    body: Place::NONE,
                },
            );
            let slot = index.slots.get(given.seq).unwrap();
            let kept = index.head(given.seq, slot).expires_at;
            assert!(kept <= expires_at, "{micros}");
            assert!(expires_at.since(kept) < Nanos(10_000), "{micros}");
        }
    }
}
