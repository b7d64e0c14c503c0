//! How the sessions of an account open and close.

use super::world::{World, secs};
use outflow_core::account::AccountSpec;
use outflow_core::limit::spec::Rate;
use outflow_core::time::Nanos;

fn connecting(name: &str) -> AccountSpec {
    let mut account = AccountSpec::new(name);
    account.sessions.max_connections = 20;
    account.sessions.per_destination = 20;
    account.sessions.messages_per_session = 1;
    account
}

#[test]
fn connections_open_no_faster_than_their_rate() {
    let mut world = World::new();
    let mut spec = connecting("a");
    spec.sessions.connect_rate = Some(Rate::per_second(2));
    world.account(spec.clone());
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1; 40]);
    world.run(secs(10), true);
    // Coming back does not bring a fresh burst.
    world.remove("a");
    world.account(spec);
    world.run(secs(10), true);
    assert!(
        (40..=41).contains(&world.opened.len()),
        "{}",
        world.opened.len()
    );
    for pair in world.opened.windows(2) {
        assert!(pair[1].0.since(pair[0].0) >= Nanos::from_millis(500));
    }
    assert_eq!(world.sent.len(), 40);
}

#[test]
fn idle_connections_close_after_the_time_of_their_account() {
    let mut world = World::new();
    let mut spec = connecting("a");
    spec.sessions.messages_per_session = 100;
    spec.sessions.idle_timeout = secs(5);
    world.account(spec);
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1; 3]);
    world.run(secs(60), true);
    assert_eq!(
        (world.sent.len(), world.closed.len()),
        (3, world.opened.len())
    );
    for (at, session) in &world.closed {
        let opened = world.opened.iter().find(|(_, other)| other == session);
        assert_eq!(at.since(opened.unwrap().0), secs(5));
    }
    assert_eq!(world.engine.gauges().sessions, 0);
}

#[test]
fn an_opening_without_an_answer_fails_in_the_end() {
    let mut world = World::new();
    world.connects = false;
    let mut spec = connecting("a");
    spec.sessions.max_connections = 1;
    world.account(spec);
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1]);
    world.run(secs(59), false);
    assert_eq!((world.opened.len(), world.closed.len()), (1, 0));
    world.run(secs(1), false);
    assert_eq!(world.closed.len(), 1, "it is told to close");
    world.connects = true;
    world.run(secs(30), true);
    assert_eq!((world.opened.len(), world.sent.len()), (2, 1));
}
