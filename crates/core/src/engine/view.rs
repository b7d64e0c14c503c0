//! What the engine shows of itself: lanes, limits, how much waits.
//!
//! Everything is counted when somebody asks, in one pass over what there is, so
//! that sending costs nothing for it. Only what holds a lane is looked at less
//! closely: for its most urgent flow, at a few accounts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Engine;
use super::account_limits::Owner;
use super::desk::Standstills;
use super::explain::Obstacle;
use super::flows::Flow;
use crate::adapt::{Controller, Mode};
use crate::class::Class;
use crate::destination::Destination;
use crate::handle::{AccountId, FlowId, LaneId, PoolId};
use crate::limit::need::Need;
use crate::limit::spec::LimitSpec;
use crate::limit::{Kind, Limit, Until};
use crate::message::Seq;
use crate::name::Name;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::matcher::Match;
use crate::time::{Mono, Now, Wall};

/// Accounts of a pool that are looked at to learn what holds a lane.
const ACCOUNTS_LOOKED_AT: usize = 16;

/// Something by class.
pub type ByClass<T> = [T; Class::COUNT];

/// One lane as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneView {
    /// Its accounts.
    pub pool: Name,
    /// Who judges it.
    pub destination: Destination,
    /// Messages that wait in it, by class; those that wait for their own time
    /// are not among them.
    pub waiting: ByClass<u64>,
    /// Deliveries in flight.
    pub in_flight: u64,
    /// Sessions, open or opening.
    pub sessions: u32,
    /// Deliveries so far.
    pub sent: u64,
    /// What holds its most urgent flow, if anything waits and is held.
    pub waiting_on: Vec<Obstacle>,
    /// Whether all of its flows are paused.
    pub paused: bool,
    /// When the oldest head was accepted; none if no head is held.
    pub oldest: Option<Wall>,
    /// Accounts that are left alone here: they failed, or were refused too
    /// often.
    pub broken: u32,
    /// Accounts of which one message is let through to see whether they are
    /// back.
    pub half_open: u32,
    /// How many sessions its accounts may hold here, where the far end was found
    /// to welcome fewer than they could.
    pub sessions_welcome: Option<u32>,
}

/// One limit as it is now.
#[derive(Clone, Debug)]
pub struct LimitView {
    /// What it is called.
    pub key: Arc<LimitKey>,
    /// Its algorithm and numbers.
    pub spec: LimitSpec,
    /// What it would admit at once now, to the most urgent class.
    pub tokens: u64,
    /// What it holds at most.
    pub capacity: u64,
    /// Flows that wait at it, by class. At a limit of an account that admits
    /// nothing: those at the gates that it keeps shut.
    pub waiters: ByClass<u64>,
    /// When it admits one more; none if it does now, or nobody knows.
    pub next_grant: Option<Wall>,
    /// What was learnt, if its rate is.
    pub learnt: Option<LearntView>,
}

/// What was learnt of a rate.
#[derive(Clone, Debug)]
pub struct LearntView {
    /// What its controller is doing.
    pub mode: Mode,
    /// In messages a second; nothing while it is stopped.
    pub rate: f64,
    /// The rate as a share of what it may become.
    pub factor: f64,
    /// No increase before this time.
    pub cooldown_until: Option<Wall>,
    /// All of it in one sentence.
    pub sentence: String,
}

/// How much waits and is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepthView {
    /// Messages that are ready, by class.
    pub waiting: ByClass<u64>,
    /// Deliveries in flight, by class.
    pub in_flight: ByClass<u64>,
    /// When the oldest head was accepted, by class.
    pub oldest: ByClass<Option<Wall>>,
}

impl DepthView {
    fn add(&mut self, flow: &Flow) {
        let class = flow.key.class.index();
        if let Some(waiting) = self.waiting.get_mut(class) {
            *waiting += flow.waiting();
        }
        if let Some(in_flight) = self.in_flight.get_mut(class) {
            *in_flight += u64::from(flow.in_flight);
        }
        let head = flow.heads.front().map(|head| head.accepted_at);
        if let Some(oldest) = self.oldest.get_mut(class) {
            *oldest = oldest.iter().copied().chain(head).min();
        }
    }

    fn oldest_of_all(&self) -> Option<Wall> {
        self.oldest.iter().flatten().min().copied()
    }
}

/// What the flows of one lane add up to.
#[derive(Default)]
struct Sum {
    depth: DepthView,
    /// The most urgent flow that has something to send.
    first: Option<(Class, FlowId)>,
    flows: u32,
    paused: u32,
}

impl Sum {
    fn add(&mut self, id: FlowId, flow: &Flow) {
        self.depth.add(flow);
        self.flows += 1;
        self.paused += u32::from(flow.pauses > 0);
        if flow.waiting() > 0 {
            let this = (flow.key.class, id);
            self.first = Some(self.first.map_or(this, |first| first.min(this)));
        }
    }

    fn is_paused(&self) -> bool {
        self.flows > 0 && self.paused == self.flows
    }
}

impl Engine {
    /// How much waits and is under way, in all.
    pub fn depth(&self) -> DepthView {
        let mut depth = DepthView::default();
        for (_, flow) in self.counter.flows.range(0) {
            depth.add(flow);
        }
        depth
    }

    /// Messages that are ready in the flows that match.
    pub fn waiting(&self, matches: &Match) -> u64 {
        let flows = self.counter.flows.range(0);
        let flows = flows.filter(|(_, flow)| matches.matches_flow(&flow.key));
        flows.map(|(_, flow)| flow.waiting()).sum()
    }

    /// Heads, of at most `max` flows from a place of the caller's choice on,
    /// for which an account and a session stand ready: nothing but the flow's
    /// own limits holds them, nobody is before them at a bucket, and none of their limits
    /// waits for tokens to be granted or reserved, or is a window or
    /// spaced limit that says so itself. For those who watch that no token is wasted.
    pub fn heads_at_open_gates(
        &self,
        now: &Now,
        max: usize,
        from: usize,
    ) -> Vec<(FlowId, Seq, u32)> {
        let counter = &self.counter;
        let from = from % counter.flows.end().max(1);
        counter
            .flows
            .range(from)
            .filter(|(_, flow)| flow.pauses == 0)
            .filter_map(|(id, flow)| {
                let (head, lane) = (flow.heads.front()?, flow.lane?);
                let class = flow.key.class;
                let open = counter.is_open() && counter.desk.can_take(lane, class, head.cost);
                let ungranted = flow.limits.iter().any(|&place| {
                    let limit = self.schedule.limit(place);
                    let Some(limit) = limit else { return false };
                    match limit.until_above_floor(now, class, Need::whole(head.cost), head.cost) {
                        Until::Now => false,
                        Until::Granted => true,
                        // Windows and spaced limits err on the safe side, most
                        // of all after a restart.
                        _ => limit.shape().kind != Kind::TokenBucket,
                    }
                });
                let first = self.schedule.is_first_at_bucket(id);
                (open && first && !ungranted).then_some((id, head.seq, head.cost))
            })
            .take(max)
            .collect()
    }

    /// Whether the engine holds the head of a message, or was just sent it.
    pub fn holds(&self, id: FlowId, seq: Seq) -> bool {
        self.counter.flows.get(id).is_some_and(|flow| {
            let is_head = flow.heads.iter().any(|head| head.seq == seq);
            is_head || (flow.paging.is_some() && !self.is_in_flight(id, seq))
        })
    }

    /// How many heads of its flow are before a message; all of them if its own
    /// is not held.
    pub fn ahead_in_heads(&self, id: FlowId, seq: Seq) -> u64 {
        let heads = self.counter.flows.get(id).map(|flow| flow.heads.iter());
        let before = heads.map(|heads| heads.take_while(|head| head.seq != seq).count());
        before.unwrap_or(0) as u64
    }

    /// Whether a message is on its way to the far end.
    pub fn is_in_flight(&self, id: FlowId, seq: Seq) -> bool {
        let flow = self.counter.flows.get(id);
        flow.is_some_and(|flow| flow.in_flight > 0) && self.counter.permits.is_in_flight(id, seq)
    }

    /// The numbers of all messages on their way to the far end, in order.
    pub fn in_flight(&self) -> Vec<Seq> {
        self.counter.permits.seqs()
    }

    /// All lanes that have messages, sessions or a pause.
    pub fn lanes(&self, now: &Now) -> Vec<LaneView> {
        let desk = &self.counter.desk;
        let mut sums: Vec<Sum> = Vec::new();
        sums.resize_with(desk.lanes_end(), Sum::default);
        let mut unresolved: BTreeMap<(&Name, &Destination), Sum> = BTreeMap::new();
        for (id, flow) in self.counter.flows.range(0) {
            let sum = match flow.lane {
                Some(lane) => sums.get_mut(lane.index()),
                None => {
                    let key = (&flow.key.pool, &flow.key.destination);
                    Some(unresolved.entry(key).or_default())
                }
            };
            if let Some(sum) = sum {
                sum.add(id, flow);
            }
        }
        let accounts = self.accounts_by_pool();
        let standstills = desk.standstills();
        let known = desk.lanes().filter_map(|(id, lane)| {
            let sum = sums.get(id.index())?;
            let accounts = accounts.get(&lane.pool);
            let accounts = accounts.map_or(&[][..], Vec::as_slice);
            self.lane_view(now, id, sum, accounts, &standstills)
        });
        let known: Vec<LaneView> = known.collect();
        let waiting = unresolved.into_iter().map(|((pool, destination), sum)| {
            let mut view = LaneView::of(pool, destination, &sum);
            view.waiting_on.push(Obstacle::Unresolved);
            view
        });
        let waiting = waiting.filter(LaneView::is_worth_showing);
        known.into_iter().chain(waiting).collect()
    }

    fn lane_view(
        &self,
        now: &Now,
        id: LaneId,
        sum: &Sum,
        accounts: &[AccountId],
        standstills: &Standstills,
    ) -> Option<LaneView> {
        let desk = &self.counter.desk;
        let lane = desk.lane(id);
        let mut view = LaneView::of(&lane.facts.pool, &lane.destination, sum);
        let pool = desk.pool(lane.pool);
        view.sessions = pool.lane_counts(id).live();
        let welcome = accounts.iter().filter_map(|&it| pool.welcome_of(it, id));
        let welcome = welcome.filter_map(|welcome| welcome.sessions);
        view.sessions_welcome = welcome.reduce(u32::saturating_add);
        view.sent = lane.sent;
        let tripped = standstills.at(id, lane.pool);
        (view.broken, view.half_open) = (tripped.open, tripped.half_open);
        if let Some((_, first)) = sum.first
            && let Some(flow) = self.counter.flows.get(first)
        {
            view.waiting_on = self.holds_flow(now, flow, id, accounts);
        }
        view.is_worth_showing().then_some(view)
    }

    /// The first few accounts of each pool.
    fn accounts_by_pool(&self) -> BTreeMap<PoolId, Vec<AccountId>> {
        let mut pools: BTreeMap<PoolId, Vec<AccountId>> = BTreeMap::new();
        for (id, account) in self.counter.desk.accounts() {
            let accounts = pools.entry(account.pool).or_default();
            if accounts.len() < ACCOUNTS_LOOKED_AT {
                accounts.push(id);
            }
        }
        pools
    }

    /// All limits of flows and of accounts, in order of their keys.
    pub fn limit_views(&self, now: &Now) -> Vec<LimitView> {
        let of_flows = self.limits.iter().filter_map(|(key, place)| {
            let limit = self.schedule.limit(place)?;
            let waiters = self.schedule.waiters_at(place);
            let learnt = self.learnt_view(now, key);
            Some(LimitView::of(now, key, limit, waiters, learnt))
        });
        let at_gates = self.waiters_by_pool();
        let of_accounts = self.counter.desk.limits.iter().map(|entry| {
            let shut = entry.limit.available(now) == 0;
            let first = entry.owners.first().filter(|_| shut);
            let waiters = first.map_or([0; Class::COUNT], |owner| match *owner {
                Owner::Account(id) => {
                    let pool = self.counter.desk.account(id).map(|account| account.pool);
                    let waiters = pool.and_then(|pool| at_gates.get(pool.index()));
                    waiters.copied().unwrap_or_default()
                }
                Owner::Pair(_, lane) => {
                    let gate = self.counter.desk.lane(lane).gate;
                    self.schedule.waiters_at(gate)
                }
            });
            let learnt = self.learnt_view(now, &entry.key);
            LimitView::of(now, &entry.key, &entry.limit, waiters, learnt)
        });
        let known = self.counter.maker.learners.known(now);
        let known = known.map(|(key, controller, limit)| {
            let learnt = LearntView::of(now, &controller);
            LimitView::of(now, &key, &limit, [0; Class::COUNT], Some(learnt))
        });
        let mut views: Vec<LimitView> = of_flows.chain(of_accounts).chain(known).collect();
        views.sort_by(|a, b| a.key.cmp(&b.key));
        views
    }

    fn learnt_view(&self, now: &Now, key: &LimitKey) -> Option<LearntView> {
        if *key.facet() != Facet::Learnt {
            return None;
        }
        let learners = &self.counter.maker.learners;
        let controller = &learners.get(learners.find(key)?)?.controller;
        Some(LearntView::of(now, controller))
    }

    /// Flows at the gates of each pool, by class.
    fn waiters_by_pool(&self) -> Vec<ByClass<u64>> {
        let mut pools: Vec<ByClass<u64>> = Vec::new();
        for (_, lane) in self.counter.desk.lanes() {
            if pools.len() <= lane.pool.index() {
                pools.resize(lane.pool.index() + 1, [0; Class::COUNT]);
            }
            let here = self.schedule.waiters_at(lane.gate);
            if let Some(pool) = pools.get_mut(lane.pool.index()) {
                for (sum, count) in pool.iter_mut().zip(here) {
                    *sum += count;
                }
            }
        }
        pools
    }
}

impl LaneView {
    fn of(pool: &Name, destination: &Destination, sum: &Sum) -> Self {
        Self {
            pool: pool.clone(),
            destination: destination.clone(),
            waiting: sum.depth.waiting,
            in_flight: sum.depth.in_flight.iter().sum(),
            sessions: 0,
            sent: 0,
            waiting_on: Vec::new(),
            paused: sum.is_paused(),
            oldest: sum.depth.oldest_of_all(),
            broken: 0,
            half_open: 0,
            sessions_welcome: None,
        }
    }

    fn is_worth_showing(&self) -> bool {
        let waits = self.waiting.iter().any(|&count| count > 0);
        let is_broken = self.broken + self.half_open > 0;
        waits || self.in_flight > 0 || self.sessions > 0 || self.paused || is_broken
    }
}

impl LearntView {
    fn of(now: &Now, controller: &Controller) -> Self {
        let cooldown = controller.cooldown_until();
        let is_ahead = cooldown > now.mono && cooldown != Mono::NEVER;
        Self {
            mode: controller.mode(),
            rate: controller.rate(now),
            factor: controller.factor(now),
            cooldown_until: is_ahead.then(|| now.wall_at(cooldown)),
            sentence: controller.sentence(now),
        }
    }
}

impl LimitView {
    fn of(
        now: &Now,
        key: &Arc<LimitKey>,
        limit: &Limit,
        waiters: ByClass<u64>,
        learnt: Option<LearntView>,
    ) -> Self {
        let next_grant = match limit.until(now, Class::Critical, Need::whole(1)) {
            Until::At(at) if at != Mono::NEVER => Some(now.wall_at(at)),
            _ => None,
        };
        Self {
            key: Arc::clone(key),
            spec: limit.spec().clone(),
            tokens: limit.available(now),
            capacity: u64::from(limit.most()),
            waiters,
            next_grant,
            learnt,
        }
    }
}
