//! The flows that the engine knows, with the heads it holds of each.
//!
//! The queue is in the store. The engine holds at most [`HEADS_MAX`] heads of a
//! flow and asks for more when few are left, so its memory is bounded however
//! long the queue is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::action::Action;
use super::budgets::FlowBudgets;
use super::counts::Places;
use super::lessons::Lessons;
use super::recipients::RecipientRules;
use crate::flow::FlowKey;
use crate::handle::{FlowId, LaneId};
use crate::message::{Head, Seq};
use crate::name::Name;
use crate::schedule::place::PlaceId;

/// The most heads held of one flow.
pub const HEADS_MAX: u32 = 64;
/// Fewer heads than this, and more are asked for.
const HEADS_LOW: usize = 16;

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
        }
    }

    /// Asks the store for more if few heads are left and there are more.
    pub fn page(&mut self, id: FlowId, actions: &mut Vec<Action>) {
        let held = self.heads.len();
        if self.in_store == 0 || self.paging.is_some() || held >= HEADS_LOW || self.lane.is_none() {
            return;
        }
        let max = HEADS_MAX - held as u32;
        self.paging = Some(max);
        actions.push(Action::Page { flow: id, max });
    }

    /// Notes that messages are withdrawn, if some may be on their way here.
    pub fn withdraw(&mut self, what: Withdrawn) {
        if self.paging.is_some() {
            self.withdrawn.push(what);
        }
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
    /// How many there are of each tenant.
    by_tenant: BTreeMap<Name, usize>,
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

    /// The id that the next new flow gets.
    pub fn next_id(&self) -> FlowId {
        FlowId(u32::try_from(self.slab.len()).expect("fewer than 2^32 flows"))
    }

    /// Adds a flow under an id that nobody has.
    pub fn insert(&mut self, id: FlowId, key: Arc<FlowKey>) {
        if self.slab.len() <= id.index() {
            self.slab.resize_with(id.index() + 1, || None);
        }
        *self.by_tenant.entry(key.tenant.clone()).or_default() += 1;
        self.by_key.insert(Arc::clone(&key), id);
        if let Some(slot) = self.slab.get_mut(id.index()) {
            *slot = Some(Flow::new(key));
        }
    }

    /// Gives a flow the facts that were found out about it.
    pub fn rename(&mut self, id: FlowId, key: Arc<FlowKey>) {
        let Some(flow) = self.slab.get_mut(id.index()).and_then(Option::as_mut) else {
            return;
        };
        let old = std::mem::replace(&mut flow.key, Arc::clone(&key));
        flow.tallies = None;
        self.by_key.remove(&old);
        // Another flow may have these facts already; both go on.
        self.by_key.entry(key).or_insert(id);
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
        self.by_key.len()
    }

    /// How many flows of a tenant there are.
    pub fn len_of(&self, tenant: &Name) -> usize {
        self.by_tenant.get(tenant).copied().unwrap_or(0)
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
