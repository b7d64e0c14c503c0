//! Breakers at work: an engine with a far end that fails.

use std::collections::VecDeque;

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Action, Alert, Record};
use outflow_core::engine::event::Event;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{FlowId, PermitId};
use outflow_core::message::{Head, Seq};
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos, Now, Wall};

/// What the far end says to an account at a destination.
type FarEnd = fn(now: Mono, account: &str, to: &Destination) -> Reply;

/// An engine whose messages are answered at once.
struct World {
    engine: Engine,
    now: Now,
    far_end: FarEnd,
    next: u64,
    /// Account, destination and time of each delivery.
    sent: Vec<(String, Destination, Mono)>,
    /// What goes out before the last answer is in.
    flying: Vec<(PermitId, String, Destination)>,
    alerts: Vec<Alert>,
    learnt: Vec<(String, Wall)>,
}

impl World {
    fn new(far_end: FarEnd) -> Self {
        let now = Now {
            mono: Mono(1),
            wall: Wall(1_000_000_000_000_000_000),
            entropy: Entropy(1),
        };
        // What is learnt from refusals would come first.
        let settings = Settings {
            learns: false,
            ..Settings::default()
        };
        Self {
            engine: Engine::new(settings, Policies::default(), Start::Fresh, &now),
            now,
            far_end,
            next: 1,
            sent: Vec::new(),
            flying: Vec::new(),
            alerts: Vec::new(),
            learnt: Vec::new(),
        }
    }

    fn account(&mut self, name: &str) {
        let mut account = AccountSpec::new(name);
        account.sessions = Sessions::slots(4);
        let account = Box::new(account);
        self.step(Event::AccountChanged { account });
    }

    fn flow(&mut self, isp: &str) -> FlowId {
        let key = FlowKey::to(Destination::isp(isp));
        self.engine.open_flow(&self.now, key, &mut Vec::new())
    }

    /// For so long, one message a tick arrives in each flow; all in flight are
    /// answered a tick later.
    fn run(&mut self, flows: &[FlowId], ticks: u64, tick: Nanos) {
        for _ in 0..ticks {
            self.now.mono = self.now.mono + tick;
            self.now.wall = self.now.wall + tick;
            for (permit, account, to) in std::mem::take(&mut self.flying) {
                let reply = (self.far_end)(self.now.mono, &account, &to);
                let session_lives = true;
                self.step(Event::Replied {
                    permit,
                    reply,
                    session_lives,
                });
            }
            for &flow in flows {
                self.step(Event::Accepted { flow, count: 1 });
            }
            self.step(Event::Woke);
        }
    }

    fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        loop {
            let event = match events.pop_front() {
                Some(event) => event,
                None if self.engine.next_wake() <= self.now.mono => Event::Woke,
                None => break,
            };
            let mut actions = Vec::new();
            self.engine.step(&self.now, event, &mut actions);
            for action in actions {
                events.extend(self.act(action));
            }
        }
        self.engine.check(&self.now).unwrap();
    }

    fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Page { flow, max } => {
                let heads = (0..max.min(1)).map(|_| {
                    self.next += 1;
                    Head::new(Seq(self.next), self.now.wall)
                });
                let heads = heads.collect();
                return Some(Event::Paged { flow, heads });
            }
            Action::Append { no, record } => {
                if let Record::Learnt { key, blocked_until } = record {
                    self.learnt.push((key.to_string(), blocked_until));
                }
                return Some(Event::Committed { through: no });
            }
            Action::OpenSession { session, .. } => return Some(Event::SessionReady { session }),
            Action::Deliver(delivery) => {
                let account = self
                    .engine
                    .account(delivery.account)
                    .unwrap()
                    .id
                    .to_string();
                let to = self
                    .engine
                    .flow_key(delivery.flow)
                    .unwrap()
                    .destination
                    .clone();
                self.sent.push((account.clone(), to.clone(), self.now.mono));
                self.flying.push((delivery.permit, account, to));
            }
            Action::Alert { alert } => self.alerts.push(alert),
            _ => {}
        }
        None
    }

    fn sent_by(&self, account: &str, from: Mono, to: Mono) -> usize {
        let sent = self.sent.iter().filter(|(by, ..)| by == account);
        sent.filter(|(.., at)| *at > from && *at <= to).count()
    }
}

const TICK: Nanos = Nanos::from_millis(100);

fn broken() -> Reply {
    Reply::said(Stage::Data, 503, "Service Unavailable")
}

#[test]
fn an_account_that_fails_is_left_alone_but_for_one_probe_at_a_time() {
    let mut world = World::new(|now, account, _| match account {
        "bad" if now < Mono(0) + Nanos::from_secs(40) => broken(),
        _ => Reply::accepted(),
    });
    world.account("bad");
    world.account("good");
    let flow = world.flow("google");
    world.run(&[flow], 200, TICK);
    let Some(Alert::Broken {
        account,
        destination,
        until,
        ..
    }) = world.alerts.first().cloned()
    else {
        panic!("nobody was told: {:?}", world.alerts);
    };
    assert_eq!((account.as_str(), destination), ("bad", None));
    // What it learnt outlives a restart.
    assert_eq!(
        world.learnt.first(),
        Some(&("account:bad".to_owned(), until))
    );
    world.run(&[flow], 800, TICK);
    let opened = world
        .alerts
        .iter()
        .filter(|it| matches!(it, Alert::Broken { .. }));
    let probes: Vec<_> = opened.collect();
    assert!((2..=4).contains(&probes.len()), "{probes:?}");
    assert!(matches!(world.alerts.last(), Some(Alert::Restored { .. })));
    // From the first opening to the closing only probes went through it.
    let start = world.sent.first().unwrap().2;
    let first_open = start + Nanos::from_secs(5);
    let during = world.sent_by("bad", first_open, start + Nanos::from_secs(35));
    assert!(during <= 3, "{during} went through a broken account");
    let after = world.sent_by(
        "bad",
        start + Nanos::from_secs(85),
        start + Nanos::from_secs(95),
    );
    assert!(after > 10, "{after} went through a mended account");
}

#[test]
fn a_destination_that_is_down_breaks_its_pairs_and_not_its_accounts() {
    let mut world = World::new(|_, _, to| match to.name.as_str() {
        "yahoo" => broken(),
        _ => Reply::accepted(),
    });
    world.account("a");
    world.account("b");
    let flows = [world.flow("google"), world.flow("yahoo")];
    world.run(&flows, 300, TICK);
    assert!(!world.alerts.is_empty());
    for alert in &world.alerts {
        let Alert::Broken { destination, .. } = alert else {
            panic!("{alert:?}");
        };
        assert_eq!(*destination, Some(Destination::isp("yahoo")));
    }
    let google = world
        .sent
        .iter()
        .filter(|(_, to, _)| to.name.as_str() == "google");
    assert_eq!(google.count(), 300, "google got all of its mail");
    let yahoo = world
        .sent
        .iter()
        .filter(|(_, to, _)| to.name.as_str() == "yahoo");
    assert!(yahoo.count() < 100);
}

#[test]
fn refusals_for_the_rate_never_open_a_breaker() {
    let mut world = World::new(|_, _, _| Reply::said(Stage::Data, 429, "Too Many Requests"));
    world.account("a");
    let flow = world.flow("google");
    world.run(&[flow], 300, TICK);
    // All are refused: that is what the other rule is for.
    for alert in &world.alerts {
        let Alert::Broken { why, .. } = alert else {
            panic!("{alert:?}");
        };
        assert_eq!(why.as_str(), "refusals");
    }
    assert_eq!(
        world.alerts.len(),
        1,
        "it stops for as long as the run lasts"
    );
    assert_eq!(world.sent.len(), 20);
}
