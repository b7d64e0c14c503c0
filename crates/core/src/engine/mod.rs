//! The engine: events in, actions out.
//!
//! [`Engine::step`] is the one entry. It takes what happened and the time, and
//! says what is to be done; [`Engine::next_wake`] says when it wants to be
//! called if nothing happens. A step does bounded work: what is left over
//! (a policy change over a hundred thousand flows, a long queue at a gate)
//! makes `next_wake` the present.
//!
//! Reading order: `settings`, [`event`], [`action`], [`command`]; `flows` (heads and
//! paging), `limits`, `feed` and `feeding` (what holds flows), `desk`, `account_limits`
//! and `matching` (lanes, accounts, pools), `counter` (the moment of sending), `replies` (what
//! became of it), `counts`, `learn`, [`learners`], `lore`, `lessons`, `bounds` and `obeying` (what that teaches), `alerting` (what people are told), `breaking` (whom to leave alone), `recall` (how they are held after a restart), `permits`, `appends`, `budgets`, `recipients`; `setup` and `names` (new
//! flows, accounts, policies), `admission`, `resolved`, `rounds` and `sweep` (changes over many accounts
//! and flows), `tenants` and `closing` (what ends a flow), [`explain`], [`unserved`], [`view`], [`standing`]; `holdups` and [`meters`] (what limits made
//! wait).

mod account_limits;
pub mod action;
pub mod admission;
mod alerting;
mod appends;
mod bounds;
mod breaking;
mod budgets;
mod closing;
pub mod command;
mod counter;
mod counts;
mod desk;
pub mod event;
pub mod explain;
pub(crate) mod feed;
mod feeding;
mod flows;
mod holdups;
mod learn;
pub mod learners;
pub mod lend;
mod lessons;
mod limits;
mod lore;
mod matching;
pub mod meters;
mod names;
mod obeying;
mod pair;
mod permits;
pub mod recall;
mod recipients;
mod replies;
mod resolved;
mod rounds;
mod settings;
mod setup;
pub mod standing;
mod sweep;
mod tenants;
mod tidying;
pub mod unserved;
pub mod view;
mod welcome;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::action::{Action, Hasten, Record};
use self::alerting::Alerted;
use self::appends::Appends;
use self::budgets::Budgets;
use self::command::{Command, PauseId};
use self::counter::Counter;
use self::counts::Counts;
use self::desk::Desk;
use self::event::Event;
pub use self::flows::{FLOW_GRACE, HEADS_MAX, IDLE_FLOWS_MAX};
use self::flows::{Flows, Withdrawn};
use self::limits::{FlowLimits, Maker};
pub use self::limits::{SavedLimit, Start};
use self::permits::Permits;
use self::recipients::Recipients;
use self::resolved::Resolved;
use self::rounds::Rounds;
pub use self::settings::{Gauges, Settings};
use self::sweep::{Pause, Sweep};
use self::tenants::Tenants;
use self::tidying::Tidying;
use crate::classify::Rules;
use crate::handle::FlowId;
use crate::limit::lease::PARTING_SEEN;
use crate::message::{Head, Seq, State};
use crate::name::Name;
use crate::policy::set::Policies;
use crate::reply::Reply;
use crate::schedule::Schedule;
use crate::time::{Clocks, Mono, Now};

/// Looks at flows and matches in one step.
const STEP_BUDGET: u32 = 64;

/// Every delivery decision.
#[derive(Debug)]
pub struct Engine {
    schedule: Schedule,
    limits: FlowLimits,
    counter: Counter,
    rules: Rules,
    counts: Counts,
    tenants: Tenants,
    /// Flows that wait for their domain to be resolved.
    unresolved: BTreeMap<Name, BTreeSet<FlowId>>,
    resolved: Resolved,
    pauses: BTreeMap<PauseId, Pause>,
    pause_ends: BTreeSet<(Mono, PauseId)>,
    sweeps: VecDeque<Sweep>,
    rounds: Rounds,
    alerted: Alerted,
    opened_at: Mono,
    /// When what nobody uses is looked at next.
    tidying: Tidying,
    /// How the clocks stood to each other when that last mattered.
    clocks: Clocks,
}

impl Engine {
    /// An engine without flows and accounts.
    pub fn new(settings: Settings, mut policies: Policies, mut start: Start, now: &Now) -> Self {
        if let Start::Again { adapted, .. } = &mut start {
            adapted.retain(|_, lore| !lore.is_forgotten(now));
            for (key, lore) in adapted {
                policies.learn(key.clone(), lore.learning);
            }
        }
        let (permille, floor) = settings.retry_budget;
        let maker = Maker::new(settings.leased, start, now);
        let counter = Counter {
            settings,
            flows: Flows::default(),
            last_opened: None,
            desk: Desk::new(settings.pool, settings.breaker),
            permits: Permits::default(),
            appends: Appends::default(),
            budgets: Budgets::new(permille, floor),
            recipients: Recipients::new(maker.known(true)),
            policies,
            maker,
            matched: None,
            draining: false,
            actions: Vec::new(),
            sends: 0,
        };
        let tidying = Tidying::new(counter.maker.known(false));
        let rounds = match counter.policies.learns() {
            true => Rounds::from_the_start(),
            false => Rounds::default(),
        };
        Self {
            schedule: Schedule::default(),
            limits: FlowLimits::default(),
            counter,
            rules: Rules::built_in(),
            counts: Counts::default(),
            tenants: Tenants::default(),
            unresolved: BTreeMap::new(),
            resolved: Resolved::default(),
            pauses: BTreeMap::new(),
            pause_ends: BTreeSet::new(),
            sweeps: VecDeque::new(),
            rounds,
            alerted: Alerted::default(),
            opened_at: now.mono,
            tidying,
            clocks: now.clocks(),
        }
    }

    /// Reads replies by these rules from now on.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Takes in what happened; `actions` gets what is to be done.
    pub fn step(&mut self, now: &Now, event: Event, actions: &mut Vec<Action>) {
        std::mem::swap(actions, &mut self.counter.actions);
        self.counter.flows.now = now.mono;
        if self.clocks.parted(now) >= PARTING_SEEN {
            self.clocks = now.clocks();
            self.clocks_parted(now);
        }
        self.take_in(now, event);
        self.lapse(now);
        self.work(now);
        std::mem::swap(actions, &mut self.counter.actions);
    }

    fn take_in(&mut self, now: &Now, event: Event) {
        match event {
            Event::Accepted { flow, count } | Event::Due { flow, count } => {
                self.more_in_store(now, flow, count);
            }
            Event::Paged { flow, heads } => self.paged(now, flow, &heads),
            Event::Expired { flow, seqs, held } => self.expired(flow, &seqs, held),
            Event::FlowClosed {
                flow,
                request,
                is_free,
            } => self.flow_closed(now, flow, request, is_free),
            Event::Committed { through } => self.committed(now, through),
            Event::CommitFailed { through } => {
                let counter = &mut self.counter;
                counter
                    .appends
                    .fail(now.mono, through, &mut counter.actions);
            }
            Event::Resolved {
                domain,
                destination,
            } => self.resolve(now, domain, destination),
            Event::SessionReady { session } => {
                let pool = self.counter.desk.pool_mut(session.pool);
                pool.session_ready(now.mono, session.session);
            }
            Event::SessionClosed { session } => {
                let pool = self.counter.desk.pool_mut(session.pool);
                pool.session_failed(now.mono, session.session);
            }
            Event::SessionRefused { session, reply } => {
                self.session_refused(now, session, &reply);
            }
            Event::Replied {
                permit,
                reply,
                session_lives,
            } => {
                self.replied(now, permit, &reply, session_lives);
            }
            Event::Granted { limit, no, answer } => self.granted(now, limit, no, answer),
            Event::Paused { key, lasts } => self.paused(now, &key, lasts),
            Event::Feedback { flow, seq, reply } => self.feedback(flow, seq, &reply),
            Event::Heard {
                key,
                account,
                counter,
                teller,
            } => self.count_later(now, &key, account.as_ref(), (counter, teller)),
            Event::PolicyChanged { policies } => {
                let before = std::mem::replace(&mut self.counter.policies, *policies);
                self.counter.policies.keep_learning(before);
                self.review_bounds();
                self.review_accounts();
            }
            Event::AccountChanged { account } => self.set_account(now, *account),
            Event::AccountRemoved { account } => {
                self.counter.desk.remove_account(now, &account);
                self.review_flows();
            }
            Event::Command(command) => self.command(now, command),
            Event::Woke => {}
        }
    }

    /// What time alone brings.
    fn lapse(&mut self, now: &Now) {
        self.counter.desk.wake(now);
        self.counter.maker.learners.wake(now);
        while let Some(permit) = self.counter.permits.overdue(now.mono) {
            let alert = action::Alert::WorkerLost { permit };
            self.counter.actions.push(Action::Alert { alert });
            self.replied(now, permit, &Reply::Uncertain, false);
        }
        while let Some(&(at, id)) = self.pause_ends.first() {
            if at > now.mono {
                break;
            }
            self.resume(id);
        }
        let counter = &mut self.counter;
        counter.appends.retry(now.mono, &mut counter.actions);
        self.close_idle();
        self.tidy(now);
    }

    /// Places flows, serves limits and gates, opens and closes sessions, until
    /// nothing is left to do or the step's budget is used up.
    fn work(&mut self, now: &Now) {
        let mut budget = STEP_BUDGET;
        self.go_round(now);
        self.sweep(now);
        loop {
            self.follow_learners(now);
            let done = self.schedule.run(now, &mut budget, &mut self.counter);
            self.feed(now);
            self.tell_pools(now);
            let matched = self.match_accounts(now, &mut budget);
            self.open_and_close(now);
            self.write_kept(now);
            if budget == 0 || (done && !matched && self.schedule.next_wake() > now.mono) {
                break;
            }
        }
    }

    /// When the engine wants to be called if nothing happens before.
    pub fn next_wake(&self) -> Mono {
        let counter = &self.counter;
        let pause_end = self.pause_ends.first().map_or(Mono::NEVER, |&(at, _)| at);
        if !self.sweeps.is_empty() || !self.rounds.is_empty() {
            return Mono(0);
        }
        let desk = if counter.is_open() {
            counter.desk.next_wake()
        } else {
            Mono::NEVER
        };
        self.schedule
            .next_wake()
            .min(desk)
            .min(counter.maker.learners.next_wake())
            .min(counter.permits.next_wake())
            .min(counter.appends.next_wake())
            .min(counter.flows.next_close())
            .min(self.tidying.next_wake())
            .min(pause_end)
    }

    /// Sizes that bound memory.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            flows: self.counter.flows.len(),
            tenants: self.tenants.len(),
            lanes: self.counter.desk.lanes_known(),
            nodes: self.schedule.nodes(),
            budgets: self.counter.budgets.len(),
            heads: self.counter.flows.heads_held(),
            limits: self.limits.len()
                + self.counter.desk.limits.len()
                + self.counter.recipients.len(),
            sessions: self.counter.desk.sessions(),
            in_flight: self.counter.permits.len(),
            unconfirmed: self.counter.appends.len(),
            opened_at: self.opened_at,
            visits: self.schedule.visits(),
            sends: self.counter.sends,
        }
    }

    /// Whether nothing is in flight and everything handed over is durable.
    pub fn is_quiet(&self) -> bool {
        self.counter.permits.len() == 0 && self.counter.appends.is_settled()
    }

    /// Recounts everything and says what is wrong, for tests and simulations.
    pub fn check(&self, now: &Now) -> Result<(), String> {
        self.counter.flows.check()?;
        // That the clocks parted it learns with its next step.
        if self.clocks.parted(now) >= PARTING_SEEN {
            return Ok(());
        }
        self.schedule.check(now, &self.counter)
    }

    fn more_in_store(&mut self, now: &Now, id: FlowId, count: u32) {
        let counter = &mut self.counter;
        let Some(flow) = counter.flows.get_mut(id) else {
            return;
        };
        flow.in_store = flow.in_store.saturating_add(count);
        if flow.is_twin {
            self.join_twin(now, id);
        } else if flow.pauses == 0 {
            flow.page(id, &counter.appends, &mut counter.actions);
        }
    }

    fn paged(&mut self, now: &Now, id: FlowId, heads: &[Head]) {
        let Some(flow) = self.counter.flows.get_mut(id) else {
            return;
        };
        let asked = flow.paging.take().unwrap_or(0);
        let got = heads.len() as u32;
        // Fewer than asked for: the count was too high (cancelled, expired).
        let left = flow.in_store.saturating_sub(got);
        flow.in_store = if got < asked.min(flow.in_store) {
            0
        } else {
            left
        };
        let (lane, cost_max) = (flow.lane, flow.cost_max);
        let withdrawn = std::mem::take(&mut flow.withdrawn);
        for said in &withdrawn {
            if let Withdrawn::Moved { to, .. } = said {
                self.counter.release_flow(*to);
            }
        }
        for head in heads {
            if self.is_withdrawn(id, head.seq, &withdrawn) {
                continue;
            }
            if head.cost > cost_max {
                self.refuse_for_good(now, id, head);
            } else {
                if head.cost > 1
                    && let Some(lane) = lane
                {
                    self.counter.desk.expect_cost(now, lane, head.cost);
                }
                if let Some(flow) = self.counter.flows.get_mut(id) {
                    flow.heads.push_back(*head);
                }
            }
        }
        self.offer(id);
    }

    /// Lets the schedule know that a flow has something to send.
    fn offer(&mut self, id: FlowId) {
        let counter = &mut self.counter;
        let Some(flow) = counter.flows.get_mut(id) else {
            return;
        };
        if flow.lane.is_some() && flow.pauses == 0 {
            if let Some(head) = flow.heads.front() {
                self.schedule.offer(id, head.cost);
            }
            flow.page(id, &counter.appends, &mut counter.actions);
        }
        self.counter.flows.let_end(id);
    }

    fn expired(&mut self, id: FlowId, seqs: &[Seq], held: bool) {
        for &seq in seqs {
            let Some(flow) = self.counter.flows.get_mut(id) else {
                return;
            };
            let before = flow.heads.len();
            flow.heads.retain(|head| head.seq != seq);
            // One that is in flight is settled by its reply.
            if flow.heads.len() < before || !held {
                let record = Record::Settlement {
                    flow: id,
                    seq,
                    state: State::Expired,
                    account: None,
                    error: None,
                };
                self.counter.append(record);
            }
        }
        self.reconsider(id);
    }

    /// The head of a flow may have changed under the schedule.
    fn reconsider(&mut self, id: FlowId) {
        let Some(flow) = self.counter.flows.get_mut(id) else {
            return;
        };
        if flow.lane.is_some() && flow.heads.is_empty() {
            self.schedule.withdraw(id);
        }
        self.offer(id);
    }

    fn command(&mut self, now: &Now, command: Command) {
        match command {
            Command::Pause { id, matches, until } => self.pause(now, id, matches, until),
            Command::Resume { id } => self.resume(id),
            Command::Cancel { flow, seq } => self.withdraw(flow, seq, State::Cancelled, None),
            Command::Suppress { flow, seq, error } => {
                self.withdraw(flow, seq, State::Suppressed, Some(error));
            }
            Command::Retry { flow, seq } => {
                if self.counter.flows.get(flow).is_some() {
                    let which = Hasten::One(seq);
                    self.counter.append(Record::Hastened { flow, which });
                }
            }
            Command::RetryAll { matches, through } => {
                self.sweeps.push_back(Sweep::hasten(matches, through));
            }
            Command::CancelAll { matches, through } => {
                self.sweeps.push_back(Sweep::cancel(matches, through));
            }
            Command::MoveAll {
                matches,
                pool,
                through,
            } => {
                self.sweeps
                    .push_back(Sweep::relocate(matches, pool, through));
            }
            Command::Tune { key, tune } => self.tune(now, &key, tune),
            Command::Drain => self.counter.draining = true,
        }
    }
}
