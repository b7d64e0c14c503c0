//! An engine with a store, a network and a clock that do as they are told.

use std::collections::{BTreeMap, VecDeque};

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Action, Hold, LeaseRequest, Receipt, Record};
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{FlowId, PermitId, SessionRef};
use outflow_core::limit::spec::LimitSpec;
use outflow_core::message::{Head, Seq};
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos, Now, Wall};

/// More steps than this without the clock moving is spinning.
const STEPS_MAX: usize = 20_000;

/// One delivery.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Mono,
    pub account: String,
    pub flow: FlowId,
    pub cost: u32,
    pub permit: PermitId,
    pub session: SessionRef,
    pub answered: bool,
}

pub struct World {
    pub engine: Engine,
    pub now: Now,
    stored: BTreeMap<FlowId, VecDeque<Head>>,
    next_seq: u64,
    pub sent: Vec<Sent>,
    pub dead: Vec<u32>,
    pub deferred: Vec<Wall>,
    pub opened: Vec<(Mono, SessionRef)>,
    pub closed: Vec<(Mono, SessionRef)>,
    pub leases: Vec<LeaseRequest>,
    /// What was written down of how accounts are held.
    pub holds: BTreeMap<LimitKey, Hold>,
    /// Whether sessions that are opened become ready.
    pub connects: bool,
}

impl World {
    pub fn new() -> Self {
        Self::with(Settings::default(), Policies::default())
    }

    pub fn with(settings: Settings, policies: Policies) -> Self {
        let now = Now {
            mono: Mono(1),
            wall: Wall(1_700_000_000_000_000_000),
            entropy: Entropy(1),
        };
        Self {
            engine: Engine::new(settings, policies, Start::Fresh, &now),
            now,
            stored: BTreeMap::new(),
            next_seq: 1,
            sent: Vec::new(),
            dead: Vec::new(),
            deferred: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            leases: Vec::new(),
            holds: BTreeMap::new(),
            connects: true,
        }
    }

    pub fn flow(&mut self, isp: &str, tenant: &str) -> FlowId {
        let mut key = FlowKey::to(Destination::isp(isp));
        key.tenant = Name::from(tenant);
        self.open(key)
    }

    pub fn open(&mut self, key: FlowKey) -> FlowId {
        self.engine.open_flow(&self.now, key, &mut Vec::new())
    }

    /// Messages of these costs are accepted.
    pub fn queue(&mut self, flow: FlowId, costs: &[u32]) {
        let stored = self.stored.entry(flow).or_default();
        for &cost in costs {
            let head = Head::new(Seq(self.next_seq), self.now.wall);
            self.next_seq += 1;
            stored.push_back(Head { cost, ..head });
        }
        let count = costs.len() as u32;
        self.step(Event::Accepted { flow, count });
    }

    pub fn account(&mut self, spec: AccountSpec) {
        let account = Box::new(spec);
        self.step(Event::AccountChanged { account });
    }

    pub fn remove(&mut self, account: &str) {
        let account = Name::from(account);
        self.step(Event::AccountRemoved { account });
    }

    pub fn policies(&mut self, policies: Policies) {
        let policies = Box::new(policies);
        self.step(Event::PolicyChanged { policies });
    }

    /// Answers the delivery at this place of the list.
    pub fn reply(&mut self, index: usize) {
        let reply = Reply::Said {
            stage: Stage::Data,
            code: 250,
            enhanced: None,
            text: "".into(),
            retry_after: None,
            allows: None,
        };
        self.answer(index, reply, true);
    }

    /// Answers the delivery at this place of the list with these words.
    pub fn answer(&mut self, index: usize, reply: Reply, session_lives: bool) {
        let sent = &mut self.sent[index];
        assert!(!std::mem::replace(&mut sent.answered, true));
        let permit = sent.permit;
        self.step(Event::Replied {
            permit,
            reply,
            session_lives,
        });
    }

    /// Answers everything that is in flight, and what follows from it.
    pub fn reply_all(&mut self) {
        while let Some(index) = self.sent.iter().position(|sent| !sent.answered) {
            self.reply(index);
        }
    }

    /// The ledger grants what was asked for, and its answers end soon.
    pub fn grant_all(&mut self) {
        while let Some(request) = self.leases.pop() {
            let answer = LeaseAnswer::Leased {
                tokens: request.at_least,
                life: Nanos::from_millis(100),
                wait: Nanos::ZERO,
                spacing: Nanos::ZERO,
                receipt: Receipt::default(),
                owed: Default::default(),
            };
            let (limit, no) = (request.limit, request.no);
            self.step(Event::Granted { limit, no, answer });
        }
    }

    /// Lets time pass, answering every delivery at once if asked to.
    pub fn run(&mut self, span: Nanos, answering: bool) {
        let end = self.now.mono + span;
        loop {
            if answering {
                self.reply_all();
            }
            let at = self.engine.next_wake().min(end);
            let passed = at.since(self.now.mono);
            self.now.mono = self.now.mono + passed;
            self.now.wall = self.now.wall + passed;
            self.step(Event::Woke);
            if at >= end {
                break;
            }
        }
        if answering {
            self.reply_all();
        }
    }

    /// One step and whatever follows from it at this moment.
    pub fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        for _ in 0..STEPS_MAX {
            let event = match events.pop_front() {
                Some(event) => event,
                None if self.engine.next_wake() <= self.now.mono => Event::Woke,
                None => {
                    self.engine.check(&self.now).unwrap();
                    return;
                }
            };
            let mut actions = Vec::new();
            self.engine.step(&self.now, event, &mut actions);
            for action in actions {
                events.extend(self.act(action));
            }
        }
        panic!("the engine spins at {:?}", self.now.mono);
    }

    pub fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Page { flow, max } => {
                let stored = self.stored.entry(flow).or_default();
                let count = stored.len().min(max as usize);
                let heads = stored.drain(..count).collect();
                return Some(Event::Paged { flow, heads });
            }
            Action::Append { no, record } => {
                match record {
                    Record::Dead { seq, .. } => self.dead.push(seq.0 as u32),
                    Record::Deferral { until, .. } => self.deferred.push(until),
                    Record::Held { key, hold } => {
                        self.holds.insert((*key).clone(), hold);
                    }
                    _ => {}
                }
                return Some(Event::Committed { through: no });
            }
            Action::OpenSession { session, .. } => {
                self.opened.push((self.now.mono, session));
                return self.connects.then_some(Event::SessionReady { session });
            }
            Action::CloseSession { session } => self.closed.push((self.now.mono, session)),
            Action::Deliver(delivery) => {
                let account = self.engine.account(delivery.account).unwrap();
                self.sent.push(Sent {
                    at: self.now.mono,
                    account: account.id.to_string(),
                    flow: delivery.flow,
                    cost: delivery.head.cost,
                    permit: delivery.permit,
                    session: delivery.session,
                    answered: false,
                });
            }
            Action::Lease(request) => self.leases.push(request),
            Action::GiveBack(_) | Action::PauseLimit { .. } => {}
            Action::OpenFlow { .. }
            | Action::CloseFlow { .. }
            | Action::Resolve { .. }
            | Action::Alert { .. } => {}
            Action::Suppress { .. } => {}
        }
        None
    }

    /// What an account sent, by cost.
    pub fn costs_of(&self, account: &str) -> Vec<u32> {
        let sent = self.sent.iter().filter(|sent| sent.account == account);
        sent.map(|sent| sent.cost).collect()
    }

    /// Which accounts sent for a flow, each once.
    pub fn senders_of(&self, flow: FlowId) -> Vec<&str> {
        let sent = self.sent.iter().filter(|sent| sent.flow == flow);
        let mut senders: Vec<&str> = sent.map(|sent| sent.account.as_str()).collect();
        senders.sort_unstable();
        senders.dedup();
        senders
    }

    pub fn in_flight(&self) -> usize {
        self.sent.iter().filter(|sent| !sent.answered).count()
    }
}

/// An account of request slots, with these limits.
pub fn account(name: &str, slots: u32, limits: &[&str]) -> AccountSpec {
    let mut account = AccountSpec::new(name);
    account.sessions = Sessions::slots(slots);
    account.limits = limits
        .iter()
        .map(|text| LimitSpec::parse(text).unwrap())
        .collect();
    account
}

pub const fn secs(secs: u64) -> Nanos {
    Nanos::from_secs(secs)
}
