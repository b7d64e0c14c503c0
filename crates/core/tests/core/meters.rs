//! What is counted of waiting: how long at which limits, and because of whom.

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Action, Delivery};
use outflow_core::engine::event::Event;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::message::{Head, Seq};
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::scope::Scope;
use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::schedule::waits::Waits;
use outflow_core::time::{Mono, Nanos, Now, Wall};

const SECOND: u64 = 1_000_000_000;

/// An engine that sends one message a second: its account's own limit says so,
/// or the policy of a destination.
struct Sender {
    engine: Engine,
    seconds: u64,
    sent: Vec<Delivery>,
    seqs: u64,
}

impl Sender {
    fn new(account_limits: Vec<LimitSpec>, policies: Policies) -> Self {
        let now = at(0);
        let engine = Engine::new(Settings::default(), policies, Start::Fresh, &now);
        let mut sender = Self {
            engine,
            seconds: 0,
            sent: Vec::new(),
            seqs: 0,
        };
        let mut account = AccountSpec::new("main");
        account.sessions = Sessions::slots(10);
        account.limits = account_limits;
        sender.step(Event::AccountChanged {
            account: Box::new(account),
        });
        sender
    }

    fn queue(&mut self, tenant: &str, count: u64) -> FlowId {
        let mut key = FlowKey::to(Destination::isp("google"));
        key.tenant = Name::from(tenant);
        let now = at(self.seconds);
        let flow = self.engine.open_flow(&now, key, &mut Vec::new());
        let heads = (1..=count).map(|no| Head::new(Seq(self.seqs + no), now.wall));
        let heads = heads.collect();
        self.seqs += count;
        self.step(Event::Accepted {
            flow,
            count: count as u32,
        });
        self.step(Event::Paged { flow, heads });
        flow
    }

    fn step(&mut self, event: Event) {
        let now = at(self.seconds);
        let mut actions = Vec::new();
        self.engine.step(&now, event, &mut actions);
        while self.engine.next_wake() <= now.mono {
            self.engine.step(&now, Event::Woke, &mut actions);
        }
        for action in actions {
            if let Action::Deliver(delivery) = action {
                self.sent.push(delivery);
                self.step(Event::Replied {
                    permit: delivery.permit,
                    reply: Reply::accepted(),
                    session_lives: true,
                });
            }
        }
    }

    fn wait_a_second(&mut self) {
        self.seconds += 1;
        self.step(Event::Woke);
    }

    /// What the account's limits held up so far, and hold up now.
    fn held(&self) -> (u64, u64) {
        let meters = self.engine.account_meters();
        assert_eq!(meters.len(), 1);
        (meters[0].held, meters[0].waiting)
    }

    fn waits(&self, scope: Scope) -> Waits {
        let scopes = ScopeSet::of(&[scope]);
        let mut waits = self.engine.limit_waits();
        waits.find(|(of, _)| *of == scopes).unwrap().1
    }
}

fn at(seconds: u64) -> Now {
    Now {
        mono: Mono(1 + seconds * SECOND),
        wall: Wall(((1_000 + seconds) * SECOND) as i64),
        entropy: Entropy(1),
    }
}

fn one_a_second() -> LimitSpec {
    LimitSpec::TokenBucket {
        rate: Rate::per_second(1),
        burst: 1,
    }
}

#[test]
fn an_account_counts_each_time_its_limits_make_a_message_wait() {
    let mut sender = Sender::new(vec![one_a_second()], Policies::default());
    sender.queue("acme", 3);
    assert_eq!(sender.sent.len(), 1);
    assert_eq!(sender.held(), (1, 2), "the second message has to wait");
    sender.wait_a_second();
    assert_eq!(sender.held(), (2, 1), "it goes, the third has to wait");
    sender.wait_a_second();
    assert_eq!((sender.sent.len(), sender.held()), (3, (2, 0)));
    sender.wait_a_second();
    // Two heads stand at the gate when the limits shut: each is held up once
    // for each time.
    sender.queue("acme", 1);
    sender.queue("one", 1);
    sender.queue("two", 1);
    assert_eq!((sender.sent.len(), sender.held()), (4, (4, 2)));
    sender.wait_a_second();
    assert_eq!((sender.sent.len(), sender.held()), (5, (5, 1)));
    sender.wait_a_second();
    assert_eq!((sender.sent.len(), sender.held()), (6, (5, 0)));
    let gate = sender.waits(Scope::Account);
    assert_eq!((gate.came, gate.passed()), (4, 4));
}

#[test]
fn an_account_without_limits_holds_nothing_up() {
    let mut policies = Policies::default();
    let mut policy = Policy::new(Match::from_pairs([("isp", "google")]).unwrap());
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(1)));
    policy.burst = Some(1);
    policies.insert(policy).unwrap();
    let mut sender = Sender::new(Vec::new(), policies);
    sender.queue("acme", 3);
    sender.wait_a_second();
    sender.wait_a_second();
    assert_eq!((sender.sent.len(), sender.held()), (3, (0, 0)));
    let waits = sender.waits(Scope::Isp);
    assert_eq!((waits.came, waits.passed()), (2, 2));
    assert_eq!(waits.waited, Nanos::from_secs(2), "a second each");
    assert_eq!(waits.parts[5], 2, "up to a second");
    let key: LimitKey = "isp:google".parse().unwrap();
    let at_limit = sender.engine.waits_at(&key).unwrap();
    assert_eq!((at_limit.came, at_limit.waited), (2, Nanos::from_secs(2)));
    assert_eq!(sender.waits(Scope::Account), Waits::default());
}
