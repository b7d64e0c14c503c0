//! What operators and callers ask of a running engine: explain, pause, cancel.

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Action, Record};
use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::event::Event;
use outflow_core::engine::explain::Obstacle;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::limit::spec::Rate;
use outflow_core::message::{Head, Seq, State};
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::time::{Mono, Now, Wall};

const NOW: Now = Now {
    mono: Mono(1),
    wall: Wall(1_000_000_000_000),
    entropy: Entropy(1),
};

/// An engine with one flow to google at 1/s burst 1, and three messages queued.
struct Desk {
    engine: Engine,
    flow: FlowId,
    deliveries: usize,
    settled: Vec<(Seq, State)>,
}

impl Desk {
    fn new(with_account: bool) -> Self {
        let mut policies = Policies::default();
        let mut policy = Policy::new(Match::from_pairs([("isp", "google")]).unwrap());
        policy.rate = Some(RateOrShare::Rate(Rate::per_second(1)));
        policy.burst = Some(1);
        policies.insert(policy).unwrap();
        let mut engine = Engine::new(Settings::default(), policies, Start::Fresh, &NOW);
        let key = FlowKey::to(Destination::isp("google"));
        let flow = engine.open_flow(&NOW, key, &mut Vec::new());
        let mut desk = Self {
            engine,
            flow,
            deliveries: 0,
            settled: Vec::new(),
        };
        if with_account {
            let mut account = AccountSpec::new("main");
            account.sessions = Sessions::slots(10);
            desk.step(Event::AccountChanged {
                account: Box::new(account),
            });
        }
        desk
    }

    fn queue(&mut self) {
        let flow = self.flow;
        self.step(Event::Accepted { flow, count: 3 });
        let heads = (1..=3).map(|seq| Head::new(Seq(seq), NOW.wall)).collect();
        self.step(Event::Paged { flow, heads });
    }

    fn step(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.engine.step(&NOW, event, &mut actions);
        while self.engine.next_wake() <= NOW.mono {
            self.engine.step(&NOW, Event::Woke, &mut actions);
        }
        for action in actions {
            match action {
                Action::Deliver(_) => self.deliveries += 1,
                Action::Append {
                    record: Record::Settlement { seq, state, .. },
                    ..
                } => {
                    self.settled.push((seq, state));
                }
                _ => {}
            }
        }
    }

    fn waiting_on(&self) -> Vec<Obstacle> {
        self.engine.explain(&NOW, self.flow, 0).unwrap().waiting_on
    }
}

#[test]
fn a_waiting_message_names_its_limit_and_the_time() {
    let mut desk = Desk::new(true);
    desk.queue();
    assert_eq!(desk.deliveries, 1, "a burst of one lets one message out");
    let answer = desk.engine.explain(&NOW, desk.flow, 0).unwrap();
    let until = Some(Wall(NOW.wall.0 + 1_000_000_000));
    match answer.waiting_on.as_slice() {
        [Obstacle::Limit { key, until: at }] => {
            assert_eq!((key.to_string().as_str(), *at), ("isp:google", until));
        }
        other => panic!("waits on {other:?}"),
    }
    assert_eq!(answer.earliest, until);
}

#[test]
fn a_pool_without_accounts_says_so() {
    let mut desk = Desk::new(false);
    desk.queue();
    assert_eq!(desk.deliveries, 0);
    assert_eq!(desk.waiting_on(), [Obstacle::NoAccount]);
    assert_eq!(
        desk.engine.explain(&NOW, desk.flow, 0).unwrap().earliest,
        None
    );
}

#[test]
fn a_pause_holds_its_flow_and_a_resume_lets_it_go() {
    let mut desk = Desk::new(true);
    let matches = Match::from_pairs([("isp", "google")]).unwrap();
    let id = PauseId(1);
    desk.step(Event::Command(Command::Pause {
        id,
        matches,
        until: None,
    }));
    desk.queue();
    assert_eq!(desk.deliveries, 0);
    assert!(desk.waiting_on().contains(&Obstacle::Paused));
    desk.step(Event::Command(Command::Resume { id }));
    assert_eq!(desk.deliveries, 1);
}

#[test]
fn what_is_cancelled_is_settled_and_never_sent() {
    let mut desk = Desk::new(true);
    desk.queue();
    let flow = desk.flow;
    desk.step(Event::Command(Command::Cancel { flow, seq: Seq(2) }));
    assert_eq!(desk.settled, [(Seq(2), State::Cancelled)]);
    // The first is on its way: it is not cancelled any more.
    desk.step(Event::Command(Command::Cancel { flow, seq: Seq(1) }));
    assert_eq!(desk.settled.len(), 1);
}
