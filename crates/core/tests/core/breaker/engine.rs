//! Breakers at work: an engine with a far end that fails.

use std::collections::{BTreeMap, VecDeque};

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Action, Alert, Hold, Record};
use outflow_core::engine::event::Event;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{FlowId, PermitId};
use outflow_core::message::{Head, Seq};
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
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
    held: Vec<(LimitKey, Hold)>,
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
            held: Vec::new(),
        }
    }

    /// The process ends and begins again so much later.
    fn crash(&mut self, downtime: Nanos) {
        self.crash_into(downtime, true);
    }

    /// The same, with breakers or without from now on.
    fn crash_into(&mut self, downtime: Nanos, enabled: bool) {
        self.flying.clear();
        self.now.mono = self.now.mono + downtime;
        self.now.wall = self.now.wall + downtime;
        let start = Start::Again {
            counts_lost_at: None,
            limits: BTreeMap::new(),
            holds: self.held.iter().cloned().collect(),
            adapted: BTreeMap::new(),
            downtime,
        };
        let mut settings = Settings {
            learns: false,
            ..Settings::default()
        };
        settings.breaker.enabled = enabled;
        self.engine = Engine::new(settings, Policies::default(), start, &self.now);
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
                if let Record::Held { key, hold } = record {
                    self.held.push(((*key).clone(), hold));
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
    let (key, hold) = world.held.first().unwrap();
    assert_eq!(key.to_string(), "account:bad#breaker");
    assert_eq!(*hold, Hold::nothing_until(until));
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

/// One that was left alone is so after a restart, and then one message asks.
#[test]
fn a_breaker_is_open_after_a_restart_and_half_open_then() {
    let mut world = World::new(|_, account, _| match account {
        "bad" => broken(),
        _ => Reply::accepted(),
    });
    world.account("bad");
    world.account("good");
    let flow = world.flow("google");
    world.run(&[flow], 200, TICK);
    let (_, hold) = world.held.last().cloned().unwrap();
    world.crash(Nanos::from_secs(1));
    let (start, left) = (world.now.mono, hold.until.since(world.now.wall));
    assert!(left > Nanos::from_secs(3), "{left:?} left");
    world.account("bad");
    world.account("good");
    let flow = world.flow("google");
    world.run(&[flow], 600, TICK);
    let end = start + left.minus(TICK);
    assert_eq!(world.sent_by("bad", start, end), 0, "open");
    let probes = world.sent_by("bad", end, world.now.mono);
    assert!((1..=4).contains(&probes), "{probes} where one asks");
}

/// The same of an account at one of several destinations.
#[test]
fn an_account_is_left_alone_at_a_destination_after_a_restart() {
    let mut world = World::new(|_, account, to| match (account, to.name.as_str()) {
        ("bad", "google") => broken(),
        _ => Reply::accepted(),
    });
    let to_google = |world: &World, from: Mono| {
        let sent = world.sent.iter();
        sent.filter(|(by, to, at)| by == "bad" && to.name.as_str() == "google" && *at > from)
            .count()
    };
    let set_up = |world: &mut World| {
        world.account("bad");
        world.account("good");
        let google = world.flow("google");
        // Often enough that either account has a turn.
        [google, google, google, world.flow("yahoo")]
    };
    let flows = set_up(&mut world);
    world.run(&flows, 30, TICK);
    let (key, hold) = world.held.last().cloned().unwrap();
    assert_eq!(key.to_string(), "account:bad/isp:google#breaker");
    world.crash(Nanos::from_secs(1));
    let (start, left) = (world.now.mono, hold.until.since(world.now.wall));
    assert!(left > Nanos::from_secs(3), "{left:?} left");
    let flows = set_up(&mut world);
    world.run(&flows, left.0 / TICK.0 - 1, TICK);
    assert_eq!(to_google(&world, start), 0, "open there");
    assert!(
        world.sent_by("bad", start, world.now.mono) > 5,
        "and not elsewhere"
    );
    world.run(&flows, 50, TICK);
    assert_eq!(to_google(&world, start), 1, "then one asks");
}

/// Many in flight are asked to wait for five minutes, which is also too many
/// refusals in a minute. Five minutes are five minutes, also after a restart.
#[test]
fn a_shorter_stop_does_not_shorten_what_was_asked() {
    let mut world = World::new(|_, _, _| {
        let mut reply = Reply::said(Stage::Data, 429, "Too Many Requests");
        if let Reply::Said { retry_after, .. } = &mut reply {
            *retry_after = Some(Nanos::from_secs(300));
        }
        reply
    });
    let mut account = AccountSpec::new("main");
    account.sessions = Sessions::slots(40);
    let account = Box::new(account);
    world.step(Event::AccountChanged { account });
    let flows: Vec<FlowId> = (0..40)
        .map(|tenant| {
            let mut key = FlowKey::to(Destination::isp("google"));
            key.tenant = Name::from(format!("t{tenant}"));
            world.engine.open_flow(&world.now, key, &mut Vec::new())
        })
        .collect();
    world.run(&flows, 2, TICK);
    let refused_at = world.now.wall;
    let stopped = world
        .alerts
        .iter()
        .any(|it| matches!(it, Alert::Broken { .. }));
    assert!(stopped, "{:?}", world.alerts);
    let (_, hold) = world.held.last().unwrap();
    assert!(
        hold.until.since(refused_at) >= Nanos::from_secs(300),
        "{hold:?}"
    );
}

/// Who asks what is wrong with an account is told.
#[test]
fn what_holds_an_account_is_shown() {
    let mut world = World::new(|_, account, _| match account {
        "bad" => broken(),
        _ => Reply::accepted(),
    });
    world.account("bad");
    world.account("good");
    let flow = world.flow("google");
    world.run(&[flow], 200, TICK);
    let held = world.engine.standings(&world.now);
    let shown: Vec<_> = held
        .iter()
        .map(|it| (it.account.as_str(), it.by.as_str()))
        .collect();
    assert_eq!(shown, [("bad", "breaker"), ("good", "pressure")]);
    assert!(held[0].until.is_some_and(|until| until > world.now.wall));
    assert!(
        held[1].per_minute.is_some_and(|count| count > 60),
        "{held:?}"
    );
}

/// After a restart the destination that failed may be the only one left.
#[test]
fn a_pair_that_was_left_alone_comes_back_where_it_is_the_only_one() {
    let mut world = World::new(|now, _, to| match to.name.as_str() {
        "google" if now < Mono(0) + Nanos::from_secs(6) => broken(),
        _ => Reply::accepted(),
    });
    world.account("only");
    let flows = [world.flow("google"), world.flow("yahoo")];
    world.run(&flows, 40, TICK);
    let (key, _) = world.held.last().cloned().unwrap();
    assert_eq!(key.to_string(), "account:only/isp:google#breaker");
    world.crash(Nanos::from_secs(1));
    let start = world.now.mono;
    world.account("only");
    let flow = world.flow("google");
    world.run(&[flow], 300, TICK);
    let sent = world.sent_by("only", start, world.now.mono);
    assert!(sent > 100, "{sent} were sent in half a minute");
}

/// Who turns breakers off is held by none, not even by an old one.
#[test]
fn breakers_that_are_turned_off_hold_nobody_after_a_restart() {
    let mut world = World::new(|now, account, _| match account {
        "bad" if now < Mono(0) + Nanos::from_secs(20) => broken(),
        _ => Reply::accepted(),
    });
    world.account("bad");
    world.account("good");
    let flow = world.flow("google");
    world.run(&[flow], 190, TICK);
    world.crash_into(Nanos::from_secs(1), false);
    let start = world.now.mono;
    world.account("bad");
    world.account("good");
    let flow = world.flow("google");
    world.run(&[flow], 300, TICK);
    let sent = world.sent_by("bad", start, world.now.mono);
    assert!(sent > 100, "{sent} went through it");
    assert!(world.engine.standings(&world.now).is_empty());
}
