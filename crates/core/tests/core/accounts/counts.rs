//! What an account's limits remember, and for how long.

use super::world::{World, account, secs};
use outflow_core::account::AccountSpec;
use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::engine::Settings;
use outflow_core::engine::action::Receipt;
use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::{Headroom, Rate};
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare, WhenAway};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

fn on_account(name: &str, away: WhenAway) -> Policy {
    let mut policy = Policy::new(Match::from_pairs([("account", name)]).unwrap());
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(10)));
    policy.burst = Some(10);
    policy.when_away = Some(away);
    policy
}

#[test]
fn a_reply_frees_only_the_slots_its_delivery_took() {
    let mut world = World::new();
    world.account(account("a", 100, &[]));
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1; 10]);
    assert_eq!(world.sent.len(), 10);
    world.account(account("a", 100, &["5 concurrent"]));
    world.queue(flow, &[1; 20]);
    assert_eq!(world.sent.len(), 15);
    for old in 0..10 {
        world.reply(old);
    }
    assert_eq!(world.sent.len(), 15, "the new ones are all in flight");
    world.reply(10);
    assert_eq!(world.sent.len(), 16);
    world.reply_all();
    assert_eq!((world.sent.len(), world.in_flight()), (30, 0));
}

#[test]
fn an_account_that_comes_back_has_used_what_it_had_used() {
    let mut world = World::new();
    let spec = account("a", 100, &["10/day"]);
    world.account(spec.clone());
    let flow = world.flow("google", "acme");
    let mut key = FlowKey::to(Destination::isp("google"));
    key.pool = Name::from("other");
    let elsewhere = world.open(key);
    world.queue(flow, &[1; 20]);
    world.reply_all();
    assert_eq!(world.sent.len(), 10);
    world.remove("a");
    world.account(spec.clone());
    world.run(secs(60), true);
    assert_eq!(world.sent.len(), 10, "it left and came back");
    let mut moved = spec;
    moved.pool = Name::from("other");
    world.account(moved);
    world.queue(elsewhere, &[1; 20]);
    world.run(secs(60), true);
    assert_eq!(world.sent.len(), 10, "it changed its pool");
    world.remove("a");
    assert_eq!(world.engine.gauges().limits, 1);
    world.run(secs(3 * 86_400), true);
    world.step(Event::Woke);
    assert_eq!(
        world.engine.gauges().limits,
        0,
        "it is forgotten in the end"
    );
}

#[test]
fn changed_headroom_holds_at_once() {
    let mut world = World::new();
    world.account(account("a", 100, &["1/s burst 10"]));
    let mut key = FlowKey::to(Destination::isp("google"));
    key.class = Class::Low;
    let flow = world.open(key);
    world.queue(flow, &[1; 100]);
    assert_eq!(world.sent.len(), 8, "a fifth is kept for critical");
    let mut policies = Policies::default();
    policies.set_headroom(Headroom::default());
    world.policies(policies);
    assert_eq!(world.sent.len(), 10);
}

#[test]
fn a_changed_when_away_holds_at_once() {
    let mut policies = Policies::default();
    policies.insert(on_account("a", WhenAway::Closed)).unwrap();
    let settings = Settings {
        leased: true,
        ..Settings::default()
    };
    let mut world = World::with(settings, policies.clone());
    world.account(account("a", 100, &[]));
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1]);
    let away = |world: &mut World| {
        let request = world.leases.pop().unwrap();
        let answer = LeaseAnswer::Away;
        let (limit, no) = (request.limit, request.no);
        world.step(Event::Granted { limit, no, answer });
    };
    away(&mut world);
    assert_eq!(world.sent.len(), 0);
    policies.insert(on_account("a", WhenAway::Open)).unwrap();
    world.policies(policies);
    world.run(secs(1), false);
    assert_eq!(world.sent.len(), 1, "an unanswered request counts as away");
}

#[test]
fn leased_accounts_ask_again_whenever_somebody_wants_them() {
    let mut policies = Policies::default();
    policies.insert(on_account("a", WhenAway::Closed)).unwrap();
    let settings = Settings {
        leased: true,
        ..Settings::default()
    };
    let mut world = World::with(settings, policies);
    world.account(account("a", 100, &[]));
    let flow = world.flow("google", "acme");
    for round in 1..=20 {
        world.queue(flow, &[1]);
        for _ in 0..10 {
            while let Some(request) = world.leases.pop() {
                let answer = LeaseAnswer::Leased {
                    tokens: request.at_least,
                    life: secs(1),
                    wait: secs(0),
                    spacing: secs(0),
                    receipt: Receipt::default(),
                    owed: Default::default(),
                };
                let (limit, no) = (request.limit, request.no);
                world.step(Event::Granted { limit, no, answer });
            }
        }
        assert_eq!(world.sent.len(), round);
        world.run(secs(5), true);
    }
}

#[test]
fn tokens_are_leased_for_messages_that_have_a_session() {
    let mut policies = Policies::default();
    policies.insert(on_account("a", WhenAway::Closed)).unwrap();
    let settings = Settings {
        leased: true,
        ..Settings::default()
    };
    let mut world = World::with(settings, policies);
    let mut spec = AccountSpec::new("a");
    spec.sessions.max_connections = 1;
    world.account(spec);
    world.connects = false;
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1]);
    let (_, opened) = world.opened[0];
    let asked = world.leases.len();
    assert_eq!(asked, 1, "they come while the connection is opened");
    world.step(Event::SessionClosed { session: opened });
    world.grant_all();
    world.run(Nanos::from_millis(900), false);
    assert_eq!(world.opened.len(), 1, "it backs off");
    assert!(world.leases.is_empty(), "they would lapse here unused");
    world.connects = true;
    for _ in 0..10 {
        world.run(Nanos::from_millis(100), false);
        world.grant_all();
    }
    assert_eq!((world.opened.len(), world.sent.len()), (2, 1));
}

/// An account at a destination connects only while its limits there let something
/// through, so its tokens are leased before it has a session, but not while it
/// cannot connect.
#[test]
fn tokens_of_an_account_at_a_destination_are_leased_before_it_connects() {
    let mut policy =
        Policy::new(Match::from_pairs([("account", "a"), ("destination", "isp:google")]).unwrap());
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(10)));
    policy.burst = Some(10);
    policy.when_away = Some(WhenAway::Closed);
    let mut policies = Policies::default();
    policies.insert(policy).unwrap();
    let settings = Settings {
        leased: true,
        ..Settings::default()
    };
    let mut world = World::with(settings, policies);
    world.account(AccountSpec::new("a"));
    let flow = world.flow("google", "acme");
    let go_on = |world: &mut World, steps: u32| {
        for _ in 0..steps {
            world.run(Nanos::from_millis(100), true);
            world.grant_all();
        }
    };
    // The far end closes the connection while there are no tokens left.
    for sent in 1..=3 {
        world.queue(flow, &[1]);
        go_on(&mut world, 10);
        assert_eq!(world.sent.len(), sent, "connected anew for it");
        let (_, session) = *world.opened.last().unwrap();
        world.step(Event::SessionClosed { session });
        go_on(&mut world, 20);
    }
    world.connects = false;
    world.queue(flow, &[1]);
    while world.opened.len() == 3 {
        go_on(&mut world, 1);
    }
    let (_, session) = *world.opened.last().unwrap();
    world.step(Event::SessionClosed { session });
    world.grant_all();
    world.run(Nanos::from_millis(900), false);
    assert_eq!(world.opened.len(), 4, "it backs off");
    assert!(world.leases.is_empty(), "they would lapse here unused");
    world.connects = true;
    go_on(&mut world, 20);
    assert_eq!((world.opened.len(), world.sent.len()), (5, 4));
}

/// An account that was paused leases again when it is let go.
#[test]
fn a_pause_that_is_lifted_has_tokens_leased_again() {
    for at in [
        Match::from_pairs([("account", "a")]),
        Match::from_pairs([("account", "a"), ("isp", "google")]),
    ] {
        let mut policy = Policy::new(
            Match::from_pairs([("account", "a"), ("destination", "isp:google")]).unwrap(),
        );
        policy.rate = Some(RateOrShare::Rate(Rate::per_second(10)));
        policy.when_away = Some(WhenAway::Closed);
        let mut policies = Policies::default();
        policies.insert(policy).unwrap();
        let settings = Settings {
            leased: true,
            ..Settings::default()
        };
        let mut world = World::with(settings, policies);
        world.account(AccountSpec::new("a"));
        let matches = at.unwrap();
        let id = PauseId(1);
        world.step(Event::Command(Command::Pause {
            id,
            matches: matches.clone(),
            until: None,
        }));
        let flow = world.flow("google", "acme");
        world.queue(flow, &[1]);
        world.run(secs(1), true);
        world.grant_all();
        assert_eq!(world.sent.len(), 0, "{matches:?}");
        world.step(Event::Command(Command::Resume { id }));
        for _ in 0..10 {
            world.grant_all();
            world.run(Nanos::from_millis(100), true);
        }
        assert_eq!(world.sent.len(), 1, "{matches:?}");
    }
}

#[test]
fn a_policy_change_over_many_pairs_goes_in_slices() {
    let mut world = World::new();
    for number in 0..30 {
        world.account(account(&format!("a{number}"), 10, &[]));
    }
    for number in 0..100 {
        world.flow(&format!("isp{number}"), "acme");
    }
    let mut policy = Policy::new(Match::from_pairs([("account", "*"), ("isp", "*")]).unwrap());
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(10)));
    let mut policies = Policies::default();
    policies.insert(policy).unwrap();
    let policies = Box::new(policies);
    let mut actions = Vec::new();
    let event = Event::PolicyChanged { policies };
    world.engine.step(&world.now, event, &mut actions);
    let after_one = world.engine.gauges().limits;
    assert!(
        (500..=1_000).contains(&after_one),
        "{after_one} in one step"
    );
    world.step(Event::Woke);
    assert_eq!(world.engine.gauges().limits, 3_000);
}
