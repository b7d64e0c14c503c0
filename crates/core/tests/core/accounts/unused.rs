//! Tokens of an account that a node cannot use are left to nodes that can.

use super::world::World;
use outflow_core::account::AccountSpec;
use outflow_core::engine::Settings;
use outflow_core::engine::event::Event;
use outflow_core::limit::spec::Rate;
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
