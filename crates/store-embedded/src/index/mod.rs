//! What is durable, and where each live message waits.
//!
//! Only committed work reaches the index. What a crash forgets (who holds a
//! message, which records about it are under way) is worked out anew at the
//! next start. The index does no I/O.
//!
//! Reading order: `slots`, `list`, `flow`, `wheel`, `keys`, `remembered`, `bodies`; then what
//! is done with them: `records`, `ripe`, `closing`, `replay`.

mod bodies;
mod closing;
mod flow;
pub(crate) mod keys;
mod list;
mod records;
mod remembered;
mod replay;
mod ripe;
pub(crate) mod slots;
mod wheel;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use outflow_core::engine::SavedLimit;
use outflow_core::engine::action::Hold;
use outflow_core::engine::event::Event;
use outflow_core::engine::learners::Lore;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Head, Recipient, Seq, State};
use outflow_core::policy::key::LimitKey;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::store::{Found, StoreDone};

use self::bodies::Bodies;
pub(crate) use self::bodies::Share;
pub(crate) use self::flow::Flow;
use self::flow::Sweeps;
use self::keys::Keys;
use self::slots::{Slot, Slots, Stand};
use self::wheel::Wheel;
use crate::journal::entry::Tried;
use crate::journal::place::Place;
use crate::journal::task::Numbered;
use crate::settings::Settings;

/// Due times are rounded up to this.
const DUE_GRAIN: Nanos = Nanos::from_millis(1);
/// Expiries are rounded up to this.
const EXPIRY_GRAIN: Nanos = Nanos::from_millis(100);

/// What few messages have.
#[derive(Clone, Copy, Debug)]
pub struct More {
    /// When it is, or was, to be sent, if it was put off.
    pub due_at: Option<Wall>,
    /// It was put off since it was accepted; else its time is the submitter's.
    pub is_deferred: bool,
    /// The last deferral in the journal; nowhere if there is none.
    pub latest: Place,
    pub tried: Tried,
    pub cost: u32,
}

/// A limit as it was last reserved from, and where that stands.
#[derive(Clone, Debug)]
pub struct Reserved {
    pub limit: SavedLimit,
    pub place: Place,
}

/// What is to be remembered of a flow until its name is durable.
#[derive(Clone, Copy, Debug, Default)]
struct Unnamed {
    /// The request to close it; 0 if there is none.
    closing: u32,
    /// Its messages that are on their way to the disk too.
    pending: u32,
    /// Records about it that are, and what they sweep.
    records: u32,
    sweeps: Sweeps,
}

/// A message that is done with, for its receipt.
#[derive(Clone, Debug)]
pub struct Finished {
    pub seq: Seq,
    pub state: State,
    pub at: Wall,
    pub key: Arc<FlowKey>,
    pub root: Place,
    pub latest: Place,
    /// The record that ended it.
    pub end: Place,
    pub attempts: u16,
}

/// The durable state and where messages wait.
pub struct Index {
    pub slots: Slots,
    pub flows: Vec<Option<Flow>>,
    pub limits: BTreeMap<LimitKey, Reserved>,
    /// Limits and accounts of which something newer is on its way to the disk.
    pub under_way: BTreeMap<Arc<LimitKey>, u32>,
    /// Which accounts are held, and where that is written.
    pub holds: BTreeMap<LimitKey, (Hold, Place)>,
    /// What was learnt of rates, and where that stands.
    pub adapted: BTreeMap<LimitKey, (Lore, Place)>,
    pub keys: Keys,
    pub bodies: Bodies,
    /// Live bytes by envelope segment.
    pub envelopes: BTreeMap<u32, u64>,
    more: HashMap<Seq, More>,
    due: Wheel,
    expiry: Wheel,
    /// Flows that the engine is to be told of.
    changed: Vec<FlowId>,
    /// Flows that may be at their end.
    ending: Vec<FlowId>,
    /// Flows whose names are on their way to the disk, and of which something is
    /// to be remembered until then.
    unnamed: BTreeMap<FlowId, Unnamed>,
    pub finished: Vec<Finished>,
    /// What the far end said later of settled messages.
    pub feedback: Vec<(Seq, Wall, LastError)>,
    pub dead: usize,
    /// Whether messages stand in the lists of their flows. Not while the journal
    /// is read, unless something there needs the lists: the places of all are
    /// worked out anew afterwards.
    is_linked: bool,
}

impl Index {
    pub fn new(settings: &Settings) -> Self {
        Self {
            slots: Slots::default(),
            flows: Vec::new(),
            limits: BTreeMap::new(),
            under_way: BTreeMap::new(),
            holds: BTreeMap::new(),
            adapted: BTreeMap::new(),
            keys: Keys::new(settings.keys_max, settings.key_life),
            bodies: Bodies::default(),
            envelopes: BTreeMap::new(),
            more: HashMap::new(),
            due: Wheel::new(DUE_GRAIN),
            expiry: Wheel::new(EXPIRY_GRAIN),
            changed: Vec::new(),
            ending: Vec::new(),
            unnamed: BTreeMap::new(),
            finished: Vec::new(),
            feedback: Vec::new(),
            dead: 0,
            is_linked: false,
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
    pub fn open(&mut self, id: FlowId, key: Arc<FlowKey>, place: Place) {
        if self.flows.len() <= id.index() {
            self.flows.resize_with(id.index() + 1, || None);
        }
        if let Some(entry) = self.flows.get_mut(id.index()) {
            match entry {
                Some(flow) if flow.is_used() => flow.key = key,
                entry => *entry = Some(Flow::new(key)),
            }
        }
        if let Some(flow) = self.flow_mut(id) {
            flow.named = place;
        }
        self.named(id);
    }

    /// A live message.
    pub fn live(&self, seq: Seq) -> Option<&Slot> {
        let slot = self.slots.get(seq);
        slot.filter(|slot| slot.stand != Stand::Dead)
    }

    /// A message goes to the disk, perhaps right behind the name of its flow.
    pub fn expect_message(&mut self, id: FlowId) {
        match self.flow_mut(id) {
            Some(flow) => flow.pending += 1,
            None => self.unnamed.entry(id).or_default().pending += 1,
        }
    }

    /// Messages are no longer on their way to the disk.
    pub fn arrived(&mut self, messages: &[Numbered]) {
        for it in messages {
            let id = it.message.flow;
            if let Some(flow) = self.flow_mut(id) {
                flow.pending = flow.pending.saturating_sub(1);
                self.look_at_end(id);
            } else if let Some(unnamed) = self.unnamed.get_mut(&id) {
                unnamed.pending = unnamed.pending.saturating_sub(1);
            }
        }
    }

    /// What few messages have.
    pub fn more(&self, seq: Seq, slot: &Slot) -> Option<&More> {
        self.more.get(&seq).filter(|_| slot.flags.more())
    }

    fn more_mut(&mut self, seq: Seq) -> Option<&mut More> {
        let slot = self.slots.get_mut(seq)?;
        slot.flags.set_more(true);
        let cost = u32::from(slot.cost);
        Some(self.more.entry(seq).or_insert(More {
            due_at: None,
            is_deferred: false,
            latest: Place::NONE,
            tried: Tried::default(),
            cost,
        }))
    }

    /// What the engine is told of a message.
    pub fn head(&self, seq: Seq, slot: &Slot) -> Head {
        let more = self.more(seq, slot);
        let tried = more.map(|more| more.tried).unwrap_or_default();
        Head {
            expires_at: slot.expires_at.wall(),
            recipient: Recipient(slot.recipient),
            cost: more.map_or(u32::from(slot.cost), |more| more.cost),
            first_attempt_at: tried.first_attempt_at,
            last_delay: tried.last_delay,
            attempts: tried.attempts,
            uncertain: tried.uncertain,
            ..Head::new(seq, slot.accepted_at.wall())
        }
    }

    /// What others are told of a message.
    pub fn found(&self, seq: Seq, slot: &Slot) -> Found {
        let due_at = self.more(seq, slot).and_then(|more| more.due_at);
        Found {
            flow: slot.flow(),
            head: self.head(seq, slot),
            due_at: due_at.filter(|_| slot.stand == Stand::Later),
            dead: slot.stand == Stand::Dead,
        }
    }

    /// Adds a message that stands nowhere yet.
    pub fn add(&mut self, seq: Seq, slot: Slot, cost: u32, due_at: Option<Wall>) {
        let cost_here = u16::try_from(cost).unwrap_or(u16::MAX);
        *self.envelopes.entry(slot.root.segment()).or_default() += slot.root.size();
        self.bodies.add(slot.body);
        let (key, flow) = (slot.key, slot.flow());
        let slot = Slot {
            cost: cost_here,
            ..slot
        };
        self.slots.insert(seq, slot);
        if (cost_here == u16::MAX || due_at.is_some())
            && let Some(more) = self.more_mut(seq)
        {
            more.cost = cost;
            more.due_at = due_at;
        }
        if key != 0 {
            self.keys.add(&self.slots, key, seq);
        }
        if let Some(flow) = self.flow_mut(flow) {
            flow.live += 1;
        }
    }

    /// Takes a message from where it stands and puts it elsewhere.
    pub fn put(&mut self, seq: Seq, stand: Stand) {
        let Some(slot) = self.slots.get_mut(seq) else {
            return;
        };
        let before = std::mem::replace(&mut slot.stand, stand);
        if !self.is_linked {
            return;
        }
        let flow = slot.flow();
        let Some(flow) = self.flows.get_mut(flow.index()).and_then(Option::as_mut) else {
            return;
        };
        let both_out = |it| matches!(it, Stand::Held | Stand::Leaving | Stand::Expiring);
        if both_out(before) && both_out(stand) {
            return;
        }
        if let Some(list) = flow.list_mut(before) {
            list.remove(&mut self.slots, seq);
        }
        if let Some(list) = flow.list_mut(stand) {
            list.push_back(&mut self.slots, seq);
        }
    }

    /// Puts a message into the queue of its flow and notes that the engine is
    /// to be told.
    pub fn queue(&mut self, seq: Seq, is_new: bool) {
        let Some(slot) = self.slots.get(seq) else {
            return;
        };
        let id = slot.flow();
        let deferred = self.more(seq, slot).is_some_and(|it| it.due_at.is_some());
        let Some(flow) = self.flow_mut(id) else {
            return;
        };
        if flow.sweeps.reach(seq) {
            self.put(seq, Stand::Aside);
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
        self.put(seq, if deferred { Stand::Due } else { Stand::Fresh });
    }

    /// Tells of the messages that became ready.
    pub fn announce(&mut self, done: &mut Vec<StoreDone>) {
        for id in std::mem::take(&mut self.changed) {
            let Some(flow) = self.flow_mut(id) else {
                continue;
            };
            let accepted = std::mem::take(&mut flow.accepted);
            let ready = std::mem::take(&mut flow.ready);
            let flow = id;
            if accepted > 0 {
                let count = accepted;
                done.push(StoreDone::Event(Event::Accepted { flow, count }));
            }
            if ready > 0 {
                let count = ready;
                done.push(StoreDone::Event(Event::Due { flow, count }));
            }
            self.look_at_end(id);
        }
    }

    /// A message is done with, by the record that stands at `end`.
    pub fn settle(&mut self, at: Wall, seq: Seq, state: State, end: Place) {
        let Some(slot) = self.live(seq).copied() else {
            return;
        };
        let more = self.more(seq, &slot).copied();
        self.keys.settle(&self.slots, at, seq);
        let flow = self.flow_mut(slot.flow());
        let key = flow.map(|flow| {
            flow.live -= 1;
            flow.dead += u32::from(state == State::Dead);
            Arc::clone(&flow.key)
        });
        self.look_at_end(slot.flow());
        if let Some(key) = key {
            self.finished.push(Finished {
                seq,
                state,
                at,
                key,
                root: slot.root,
                latest: more.map_or(Place::NONE, |more| more.latest),
                end,
                attempts: more.map_or(0, |more| more.tried.attempts),
            });
        }
        self.put(seq, Stand::Dead);
        if state == State::Dead {
            self.dead += 1;
        } else {
            self.remove(seq);
        }
    }

    /// Takes a message away for good.
    pub fn remove(&mut self, seq: Seq) {
        let Some(slot) = self.slots.remove(seq) else {
            return;
        };
        if slot.flags.more() {
            self.more.remove(&seq);
        }
        self.bodies.remove(slot.body);
        if let Some(bytes) = self.envelopes.get_mut(&slot.root.segment()) {
            *bytes = bytes.saturating_sub(slot.root.size());
        }
    }

    /// Dead letters that nobody needs any more.
    pub fn forget(&mut self, seqs: &[Seq]) {
        for &seq in seqs {
            let is_dead = |slot: &Slot| slot.stand == Stand::Dead;
            let Some(slot) = self.slots.get(seq).filter(|slot| is_dead(slot)) else {
                continue;
            };
            let id = slot.flow();
            self.dead -= 1;
            self.remove(seq);
            if let Some(flow) = self.flow_mut(id) {
                flow.dead = flow.dead.saturating_sub(1);
            }
            self.look_at_end(id);
        }
    }

    /// A message stands elsewhere in the journal now, with all its happenings.
    pub fn rewritten(&mut self, seq: Seq, from: Place, to: Place) {
        let Some(slot) = self.slots.get_mut(seq).filter(|slot| slot.root == from) else {
            return;
        };
        slot.root = to;
        if let Some(bytes) = self.envelopes.get_mut(&from.segment()) {
            *bytes = bytes.saturating_sub(from.size());
        }
        *self.envelopes.entry(to.segment()).or_default() += to.size();
    }

    /// When something is ripe next.
    pub fn next_ripe(&self) -> Option<Wall> {
        let next = [self.due.next(), self.expiry.next()];
        next.into_iter().flatten().min()
    }
}
