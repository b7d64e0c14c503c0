//! What operators and callers ask of a running engine, each case by itself.

mod accounts;
mod allowed;
mod changes;
mod commands;
mod explain;
mod heads;
mod learning;
mod scopes;
mod views;

use std::collections::{BTreeMap, VecDeque};

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Action, Alert, Delivery, Record};
use outflow_core::engine::command::Command;
use outflow_core::engine::event::Event;
use outflow_core::engine::explain::{Explanation, Obstacle};
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::message::{Head, Seq, State};
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos, Now, Wall};

/// The wall clock when a desk opens.
const START: Wall = Wall(1_000_000_000_000_000_000);

/// Isp google at 1/s, burst 1.
fn google_at_one() -> Policies {
    let mut policy = Policy::new(to("google"));
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(1)));
    policy.burst = Some(1);
    with(policy)
}

fn with(policy: Policy) -> Policies {
    let mut policies = Policies::default();
    policies.insert(policy).unwrap();
    policies
}

fn to(isp: &str) -> Match {
    Match::from_pairs([("isp", isp)]).unwrap()
}

/// An account with ten request slots and these limits.
fn account(name: &str, limits: &[&str]) -> AccountSpec {
    let mut account = AccountSpec::new(name);
    account.sessions = Sessions::slots(10);
    let limits = limits.iter().map(|text| LimitSpec::parse(text).unwrap());
    account.limits = limits.collect();
    account
}

/// An engine with a queue and a disk that takes everything at once.
struct Desk {
    engine: Engine,
    now: Now,
    stored: BTreeMap<FlowId, VecDeque<Head>>,
    /// Whether pages stay on their way until [`Desk::hand_over`].
    slow_pages: bool,
    pages: Vec<(FlowId, Vec<Head>)>,
    deliveries: Vec<Delivery>,
    /// Everything written, but reservations.
    written: Vec<Record>,
    alerts: Vec<Alert>,
    /// The flows that the store was asked to close; it keeps them.
    closing: Vec<FlowId>,
}

impl Desk {
    fn new(policies: Policies) -> Self {
        Self::with_settings(Settings::default(), policies)
    }

    fn with_settings(settings: Settings, policies: Policies) -> Self {
        let now = Now {
            mono: Mono(1),
            wall: START,
            entropy: Entropy(1),
        };
        Self {
            engine: Engine::new(settings, policies, Start::Fresh, &now),
            now,
            stored: BTreeMap::new(),
            slow_pages: false,
            pages: Vec::new(),
            deliveries: Vec::new(),
            written: Vec::new(),
            alerts: Vec::new(),
            closing: Vec::new(),
        }
    }

    /// A flow to an isp.
    fn flow(&mut self, isp: &str) -> FlowId {
        self.flow_of(FlowKey::to(Destination::isp(isp)))
    }

    fn flow_of(&mut self, key: FlowKey) -> FlowId {
        let mut actions = Vec::new();
        let flow = self.engine.open_flow(&self.now, key, &mut actions);
        self.carry_out(actions);
        flow
    }

    fn set_account(&mut self, account: AccountSpec) {
        let account = Box::new(account);
        self.step(Event::AccountChanged { account });
    }

    /// Messages with these numbers arrive.
    fn queue(&mut self, flow: FlowId, seqs: std::ops::RangeInclusive<u64>) {
        let heads = seqs.map(|seq| Head::new(Seq(seq), self.now.wall));
        self.queue_heads(flow, heads.collect());
    }

    fn queue_heads(&mut self, flow: FlowId, heads: Vec<Head>) {
        let count = heads.len() as u32;
        self.stored.entry(flow).or_default().extend(heads);
        self.step(Event::Accepted { flow, count });
    }

    fn command(&mut self, command: Command) {
        self.step(Event::Command(command));
    }

    fn step(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.engine.step(&self.now, event, &mut actions);
        self.carry_out(actions);
        while self.engine.next_wake() <= self.now.mono {
            let mut actions = Vec::new();
            self.engine.step(&self.now, Event::Woke, &mut actions);
            self.carry_out(actions);
        }
        self.engine.check(&self.now).unwrap();
    }

    /// Time passes; the engine is woken whenever it wants to be.
    fn pass(&mut self, span: Nanos) {
        let end = self.now.mono + span;
        loop {
            let next = self.engine.next_wake().max(self.now.mono).min(end);
            self.now.wall = self.now.wall + next.since(self.now.mono);
            self.now.mono = next;
            self.step(Event::Woke);
            if next == end {
                return;
            }
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Deliver(delivery) => self.deliveries.push(delivery),
                Action::Page { flow, max } => {
                    let queue = self.stored.entry(flow).or_default();
                    let heads = queue.drain(..queue.len().min(max as usize)).collect();
                    self.pages.push((flow, heads));
                    if !self.slow_pages {
                        self.hand_over();
                    }
                }
                Action::Append { no, record } => {
                    if !matches!(record, Record::Reservation { .. }) {
                        self.written.push(record);
                    }
                    self.step(Event::Committed { through: no });
                }
                Action::OpenSession { session, .. } => self.step(Event::SessionReady { session }),
                Action::Alert { alert } => self.alerts.push(alert),
                Action::CloseFlow { flow, .. } => self.closing.push(flow),
                _ => {}
            }
        }
    }

    /// Pages that are on their way arrive.
    fn hand_over(&mut self) {
        for (flow, heads) in std::mem::take(&mut self.pages) {
            self.step(Event::Paged { flow, heads });
        }
    }

    /// The far end answers the delivery of a message.
    fn reply(&mut self, seq: u64, reply: Reply) {
        let delivery = self.deliveries.iter().rfind(|it| it.head.seq == Seq(seq));
        let permit = delivery.unwrap().permit;
        self.step(Event::Replied {
            permit,
            reply,
            session_lives: true,
        });
    }

    /// The numbers of what was sent, in order.
    fn sent(&self) -> Vec<u64> {
        self.deliveries.iter().map(|it| it.head.seq.0).collect()
    }

    /// What was settled, in order.
    fn settled(&self) -> Vec<(u64, State)> {
        let settled = self.written.iter().filter_map(|record| match record {
            Record::Settlement { seq, state, .. } => Some((seq.0, *state)),
            _ => None,
        });
        settled.collect()
    }

    fn explain(&self, flow: FlowId, ahead: u64) -> Explanation {
        self.engine.explain(&self.now, flow, ahead).unwrap()
    }

    fn waiting_on(&self, flow: FlowId) -> Vec<Obstacle> {
        self.explain(flow, 0).waiting_on
    }
}

/// The limits among obstacles, with the seconds until each opens.
fn limits(obstacles: &[Obstacle], now: Wall) -> Vec<(String, Option<u64>)> {
    let limits = obstacles.iter().filter_map(|obstacle| match obstacle {
        Obstacle::Limit { key, until } => {
            let wait = until.map(|until| until.since(now).0.div_ceil(1_000_000_000));
            Some((key.to_string(), wait))
        }
        _ => None,
    });
    limits.collect()
}

fn throttled() -> Reply {
    Reply::said(Stage::Data, 451, "4.7.1 Try again later")
}
