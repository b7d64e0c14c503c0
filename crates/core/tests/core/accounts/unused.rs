//! Tokens of an account that a node cannot use are left to nodes that can.

use super::world::{World, account, secs};
use outflow_core::account::AccountSpec;
use outflow_core::engine::Settings;
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare, WhenAway};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

const STEP: Nanos = Nanos::from_millis(100);
const STEPS: usize = 600;

fn world() -> World {
    let mut policy = Policy::new(Match::from_pairs([("account", "a")]).unwrap());
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
    world
}

/// The far end takes a connection of this account from another node, and hangs
/// up on this one. Each lease that ends here unused has burnt tokens there.
#[test]
fn a_node_that_gets_no_session_seldom_leases() {
    let mut world = world();
    world.connects = false;
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1; 50]);
    let mut leased = 0;
    for _ in 0..STEPS {
        world.run(STEP, true);
        leased += world.leases.len();
        world.grant_all();
        while world.closed.len() < world.opened.len() {
            let (at, session) = world.opened[world.closed.len()];
            world.closed.push((at, session));
            world.step(Event::SessionClosed { session });
        }
    }
    assert!(world.sent.is_empty());
    assert!((1..=20).contains(&leased), "{leased} leases in a minute");

    world.connects = true;
    for _ in 0..STEPS {
        world.run(STEP, true);
        world.grant_all();
    }
    assert_eq!(world.sent.len(), 50, "it asks again once it can use them");
}

/// A message that needs tokens of several limits needs them at once. That one of
/// them had none for a while is no reason to leave the others to other nodes: each
/// would ask at a time of its own, and they might never have some together.
#[test]
fn limits_that_lack_no_session_are_asked_together() {
    let rate = |match_: &[(&str, &str)]| {
        let mut policy = Policy::new(Match::from_pairs(match_.iter().copied()).unwrap());
        policy.rate = Some(RateOrShare::Rate(Rate::per_second(10)));
        policy.burst = Some(10);
        policy.when_away = Some(WhenAway::Closed);
        policy
    };
    let at_google = [("account", "a"), ("isp", "google")];
    let mut two_at_google = rate(&at_google);
    two_at_google.limits = vec![LimitSpec::parse("600/min").unwrap()];
    // Request slots need no session; connections are not opened without tokens of
    // all limits at the destination.
    let slots = (
        account("a", 4, &[]),
        vec![rate(&[("account", "a")]), rate(&at_google)],
    );
    let connections = (AccountSpec::new("a"), vec![two_at_google]);
    for (spec, all) in [slots, connections] {
        for withheld in 0..2 {
            let mut policies = Policies::default();
            for policy in all.clone() {
                policies.insert(policy).unwrap();
            }
            let settings = Settings {
                leased: true,
                ..Settings::default()
            };
            let mut world = World::with(settings, policies);
            world.account(spec.clone());
            let flow = world.flow("google", "acme");
            world.queue(flow, &[1; 20]);
            let mut keys = Vec::new();
            for _ in 0..STEPS {
                world.run(STEP, true);
                refuse_one(&mut world, &mut keys, withheld);
                world.grant_all();
            }
            assert_eq!((keys.len(), world.sent.len()), (2, 0), "{spec:?}");
            for _ in 0..50 {
                world.run(STEP, true);
                world.grant_all();
            }
            assert_eq!(world.sent.len(), 20, "{spec:?}, {withheld}: {keys:?}");
        }
    }
}

/// Refuses what was asked of one of two limits, in order of their keys, and all
/// until both were asked.
fn refuse_one(world: &mut World, keys: &mut Vec<String>, refused: usize) {
    for request in std::mem::take(&mut world.leases) {
        let key = request.key.to_string();
        if !keys.contains(&key) {
            keys.push(key.clone());
            keys.sort();
        }
        if keys.len() == 2 && keys.get(refused) != Some(&key) {
            world.leases.push(request);
            continue;
        }
        let (limit, no) = (request.limit, request.no);
        let retry_after = secs(1);
        let answer = LeaseAnswer::Refused { retry_after };
        world.step(Event::Granted { limit, no, answer });
    }
}
