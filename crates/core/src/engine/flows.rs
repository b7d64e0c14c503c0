//! The flows that the engine knows, with the heads it holds of each.
//!
//! The queue is in the store. The engine holds at most [`HEADS_MAX`] heads of a
//! flow and asks for more when few are left, so its memory is bounded however
//! long the queue is. What ends a flow is in `closing`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::action::Action;
use super::appends::Appends;
use super::budgets::FlowBudgets;
use super::counts::Places;
use super::lessons::Lessons;
use super::recipients::RecipientRules;
use crate::flow::FlowKey;
use crate::free_numbers::FreeNumbers;
use crate::handle::{FlowId, LaneId};
use crate::message::{Head, Seq};
use crate::schedule::place::PlaceId;
use crate::time::{Mono, Nanos};

/// The most heads held of one flow.
pub const HEADS_MAX: u32 = 64;
/// Fewer heads than this, and more are asked for.
const HEADS_LOW: usize = 16;
/// A flow with nothing to do lives on for this long: the next message of a
/// trickle finds it.
pub const FLOW_GRACE: Nanos = Nanos::from_secs(10);
/// So many flows with nothing to do live on; of more the longest idle end.
pub const IDLE_FLOWS_MAX: usize = 16_384;

/// Messages that were withdrawn while the store was asked for a page: it may
/// have handed them over before it heard.
#[derive(Clone, Copy, Debug)]
pub(super) enum Withdrawn {
    /// This one is settled already.
    One(Seq),
    /// All up to this one are cancelled.
    Cancelled { through: Seq },
    /// All up to this one belong to another flow.
    Moved { to: FlowId, through: Seq },
}

/// One flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub key: Arc<FlowKey>,
    /// None until its destination is known.
    pub lane: Option<LaneId>,
    /// Its own limits, without the gate.
    pub limits: Box<[PlaceId]>,
    /// Those of its limits that count what is in flight.
    pub slots: Box<[PlaceId]>,
    pub recipient_rules: Option<Arc<RecipientRules>>,
    /// Retry budgets of its tenant and campaign.
    pub budgets: FlowBudgets,
    pub heads: VecDeque<Head>,
    /// Messages that are ready in the store and not held here.
    pub in_store: u32,
    /// How many were asked for, while the answer is on its way.
    pub paging: Option<u32>,
    /// What became of messages that are on their way here.
    pub withdrawn: Vec<Withdrawn>,
    pub in_flight: u32,
    /// How many pauses match it.
    pub pauses: u32,
    /// A bound on the cost: what can never fit is not queued.
    pub cost_max: u32,
    /// Where its replies are counted, once there was one.
    pub tallies: Option<Places>,
    /// What its replies teach of rates.
    pub lessons: Lessons,
    /// Records and pages on their way that name it.
    pub uses: u32,
    /// The request to close it that the store has; 0 if it has none.
    pub closing: u32,
    /// Since when it has nothing to do, if that is so.
    idle_since: Mono,
    /// Whether it stands in the list of idle flows.
    is_listed: bool,
    /// Whether another flow has the same facts: what is ready moves there.
    pub is_twin: bool,
}

impl Flow {
    pub fn new(key: Arc<FlowKey>) -> Self {
        Self {
            key,
            lane: None,
            limits: Box::default(),
            slots: Box::default(),
            recipient_rules: None,
            budgets: [None, None],
            heads: VecDeque::new(),
            in_store: 0,
            paging: None,
            withdrawn: Vec::new(),
            in_flight: 0,
            pauses: 0,
            cost_max: u32::MAX,
            tallies: None,
            lessons: Lessons::default(),
            uses: 0,
            closing: 0,
            idle_since: Mono(0),
            is_listed: false,
            is_twin: false,
        }
    }

    /// Whether the engine has nothing to do for it: nothing is held, on its way
    /// here or in flight, and nothing that is ready could be asked for. Whether
    /// the store keeps anything of it is for the store to say.
    pub fn is_idle(&self) -> bool {
        let can_page = self.lane.is_some() && self.pauses == 0;
        self.heads.is_empty()
            && self.in_flight == 0
            && self.paging.is_none()
            && self.uses == 0
            && (self.in_store == 0 || !can_page)
    }

    /// Withdraws the request to close it: there is something to do after all.
    pub fn reopen(&mut self, id: FlowId, actions: &mut Vec<Action>) {
        if std::mem::take(&mut self.closing) > 0 {
            actions.push(Action::OpenFlow {
                flow: id,
                key: Arc::clone(&self.key),
            });
        }
    }

    /// Asks the store for more if few heads are left and there are more. Not
    /// while records wait for a store that fails: it has not heard of what they
    /// cancel or move, and would hand that over.
    pub fn page(&mut self, id: FlowId, appends: &Appends, actions: &mut Vec<Action>) {
        if appends.is_held() {
            return;
        }
        let held = self.heads.len();
        if self.in_store == 0 || self.paging.is_some() || held >= HEADS_LOW || self.lane.is_none() {
            return;
        }
        self.reopen(id, actions);
        let max = HEADS_MAX - held as u32;
        self.paging = Some(max);
        actions.push(Action::Page { flow: id, max });
    }

    /// Notes that messages are withdrawn, if some may be on their way here;
    /// whether that is so.
    pub fn withdraw(&mut self, what: Withdrawn) -> bool {
        if self.paging.is_some() {
            self.withdrawn.push(what);
        }
        self.paging.is_some()
    }

    /// How many of its messages wait, as far as the engine knows.
    pub fn waiting(&self) -> u64 {
        self.heads.len() as u64 + u64::from(self.in_store)
    }
}

/// All flows.
#[derive(Debug, Default)]
pub(super) struct Flows {
    slab: Vec<Option<Flow>>,
    by_key: BTreeMap<Arc<FlowKey>, FlowId>,
    len: usize,
    free: FreeNumbers,
    /// Numbers without a flow that the store still keeps something under.
    reserved: BTreeSet<FlowId>,
    /// Flows that had nothing to do, and when that was noted.
    idle: VecDeque<(Mono, FlowId)>,
    /// The same of those whose facts others have: nobody comes to them.
    idle_twins: VecDeque<FlowId>,
    /// Requests to close flows so far.
    requests: u32,
    /// The time of the step.
    pub now: Mono,
}

impl Flows {
    pub fn get(&self, id: FlowId) -> Option<&Flow> {
        self.slab.get(id.index()).and_then(Option::as_ref)
    }

    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.slab.get_mut(id.index()).and_then(Option::as_mut)
    }

    pub fn find(&self, key: &FlowKey) -> Option<FlowId> {
        self.by_key.get(key).copied()
    }

    /// A number for a new flow.
    pub fn next_id(&mut self) -> FlowId {
        let end = self.slab.len();
        let number = self.free.take(end);
        FlowId(number.unwrap_or_else(|| u32::try_from(end).expect("fewer than 2^32 flows")))
    }

    /// Adds a flow under an id that nobody has. One whose facts another has
    /// is that one's twin.
    pub fn insert(&mut self, id: FlowId, key: Arc<FlowKey>) {
        if self.slab.len() <= id.index() {
            self.slab.resize_with(id.index() + 1, || None);
        }
        let first = *self.by_key.entry(Arc::clone(&key)).or_insert(id);
        if let Some(slot) = self.slab.get_mut(id.index()) {
            let mut flow = Flow::new(key);
            flow.is_twin = first != id;
            *slot = Some(flow);
            self.len += 1;
        }
        self.rest(id);
    }

    /// Gives a flow the facts that were found out about it. Whether no other
    /// has these.
    pub fn rename(&mut self, id: FlowId, key: Arc<FlowKey>) -> bool {
        let Some(flow) = self.slab.get_mut(id.index()).and_then(Option::as_mut) else {
            return false;
        };
        let old = std::mem::replace(&mut flow.key, Arc::clone(&key));
        flow.tallies = None;
        flow.closing = 0;
        if self.by_key.get(&old) == Some(&id) {
            self.by_key.remove(&old);
        }
        let first = *self.by_key.entry(key).or_insert(id);
        flow.is_twin = first != id;
        // Twins stand in a list of their own.
        flow.is_listed &= !flow.is_twin;
        first == id
    }

    /// Takes a flow out. Its number can be given again once it is
    /// [freed](Flows::free).
    pub fn remove(&mut self, id: FlowId) -> Option<Flow> {
        let flow = self.slab.get_mut(id.index()).and_then(Option::take)?;
        self.len -= 1;
        if self.by_key.get(&flow.key) == Some(&id) {
            self.by_key.remove(&flow.key);
        }
        self.reserved.insert(id);
        Some(flow)
    }

    /// Nothing is kept under the number of a flow that was taken out.
    pub fn free(&mut self, id: FlowId) {
        if !self.reserved.remove(&id) {
            return;
        }
        self.free.give(id.0);
        // Not below a number that the store still knows.
        let end = self.reserved.last().map_or(0, |last| last.index() + 1);
        FreeNumbers::cut(&mut self.slab, end, Option::is_none);
    }

    /// Says which numbers the store knows beside those of flows: all others can
    /// be given.
    pub fn reserve(&mut self, numbers: impl IntoIterator<Item = FlowId>) {
        self.reserved.extend(numbers);
        let end = self.reserved.last().map_or(0, |last| last.index() + 1);
        if self.slab.len() < end {
            self.slab.resize_with(end, || None);
        }
        for (number, slot) in (0..).zip(&self.slab) {
            if slot.is_none() && !self.reserved.contains(&FlowId(number)) {
                self.free.give(number);
            }
        }
    }

    /// Notes that a flow has nothing to do, if that is so.
    pub fn rest(&mut self, id: FlowId) {
        let now = self.now;
        let Some(flow) = self.get_mut(id).filter(|flow| flow.is_idle()) else {
            return;
        };
        flow.idle_since = now;
        let is_twin = flow.is_twin;
        if !std::mem::replace(&mut flow.is_listed, true) {
            match is_twin {
                true => self.idle_twins.push_back(id),
                false => self.idle.push_back((now, id)),
            }
        }
    }

    /// Sees to it that a flow ends which was found to have nothing to do. To be
    /// looked at is no use: operators and rules look at all flows, over and over.
    pub fn let_end(&mut self, id: FlowId) {
        let is_awaited = |flow: &Flow| flow.is_listed || flow.closing > 0;
        if !self.get(id).is_some_and(is_awaited) {
            self.rest(id);
        }
    }

    /// The next flow that had nothing to do for long enough, or longest if there
    /// are many; and the number of the request to close it.
    pub fn next_to_close(&mut self) -> Option<(FlowId, u32)> {
        while self.next_close() <= self.now {
            let twin = self.idle_twins.pop_front();
            let id = twin.or_else(|| self.idle.pop_front().map(|(_, id)| id))?;
            let (now, is_crowded) = (self.now, self.idle.len() >= IDLE_FLOWS_MAX);
            let Some(flow) = self.get_mut(id) else {
                continue;
            };
            if !std::mem::take(&mut flow.is_listed) || !flow.is_idle() || flow.closing > 0 {
                continue;
            }
            let since = flow.idle_since;
            if !is_crowded && !flow.is_twin && since + FLOW_GRACE > now {
                flow.is_listed = true;
                self.idle.push_back((since, id));
                continue;
            }
            self.requests = self.requests.wrapping_add(1).max(1);
            let request = self.requests;
            if let Some(flow) = self.get_mut(id) {
                flow.closing = request;
            }
            return Some((id, request));
        }
        None
    }

    /// When [`Flows::next_to_close`] wants to be called.
    pub fn next_close(&self) -> Mono {
        match self.idle.front() {
            _ if !self.idle_twins.is_empty() => Mono(0),
            Some(_) if self.idle.len() > IDLE_FLOWS_MAX => Mono(0),
            Some(&(at, _)) => at + FLOW_GRACE,
            None => Mono::NEVER,
        }
    }

    /// Flows from `start` on, in order of their ids.
    pub fn range(&self, start: usize) -> impl Iterator<Item = (FlowId, &Flow)> {
        self.slab
            .iter()
            .enumerate()
            .skip(start)
            .filter_map(|(index, flow)| Some((FlowId(index as u32), flow.as_ref()?)))
    }

    /// One more than the highest id in use.
    pub fn end(&self) -> usize {
        self.slab.len()
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// What is wrong, if anything is.
    pub fn check(&self) -> Result<(), String> {
        let lost = self.range(0).find(|(_, flow)| {
            let is_awaited = flow.is_listed || flow.closing > 0;
            flow.is_idle() && !is_awaited
        });
        match lost {
            Some((id, _)) => Err(format!("flow {id} has nothing to do and will not end")),
            None => Ok(()),
        }
    }

    /// How many heads are held in all.
    pub fn heads_held(&self) -> u64 {
        self.slab
            .iter()
            .flatten()
            .map(|flow| flow.heads.len() as u64)
            .sum()
    }
}
