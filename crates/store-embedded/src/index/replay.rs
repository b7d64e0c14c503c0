//! What a start reads from the journal, entry by entry, and where every live
//! message waits after that.
//!
//! While entries are replayed messages stand in no lists: those would only be
//! made twice. Sweeps need to find the messages of a flow; from the first sweep
//! on all of a flow stand in one list, in whatever order. A flow whose name was written again
//! behind its messages has a name for the time being.

use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_core::engine::SavedLimit;
use outflow_core::engine::action::Hasten;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::Wall;

use super::slots::{Slot, Stamp, Stand};
use super::{Flow, Index, Reserved};
use crate::journal::codec::In;
use crate::journal::entry::{Entry, Tried, Written};
use crate::journal::place::Place;
use crate::journal::words;

impl Index {
    /// Does again what an entry of the journal did.
    pub fn replay(&mut self, entry: Entry<'_>, place: Place) {
        match entry {
            Entry::Flow { flow, key } => self.open(flow, Arc::new(key), place),
            Entry::Message(message) => self.replay_message(&message, None, place),
            Entry::Kept {
                message,
                tried,
                events,
            } => {
                self.replay_message(&message, Some(tried), place);
                let is_put_off = message.due_at.is_some();
                if is_put_off
                    && (tried.attempts > 0 || was_deferred(events))
                    && let Some(more) = self.more_mut(message.seq)
                {
                    more.is_deferred = true;
                }
            }
            Entry::Deferral {
                seq, until, tried, ..
            } => self.replay_deferral(seq, until, tried, place),
            Entry::Settlement { seq, at, state, .. } => self.settle(at, seq, state, place),
            Entry::Dead { seq, at, .. } => self.settle(at, seq, State::Dead, place),
            Entry::Feedback {
                seq,
                at,
                mut detail,
            } => {
                let detail = words::read_detail(&mut detail);
                if let Some(error) = detail.and_then(|detail| detail.error) {
                    self.feedback.push((seq, at, error));
                }
            }
            Entry::Cancelled {
                flow,
                through,
                except,
                at,
            } => {
                self.link();
                for seq in self.reached(flow, through, except) {
                    self.settle(at, seq, State::Cancelled, place);
                }
            }
            Entry::Moved {
                flow,
                to,
                through,
                held,
                except,
            } => {
                self.link();
                let mut moving = self.reached(flow, through, except);
                moving.extend(held.into_iter().map(Seq));
                self.name_for_now(to);
                for seq in moving {
                    if self.live(seq).is_some() {
                        self.give(seq, to);
                        self.put(seq, Stand::Fresh);
                    }
                }
            }
            Entry::Hastened { flow, which, at } => self.replay_haste(flow, which, at),
            Entry::Reservation { key, saved, block } => {
                let (Ok(key), Ok(saved)) = (key.parse(), serde_json::from_slice(saved)) else {
                    return;
                };
                let limit = SavedLimit {
                    saved,
                    reserved_since: u64::from(block),
                };
                self.limits.insert(key, Reserved { limit, place });
            }
            Entry::Forgotten { key } => {
                if let Ok(key) = key.parse() {
                    self.limits.remove(&key);
                }
            }
            Entry::Held { key, hold } => {
                if let Ok(key) = key.parse() {
                    self.holds.insert(key, (hold, place));
                }
            }
            Entry::Adapted { key, lore } => {
                let (Ok(key), Ok(lore)) = (key.parse(), serde_json::from_slice(lore)) else {
                    return;
                };
                self.adapted.insert(key, (lore, place));
            }
            Entry::Forget { seqs } => {
                let seqs: Vec<Seq> = seqs.into_iter().map(Seq).collect();
                self.forget(&seqs);
            }
            Entry::Keys { keys, .. } => {
                let segment = place.segment();
                for key in keys {
                    self.keys.remembered.add(key, segment);
                }
            }
            Entry::Commit(_) | Entry::Body | Entry::Filler => {}
        }
    }

    /// What was written of limits before this position is not all that was.
    pub fn forget_limits_before(&mut self, position: u64) {
        let is_known = |reserved: &Reserved| reserved.place.position() >= position;
        self.limits.retain(|_, reserved| is_known(reserved));
    }

    fn replay_message(&mut self, message: &Written<'_>, tried: Option<Tried>, place: Place) {
        let seq = message.seq;
        // A copy takes the place of what it was copied from.
        if let Some(from) = self.slots.get(seq).map(|slot| slot.root) {
            self.rewritten(seq, from, place);
        } else {
            self.slots_entry(message, place);
        }
        if let Some(tried) = tried {
            if let Some(slot) = self.slots.get(seq)
                && slot.flow() != message.flow
            {
                self.name_for_now(message.flow);
                self.give(seq, message.flow);
                self.put(seq, Stand::Fresh);
            }
            if tried.attempts > 0
                && let Some(more) = self.more_mut(seq)
            {
                more.tried = tried;
            }
            if tried.dead && self.live(seq).is_some() {
                self.keys.settle(&self.slots, message.accepted_at, seq);
                if let Some(flow) = self.flow_mut(message.flow) {
                    flow.live -= 1;
                    flow.dead += 1;
                }
                self.put(seq, Stand::Dead);
                self.dead += 1;
            }
        }
    }

    fn slots_entry(&mut self, message: &Written<'_>, place: Place) {
        let slot = Slot {
            root: place,
            body: message.body,
            recipient: message.recipient,
            key: message.key,
            flow: message.flow.0,
            expires_at: Stamp::floor(message.expires_at),
            accepted_at: Stamp::of(message.accepted_at),
            stand: Stand::Dead,
            ..Slot::default()
        };
        let due_at = message.due_at.filter(|at| *at > message.accepted_at);
        self.name_for_now(message.flow);
        self.add(message.seq, slot, message.cost, due_at);
        self.put(message.seq, Stand::Fresh);
    }

    fn name_for_now(&mut self, flow: FlowId) {
        if self.flow(flow).is_none() {
            let key = FlowKey::to(Destination::unresolved("unknown"));
            self.open(flow, Arc::new(key), Place::NONE);
        }
    }

    fn replay_deferral(&mut self, seq: Seq, until: Wall, tried: Option<Tried>, place: Place) {
        if self.live(seq).is_none() {
            return;
        }
        if let Some(more) = self.more_mut(seq) {
            more.due_at = Some(until);
            more.is_deferred = true;
            more.latest = place;
            more.tried = tried.unwrap_or(more.tried);
        }
    }

    fn replay_haste(&mut self, flow: FlowId, which: Hasten, at: Wall) {
        let seqs = match which {
            Hasten::One(seq) => vec![seq],
            Hasten::Through(through) => {
                self.link();
                self.reached(flow, through, Vec::new())
            }
        };
        for seq in seqs {
            let slot = self.live(seq).filter(|slot| slot.flow() == flow);
            let due_at = slot.and_then(|slot| self.more(seq, slot)?.due_at);
            if due_at.is_some_and(|due_at| due_at > at)
                && let Some(more) = self.more_mut(seq).filter(|more| more.is_deferred)
            {
                more.due_at = Some(at);
            }
        }
    }

    /// Puts all messages that were read so far into the lists of their flows,
    /// once.
    fn link(&mut self) {
        if std::mem::replace(&mut self.is_linked, true) {
            return;
        }
        let mut from = 0;
        while let Some((next, seqs)) = self.slots.numbers_of_chunk(from) {
            from = next;
            for seq in seqs {
                let slot = self.slots.get_mut(seq);
                if let Some(slot) = slot.filter(|slot| slot.stand != Stand::Dead) {
                    slot.stand = Stand::Dead;
                    self.put(seq, Stand::Fresh);
                }
            }
        }
    }

    /// Messages of a flow up to a number, without some.
    fn reached(&self, flow: FlowId, through: Seq, mut except: Vec<u64>) -> Vec<Seq> {
        except.sort_unstable();
        let all = self.flow(flow).map(|flow| flow.fresh).unwrap_or_default();
        let all = all.iter(&self.slots).filter(|seq| *seq <= through);
        all.filter(|seq| except.binary_search(&seq.0).is_err())
            .collect()
    }

    /// Works out anew, after a start, where every live message waits.
    pub fn rebuild(&mut self, now: Wall) {
        self.is_linked = true;
        self.due.clear();
        self.expiry.clear();
        self.keys.replayed(self.slots.len());
        self.ending.clear();
        self.drop_empty();
        self.flows.iter_mut().flatten().for_each(Flow::forget);
        let mut due = Vec::new();
        let mut from = 0;
        while let Some((next, seqs)) = self.slots.numbers_of_chunk(from) {
            from = next;
            for seq in seqs {
                self.stand_anew(now, seq, &mut due);
            }
        }
        due.sort_unstable();
        for (_, seq) in due {
            self.put(seq, Stand::Due);
        }
    }

    fn stand_anew(&mut self, now: Wall, seq: Seq, due: &mut Vec<(Wall, Seq)>) {
        if self.live(seq).is_none() {
            return;
        }
        let Some(slot) = self.slots.get_mut(seq) else {
            return;
        };
        slot.stand = Stand::Dead;
        slot.flags.forget();
        let expires_at = slot.expires_at.wall();
        let slot = *slot;
        if slot.key != 0 {
            self.keys.add(&self.slots, slot.key, seq);
        }
        self.expiry.insert(now, expires_at, seq);
        match self.more(seq, &slot).and_then(|more| more.due_at) {
            None => self.put(seq, Stand::Fresh),
            Some(at) if at <= now => due.push((at, seq)),
            Some(at) => {
                self.put(seq, Stand::Later);
                self.due.insert(now, at, seq);
            }
        }
    }
}

/// Whether a deferral is among what happened to a message.
fn was_deferred(events: In<'_>) -> bool {
    let events = words::read_happenings(events).unwrap_or_default();
    events.iter().any(|it| it.what == "deferred")
}
