//! Who goes next when several limits are full: booked turns over a reserve.
//!
//! A flow that cannot send waits at *one* place only: its bottleneck, the one
//! whose queue will reach it last. Its turn there *books* it: it gets a ticket
//! and collects what it still lacks by age of that ticket, ahead of everybody
//! who merely waits. It holds no tokens of ordinary buckets meanwhile; instead
//! every bucket keeps a reserve that its own waiters leave alone and flows that
//! come from another place may use. A bucket kept above zero loses nothing.
//!
//! Reading order: [`place`] (where flows wait), `node` (fair order among
//! tenants), `entry` (a flow's standing), `estimate` (which place will take
//! longest), `judge` (what a flow finds at a place), `step` (what a place does next), `turn` (the
//! decisions), `credit` (turns of lower classes), `queue` and `book` (their bookkeeping),
//! `questions` (what others ask),
//! `waits` (how long all that takes), `check` (what must hold after every step).

mod book;
mod check;
mod credit;
mod entry;
mod estimate;
mod judge;
mod node;
pub mod place;
mod questions;
mod queue;
mod step;
mod turn;
pub mod waits;

use std::collections::{BTreeSet, VecDeque};

use self::entry::{Entry, Standing, Stop};
pub use self::node::TenantId;
use self::node::{NodeId, Nodes};
use self::place::{Holder, Place, PlaceId};
pub use self::questions::GateCosts;
use self::waits::WaitGroups;
use crate::class::Class;
use crate::free_numbers::FreeNumbers;
use crate::handle::{FlowId, LaneId};
use crate::limit::Limit;
use crate::limit::spec::{Headroom, LimitSpec};
use crate::time::{Mono, Now};

/// The other side of a turn: sends what has passed every limit.
pub trait Outlet {
    /// Whether the lane's pool can take a message of this class and cost now.
    fn gate_open(&self, lane: LaneId, class: Class, cost: u32) -> bool;

    /// Looks at the head of the flow again right before it is sent; drops heads
    /// that expired or must step aside. The cost of the head to send, if any.
    fn prepare(&mut self, now: &Now, flow: FlowId) -> Option<u32>;

    /// Sends the head of the flow; every limit of the flow was taken. The cost
    /// of its next head, if it has one.
    fn send(&mut self, now: &Now, flow: FlowId) -> Option<u32>;
}

/// Something to look at before the step ends.
#[derive(Clone, Copy, Debug)]
enum Task {
    Place(FlowId),
    Serve(PlaceId),
}

/// All flows, all places, and who stands where.
#[derive(Debug, Default)]
pub struct Schedule {
    places: Vec<Place>,
    free_places: FreeNumbers,
    flows: Vec<Option<Entry>>,
    nodes: Nodes,
    tasks: VecDeque<Task>,
    timers: BTreeSet<(Mono, PlaceId)>,
    /// Limits that wait for a grant or were drawn on, for whoever feeds them.
    fed: Vec<PlaceId>,
    /// Gates whose waiters changed, for the pool.
    changed_gates: Vec<PlaceId>,
    arrivals: u64,
    tickets: u64,
    visits: u64,
    waits: WaitGroups,
}

impl Schedule {
    /// A place where flows may wait.
    pub fn add_place(&mut self, holder: Holder) -> PlaceId {
        let place = Place::new(holder);
        match self.free_places.take(self.places.len()) {
            Some(id) => {
                let id = PlaceId(id);
                *self.place_mut(id) = place;
                id
            }
            None => {
                let id = u32::try_from(self.places.len()).expect("fewer than 2^32 places");
                self.places.push(place);
                PlaceId(id)
            }
        }
    }

    /// Forgets a place that no flow uses any more and that is
    /// [at rest](Schedule::is_at_rest).
    pub fn remove_place(&mut self, id: PlaceId) {
        self.set_timer(id, Mono::NEVER);
        *self.place_mut(id) = Place::nowhere();
        self.free_places.give(id.0);
        FreeNumbers::cut(&mut self.places, 0, |place| place.is_free);
    }

    /// Whether nobody is about to look at a place.
    pub fn is_at_rest(&self, id: PlaceId) -> bool {
        let place = self.place(id);
        !place.marked && !place.gate_changed && !place.fed_noted
    }

    /// The limit at a place, if it is still there.
    pub fn limit(&self, id: PlaceId) -> Option<&Limit> {
        match &self.places.get(id.0 as usize)?.holder {
            Holder::Limit(limit) => Some(limit),
            Holder::Gate(_) => None,
        }
    }

    /// The limit at a place, to be granted, released or saved. Whoever changes
    /// what fits calls [`Schedule::mark`] afterwards.
    pub fn limit_mut(&mut self, id: PlaceId) -> Option<&mut Limit> {
        match &mut self.places.get_mut(id.0 as usize)?.holder {
            Holder::Limit(limit) => Some(limit),
            Holder::Gate(_) => None,
        }
    }

    /// Gives a limit new numbers while flows wait at it.
    pub fn reconfigure(&mut self, now: &Now, id: PlaceId, spec: LimitSpec) {
        let place = self.place_mut(id);
        if let Holder::Limit(limit) = &mut place.holder {
            limit.reconfigure(now, spec);
            let (shape, is_fed) = (limit.shape(), limit.is_leased() || limit.needs_reserve());
            place.reshape(shape, is_fed);
        }
        self.note_fed(id);
        self.mark(id);
    }

    /// Gives a limit other shares for the classes.
    pub fn set_headroom(&mut self, id: PlaceId, headroom: Headroom) {
        if let Holder::Limit(limit) = &mut self.place_mut(id).holder
            && limit.headroom() != headroom
        {
            limit.set_headroom(headroom);
            self.mark(id);
        }
    }

    /// Makes a flow known. `places` are all it must pass, the gate last.
    pub fn add_flow(
        &mut self,
        id: FlowId,
        class: Class,
        tenant: TenantId,
        weight: u32,
        places: &[PlaceId],
    ) {
        let stops = places
            .iter()
            .map(|&place| Stop {
                place,
                node: self.join_node(place, class, tenant, weight),
            })
            .collect();
        let entry = Entry {
            class,
            cost: 1,
            standing: Standing::Idle,
            fresh: true,
            by_credit: false,
            carried: (Mono(0), 0),
            brought: false,
            parked: false,
            soft: false,
            claims: 0,
            hops: 0,
            since: Mono(0),
            stops,
            previous: None,
            next: None,
        };
        if self.flows.len() <= id.index() {
            self.flows.resize_with(id.index() + 1, || None);
        }
        if let Some(slot) = self.flows.get_mut(id.index()) {
            *slot = Some(entry);
        }
    }

    /// The node of a tenant at a place; a changed weight counts at once.
    fn join_node(&mut self, place: PlaceId, class: Class, tenant: TenantId, weight: u32) -> NodeId {
        let (id, queued_with) = self.nodes.join(place, class, tenant, weight);
        if let Some(before) = queued_with {
            let queue = self.place_mut(place).class_mut(class);
            queue.weight = queue.weight - u64::from(before) + u64::from(weight);
        }
        id
    }

    /// Forgets a flow, wherever it stands.
    pub fn remove_flow(&mut self, id: FlowId) {
        self.withdraw(id);
        if let Some(entry) = self.flows.get_mut(id.index()).and_then(Option::take) {
            for stop in &entry.stops {
                self.nodes.leave(stop.node);
            }
        }
        FreeNumbers::cut(&mut self.flows, 0, Option::is_none);
    }

    /// The flow has a message of this cost to send. A flow that stands
    /// somewhere already keeps its place.
    pub fn offer(&mut self, id: FlowId, cost: u32) {
        let entry = self.entry_mut(id);
        if entry.standing == Standing::Idle && !entry.parked {
            entry.standing = Standing::Arriving;
            entry.cost = cost;
            entry.fresh = true;
            self.tasks.push_back(Task::Place(id));
            self.count_active(id, true);
        }
    }

    /// The flow has nothing to send any more, or must not send for now.
    pub fn withdraw(&mut self, id: FlowId) {
        let Some(entry) = self.flows.get(id.index()).and_then(Option::as_ref) else {
            return;
        };
        match entry.standing {
            Standing::Idle => return,
            // Its task finds it idle and does nothing.
            Standing::Arriving => {}
            Standing::Waiting { .. } => self.leave_queue(id),
            Standing::Booked { .. } => self.unbook(id),
        }
        self.rest(id);
    }

    /// Keeps a flow from being placed until [`Schedule::unpark`].
    pub fn park(&mut self, id: FlowId) {
        self.withdraw(id);
        self.entry_mut(id).parked = true;
    }

    /// Lets a parked flow be offered again.
    pub fn unpark(&mut self, id: FlowId) {
        self.entry_mut(id).parked = false;
    }

    /// Looks at a place again before the step ends: something about it changed.
    pub fn mark(&mut self, id: PlaceId) {
        let place = self.place_mut(id);
        if !place.marked {
            place.marked = true;
            self.tasks.push_back(Task::Serve(id));
        }
    }

    /// Others took from a limit, or gave back: it is looked at by those who
    /// wait there and by those who feed it.
    pub fn disturb(&mut self, id: PlaceId) {
        self.note_fed(id);
        self.mark(id);
    }

    /// Does what is to be done, at most `budget` visits of it. Whether all is
    /// done; if not, call again.
    pub fn run(&mut self, now: &Now, budget: &mut u32, outlet: &mut impl Outlet) -> bool {
        self.wake_timers(now);
        while *budget > 0 {
            let Some(task) = self.tasks.pop_front() else {
                return true;
            };
            match task {
                Task::Place(flow) => self.place_flow(now, flow, budget, outlet),
                Task::Serve(place) => {
                    self.place_mut(place).marked = false;
                    self.serve(now, place, budget, outlet);
                }
            }
        }
        self.tasks.is_empty()
    }

    /// When [`Schedule::run`] wants to be called again.
    pub fn next_wake(&self) -> Mono {
        if !self.tasks.is_empty() {
            return Mono(0);
        }
        self.timers.first().map_or(Mono::NEVER, |&(at, _)| at)
    }

    /// Whether a flow waits, is booked or is about to be placed.
    pub fn is_active(&self, id: FlowId) -> bool {
        self.entry(id).standing != Standing::Idle
    }

    /// How many tenants, by class, have flows that could wait at a place.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// How often a flow was looked at so far.
    pub fn visits(&self) -> u64 {
        self.visits
    }

    /// The next limit that spends granted or reserved tokens and was drawn on,
    /// or lacks them.
    pub fn take_fed(&mut self) -> Option<PlaceId> {
        let id = self.fed.pop()?;
        self.place_mut(id).fed_noted = false;
        Some(id)
    }

    /// Tokens taken from a fed limit since this was last asked.
    pub fn take_spent(&mut self, id: PlaceId) -> u32 {
        std::mem::take(&mut self.place_mut(id).spent)
    }

    /// Looks at a fed limit again at this time, whoever waits there.
    pub fn look_at(&mut self, id: PlaceId, at: Mono) {
        let place = self.place_mut(id);
        place.look_at = at;
        if at < place.timer {
            self.set_timer(id, at);
        }
    }

    /// How many flows of each class came to a gate since this was last asked,
    /// and how many stand there.
    pub fn take_came(&mut self, id: PlaceId) -> ([u64; Class::COUNT], [u64; Class::COUNT]) {
        let classes = &mut self.place_mut(id).classes;
        let standing = classes.each_ref().map(|queue| u64::from(queue.standing));
        let came = classes
            .each_mut()
            .map(|queue| u64::from(std::mem::take(&mut queue.came)));
        (came, standing)
    }

    /// Serves one flow at a gate for which an account was found; whether one
    /// moved on. The pool names the class whose turn it is: a lower one may have
    /// earned it there, and what was leased for that turn is for nobody else.
    pub fn serve_gate(
        &mut self,
        now: &Now,
        id: PlaceId,
        (class, is_owed): (Class, bool),
        outlet: &mut impl Outlet,
    ) -> bool {
        match self.step_of(now, id, (class, is_owed), outlet) {
            Some(step) => {
                self.take_step(now, id, step, outlet);
                true
            }
            None => self.serve_one(now, id, outlet),
        }
    }

    /// Tells the pool of a gate's waiters again.
    pub fn gate_declined(&mut self, id: PlaceId) {
        self.note_gate(id);
    }

    fn set_timer(&mut self, id: PlaceId, at: Mono) {
        let old = std::mem::replace(&mut self.place_mut(id).timer, at);
        if old == at {
            return;
        }
        if old != Mono::NEVER {
            self.timers.remove(&(old, id));
        }
        if at != Mono::NEVER {
            self.timers.insert((at, id));
        }
    }

    /// The next gate whose waiters changed.
    pub fn take_changed_gate(&mut self) -> Option<PlaceId> {
        let id = self.changed_gates.pop()?;
        self.place_mut(id).gate_changed = false;
        Some(id)
    }

    /// Remembers that a limit which spends granted tokens needs a look.
    fn note_fed(&mut self, id: PlaceId) {
        let place = self.place_mut(id);
        if place.is_fed && !place.fed_noted {
            place.fed_noted = true;
            self.fed.push(id);
        }
    }

    /// The flow stands nowhere any more.
    fn rest(&mut self, id: FlowId) {
        self.entry_mut(id).standing = Standing::Idle;
        self.count_active(id, false);
    }

    fn count_active(&mut self, id: FlowId, more: bool) {
        for index in self.entry(id).stop_indices() {
            let place = self.entry(id).stop(index).place;
            let it = self.place_mut(place);
            it.active = if more { it.active + 1 } else { it.active - 1 };
            // Nobody can come from elsewhere any more: those who wait here need
            // not leave a reserve.
            if !more && it.waiting > 0 && it.active == it.waiting {
                self.mark(place);
            }
        }
    }

    fn wake_timers(&mut self, now: &Now) {
        while let Some(&(at, id)) = self.timers.first() {
            if at > now.mono {
                break;
            }
            self.timers.remove(&(at, id));
            self.place_mut(id).timer = Mono::NEVER;
            self.mark(id);
        }
    }

    fn place(&self, id: PlaceId) -> &Place {
        self.places
            .get(id.0 as usize)
            .expect("a place of this schedule")
    }

    fn place_mut(&mut self, id: PlaceId) -> &mut Place {
        self.places
            .get_mut(id.0 as usize)
            .expect("a place of this schedule")
    }

    fn entry(&self, id: FlowId) -> &Entry {
        self.flows
            .get(id.index())
            .and_then(Option::as_ref)
            .expect("a flow of this schedule")
    }

    fn entry_mut(&mut self, id: FlowId) -> &mut Entry {
        self.flows
            .get_mut(id.index())
            .and_then(Option::as_mut)
            .expect("a flow of this schedule")
    }
}
