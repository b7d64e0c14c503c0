//! What is durable, and where each live message waits.
//!
//! Only committed work reaches the image. What a crash forgets (who holds a
//! message, which records about it are under way) stands beside the durable
//! fields and is worked out anew at the next start.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use outflow_core::engine::SavedLimit;
use outflow_core::engine::action::Hold;
use outflow_core::engine::event::Event;
use outflow_core::engine::learners::Lore;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Head, Seq, State};
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::intake::Given;
use outflow_ports::store::{NewMessage, StoreDone};

use super::flow::{Flow, Sweeps};
use super::slab::{Content, Entry, Place, Slab, Slot};
use super::wheel::Wheel;
use super::{Settings, Settled};

/// The durable state and its index.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub slab: Slab,
    pub flows: Vec<Option<Flow>>,
    /// Sweeps of flows whose names are on their way to the disk.
    pub sweeps_ahead: BTreeMap<FlowId, Sweeps>,
    pub limits: BTreeMap<LimitKey, SavedLimit>,
    pub holds: BTreeMap<LimitKey, Hold>,
    pub adapted: BTreeMap<LimitKey, Lore>,
    /// The highest durable number.
    pub last: Seq,
    keys: BTreeMap<Arc<str>, (Seq, Wall)>,
    /// Dead letters.
    pub dead: BTreeMap<Seq, Entry>,
    /// Keys of settled messages, with the time at which they are forgotten.
    old_keys: VecDeque<(Wall, Arc<str>, Seq)>,
    key_life: Nanos,
    pub due: Wheel,
    pub expiry: Wheel,
    /// Flows that the engine is to be told of.
    pub changed: Vec<FlowId>,
    /// Flows that were closed: by which request, and whether nothing is left.
    closed: Vec<(FlowId, u32, bool)>,
    pub settled: Vec<Settled>,
    keep_settled: bool,
    /// Messages by final state.
    pub finals: [u64; State::Dead as usize + 1],
}

impl Image {
    pub fn new(settings: &Settings) -> Self {
        Self {
            slab: Slab::default(),
            flows: Vec::new(),
            sweeps_ahead: BTreeMap::new(),
            limits: BTreeMap::new(),
            holds: BTreeMap::new(),
            adapted: BTreeMap::new(),
            last: Seq(0),
            keys: BTreeMap::new(),
            dead: BTreeMap::new(),
            old_keys: VecDeque::new(),
            key_life: settings.key_life,
            due: Wheel::new(settings.due_grain),
            expiry: Wheel::new(settings.expiry_grain),
            changed: Vec::new(),
            closed: Vec::new(),
            settled: Vec::new(),
            keep_settled: settings.keep_settled,
            finals: [0; State::Dead as usize + 1],
        }
    }

    pub fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(id.index()).and_then(Option::as_ref)
    }

    pub fn flow_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.flows.get_mut(id.index()).and_then(Option::as_mut)
    }

    /// Keeps the name of a flow. A number that has no live messages may have
    /// been given anew.
    pub fn open(&mut self, id: FlowId, key: Arc<FlowKey>) {
        if self.flows.len() <= id.index() {
            self.flows.resize_with(id.index() + 1, || None);
        }
        if let Some(place) = self.flows.get_mut(id.index()) {
            match place {
                Some(flow) if flow.live + flow.dead > 0 => {
                    flow.key = key;
                    flow.closing = None;
                    flow.is_closed = false;
                }
                place => {
                    let known = place.take().map(|flow| flow.sweeps);
                    let ahead = self.sweeps_ahead.remove(&id);
                    let sweeps = known.or(ahead).unwrap_or_default();
                    let flow = Flow::new(key);
                    *place = Some(Flow { sweeps, ..flow });
                }
            }
        }
    }

    /// Closes a flow once nothing is left of it.
    pub fn close(&mut self, id: FlowId, request: u32) {
        match self.flow_mut(id) {
            Some(flow) => flow.closing = Some(request),
            None => self.closed.push((id, request, true)),
        }
        self.look_at_end(id);
    }

    /// Something of a flow is gone: it may have been the last.
    pub fn look_at_end(&mut self, id: FlowId) {
        let Some(flow) = self.flow_mut(id) else {
            return;
        };
        if flow.live > 0 || flow.sweeps.open > 0 || flow.accepted + flow.ready > 0 {
            return;
        }
        let is_free = flow.dead == 0;
        let request = match flow.closing.take() {
            Some(request) => request,
            None if flow.is_closed && is_free => 0,
            None => return,
        };
        flow.is_closed = true;
        if is_free && let Some(place) = self.flows.get_mut(id.index()) {
            *place = None;
        }
        self.closed.push((id, request, is_free));
    }

    /// Takes a new message in, unless its key is known.
    pub fn accept(&mut self, now: Wall, seq: Seq, message: &NewMessage) -> Given {
        self.last = self.last.max(seq);
        if let Some(key) = &message.idempotency_key {
            if let Some(&(seq, accepted_at)) = self.keys.get(key) {
                let known = true;
                return Given {
                    seq,
                    accepted_at,
                    known,
                };
            }
            self.keys.insert(Arc::clone(key), (seq, now));
        }
        let head = Head {
            expires_at: message.expires_at,
            recipient: message.recipient,
            cost: message.cost,
            ..Head::new(seq, now)
        };
        let not_before = message.not_before.filter(|at| *at > now);
        let slot = self.slab.insert(Entry {
            head,
            flow: message.flow,
            due_at: not_before,
            is_deferred: false,
            key: message.idempotency_key.clone(),
            content: Content {
                envelope: Arc::clone(&message.envelope),
                body: Arc::clone(&message.body),
            },
            place: Place::Leaving,
            records: 0,
            overdue: false,
            prev: Slot::NONE,
            next: Slot::NONE,
            ordinal: 0,
        });
        if let Some(flow) = self.flow_mut(message.flow) {
            flow.live += 1;
        }
        self.expiry.insert(message.expires_at, slot, seq);
        match not_before {
            Some(at) => {
                self.put(slot, Place::Later);
                self.due.insert(at, slot, seq);
            }
            None => {
                self.queue(slot, true);
            }
        }
        Given {
            seq,
            accepted_at: now,
            known: false,
        }
    }

    /// A message that is alive or a dead letter.
    pub fn entry(&self, seq: Seq) -> Option<&Entry> {
        let live = self.slab.find(seq).and_then(|slot| self.slab.get(slot));
        live.or_else(|| self.dead.get(&seq))
    }

    pub fn is_live(&self, seq: Seq) -> bool {
        self.slab.find(seq).is_some()
    }

    /// Takes a message from where it waits and puts it elsewhere.
    pub fn put(&mut self, slot: Slot, place: Place) {
        let Some(entry) = self.slab.get_mut(slot) else {
            return;
        };
        let before = std::mem::replace(&mut entry.place, place);
        let flow = entry.flow;
        let Some(flow) = self.flows.get_mut(flow.index()).and_then(Option::as_mut) else {
            return;
        };
        if let Some(list) = flow.list_mut(before) {
            list.remove(&mut self.slab, slot);
        }
        if let Some(list) = flow.list_mut(place) {
            list.push_back(&mut self.slab, slot);
        }
    }

    /// Puts a message into the queue of its flow and notes that the engine is
    /// to be told.
    pub fn queue(&mut self, slot: Slot, is_new: bool) {
        let Some(entry) = self.slab.get(slot) else {
            return;
        };
        let (id, seq, deferred) = (entry.flow, entry.head.seq, entry.due_at.is_some());
        let Some(flow) = self.flow_mut(id) else {
            return;
        };
        if flow.is_swept(seq) {
            self.put(slot, Place::Aside);
            return;
        }
        let was_quiet = flow.accepted == 0 && flow.ready == 0;
        if is_new {
            flow.accepted += 1;
        } else {
            flow.ready += 1;
        }
        if was_quiet {
            self.changed.push(id);
        }
        let place = if deferred { Place::Due } else { Place::Fresh };
        self.put(slot, place);
    }

    /// Tells of the messages that became ready.
    pub fn announce(&mut self, done: &mut Vec<StoreDone>) {
        for id in std::mem::take(&mut self.changed) {
            let Some(flow) = self.flow_mut(id) else {
                continue;
            };
            let accepted = std::mem::take(&mut flow.accepted);
            let ready = std::mem::take(&mut flow.ready);
            if accepted > 0 {
                done.push(StoreDone::Event(Event::Accepted {
                    flow: id,
                    count: accepted,
                }));
            }
            if ready > 0 {
                done.push(StoreDone::Event(Event::Due {
                    flow: id,
                    count: ready,
                }));
            }
            self.look_at_end(id);
        }
        for (flow, request, is_free) in self.closed.drain(..) {
            done.push(StoreDone::Event(Event::FlowClosed {
                flow,
                request,
                is_free,
            }));
        }
    }

    /// A message is done with.
    pub fn settle(&mut self, now: Wall, slot: Slot, state: State) {
        self.put(slot, Place::Leaving);
        let Some(entry) = self.slab.remove(slot) else {
            return;
        };
        let seq = entry.head.seq;
        if let Some(flow) = self.flow_mut(entry.flow) {
            flow.live -= 1;
            flow.dead += u32::from(state == State::Dead);
        }
        self.look_at_end(entry.flow);
        if let Some(count) = self.finals.get_mut(state as usize) {
            *count += 1;
        }
        if self.keep_settled {
            self.settled.push(Settled {
                flow: entry.flow,
                seq,
                state,
            });
        }
        if let Some(key) = &entry.key {
            let until = now + self.key_life;
            self.old_keys.push_back((until, Arc::clone(key), seq));
        }
        if state == State::Dead {
            self.dead.insert(seq, entry);
        }
        while let Some((_, key, seq)) = self.old_keys.pop_front_if(|(until, _, _)| *until <= now) {
            if self.keys.get(&key).is_some_and(|(of, _)| *of == seq) {
                self.keys.remove(&key);
            }
        }
    }

    /// Dead letters that nobody needs any more.
    pub fn forget(&mut self, seqs: &[Seq]) {
        for seq in seqs {
            let Some(entry) = self.dead.remove(seq) else {
                continue;
            };
            if let Some(flow) = self.flow_mut(entry.flow) {
                flow.dead -= 1;
            }
            self.look_at_end(entry.flow);
        }
    }

    /// Works out anew, after a start, where every live message waits.
    pub fn rebuild(&mut self, now: Wall) {
        self.due.clear();
        self.expiry.clear();
        self.changed.clear();
        self.closed.clear();
        self.sweeps_ahead.clear();
        let is_over = |flow: &mut Flow| flow.live + flow.dead == 0;
        for place in &mut self.flows {
            place.take_if(is_over);
        }
        self.flows.iter_mut().flatten().for_each(Flow::forget);
        let slots: Vec<Slot> = self.slab.in_order().collect();
        let mut due = Vec::new();
        for slot in slots {
            let Some(entry) = self.slab.get_mut(slot) else {
                continue;
            };
            entry.place = Place::Leaving;
            entry.records = 0;
            entry.overdue = false;
            let (seq, due_at) = (entry.head.seq, entry.due_at);
            self.expiry.insert(entry.head.expires_at, slot, seq);
            match due_at {
                None => self.put(slot, Place::Fresh),
                Some(at) if at <= now => due.push((at, seq, slot)),
                Some(at) => {
                    self.put(slot, Place::Later);
                    self.due.insert(at, slot, seq);
                }
            }
        }
        due.sort_unstable_by_key(|&(at, seq, _)| (at, seq));
        for (_, _, slot) in due {
            self.put(slot, Place::Due);
        }
    }
}
