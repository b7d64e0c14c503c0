//! Messages that cost more than one token.

use super::world::{World, account, secs};
use outflow_core::engine::Settings;
use outflow_core::policy::set::Policies;

/// Takes of an account against a bucket that knows nothing of the engine.
fn keeps_to(world: &World, name: &str, rate: u64, burst: u64) {
    let takes: Vec<_> = world
        .sent
        .iter()
        .filter(|sent| sent.account == name)
        .collect();
    for (index, first) in takes.iter().enumerate() {
        let mut taken = 0;
        for take in &takes[index..] {
            taken += u64::from(take.cost);
            let nanos = take.at.since(first.at).0;
            assert!(
                taken * 1_000_000_000 <= burst * 1_000_000_000 + rate * nanos + 1_000,
                "{name} took {taken} within {nanos} ns"
            );
        }
    }
}

#[test]
fn a_heavy_message_goes_only_where_it_fits_and_blocks_nobody_else() {
    let mut world = World::new();
    world.account(account("large", 100, &["10/s burst 100"]));
    world.account(account("small", 100, &["10/s burst 10"]));
    let flow = world.flow("google", "acme");
    let light = world.flow("yahoo", "acme");
    world.queue(flow, &[50, 1, 50, 1, 50, 1, 50, 50, 1]);
    world.queue(light, &[1; 300]);
    world.run(secs(40), true);
    assert_eq!(world.sent.len(), 309);
    assert_eq!(world.dead, []);
    let heavy = |name: &str| {
        world
            .costs_of(name)
            .iter()
            .filter(|cost| **cost == 50)
            .count()
    };
    assert_eq!((heavy("large"), heavy("small")), (5, 0));
    assert!(
        world.costs_of("small").len() > 100,
        "it is not held by them"
    );
    keeps_to(&world, "large", 10, 100);
    keeps_to(&world, "small", 10, 10);
}

#[test]
fn light_messages_do_not_starve_a_heavy_one() {
    let mut world = World::new();
    world.account(account("only", 100, &["10/s burst 20"]));
    let (light, heavy) = (world.flow("yahoo", "acme"), world.flow("google", "acme"));
    world.queue(light, &[1; 1_000]);
    world.run(secs(5), true);
    world.queue(heavy, &[15]);
    world.run(secs(10), true);
    assert_eq!(world.senders_of(heavy), ["only"]);
    keeps_to(&world, "only", 10, 20);
    // And its cost is forgotten: the last tokens are of use again.
    let before = world.sent.len();
    world.run(secs(30), true);
    assert!(
        world.sent.len() - before >= 300,
        "{}",
        world.sent.len() - before
    );
}

#[test]
fn a_limit_that_is_added_has_room_for_what_waits() {
    for by_policy in [false, true] {
        let mut world = World::new();
        world.account(account("a", 1, &[]));
        let flow = world.flow("google", "acme");
        world.queue(flow, &[5, 5, 5]);
        if by_policy {
            let mut policies = Policies::default();
            let matches = outflow_core::policy::matcher::Match::from_pairs([("account", "a")]);
            let mut policy = outflow_core::policy::policy::Policy::new(matches.unwrap());
            let rate = outflow_core::limit::spec::Rate::per_second(1);
            policy.rate = Some(outflow_core::policy::policy::RateOrShare::Rate(rate));
            policy.burst = Some(6);
            policies.insert(policy).unwrap();
            world.policies(policies);
        } else {
            world.account(account("a", 1, &["1/s burst 6"]));
        }
        world.run(secs(1), false);
        world.reply(0);
        world.run(secs(1), false);
        assert_eq!(world.sent.len(), 2);
        world.reply(1);
        assert_eq!(world.sent.len(), 2, "one token is left");
        world.run(secs(10), true);
        assert_eq!(world.sent.len(), 3);
    }
}

#[test]
fn a_lowered_burst_refuses_what_it_cannot_take_and_goes_on() {
    let mut world = World::new();
    world.account(account("a", 10, &["10/s burst 20"]));
    let flow = world.flow("google", "acme");
    world.queue(flow, &[10, 10, 10, 10, 1, 1]);
    assert_eq!(world.sent.len(), 2);
    world.account(account("a", 10, &["10/s burst 5"]));
    world.run(secs(5), true);
    assert_eq!(world.dead, [3, 4]);
    assert_eq!(world.costs_of("a"), [10, 10, 1, 1]);
    world.queue(flow, &[6, 1]);
    world.run(secs(5), true);
    assert_eq!(world.dead, [3, 4, 7]);
    assert_eq!(world.sent.len(), 5);
}

#[test]
fn what_only_a_removed_account_could_take_is_refused() {
    let mut world = World::new();
    world.account(account("large", 10, &["1/s burst 100"]));
    world.account(account("small", 10, &["1/s burst 10"]));
    let flow = world.flow("google", "acme");
    world.queue(flow, &[100, 50, 10]);
    assert_eq!(world.costs_of("large"), [100]);
    world.remove("large");
    assert_eq!(world.dead, [2]);
    world.run(secs(20), true);
    assert_eq!(world.costs_of("small"), [10]);
}

#[test]
fn a_reserve_grows_with_the_first_larger_cost() {
    let mut world = World::new();
    world.account(account("a", 10, &["5/s burst 40"]));
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1]);
    world.run(secs(10), true);
    world.queue(flow, &[5]);
    assert_eq!(world.costs_of("a"), [1, 5]);
}

#[test]
fn a_limit_that_comes_to_need_a_reserve_gets_one() {
    let mut world = World::new();
    world.account(account("a", 10, &["100/s burst 10"]));
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1; 3]);
    world.account(account("a", 10, &["5/s burst 40"]));
    world.run(secs(10), true);
    world.queue(flow, &[1; 5]);
    world.run(secs(10), true);
    assert_eq!(world.sent.len(), 8);
}

#[test]
fn an_account_too_small_for_the_first_waiter_serves_who_is_booked_before_it() {
    let mut policies = Policies::default();
    let matches = outflow_core::policy::matcher::Match::from_pairs([("tenant", "paced")]);
    let mut policy = outflow_core::policy::policy::Policy::new(matches.unwrap());
    let rate = outflow_core::limit::spec::Rate::per_second(5);
    policy.rate = Some(outflow_core::policy::policy::RateOrShare::Rate(rate));
    policy.burst = Some(1);
    policies.insert(policy).unwrap();
    let mut world = World::with(Settings::default(), policies);
    world.account(account("large", 1, &["10/s burst 100"]));
    let (paced, other) = (world.flow("google", "paced"), world.flow("google", "acme"));
    // The gate gives out quickly: it is worth a booking.
    world.queue(other, &[1; 30]);
    world.run(secs(10), true);
    world.account(account("small", 1, &["10/s burst 4"]));
    world.run(secs(10), true);
    // Both accounts are busy, and the paced tenant has used its token.
    world.queue(paced, &[1, 1]);
    world.queue(other, &[1]);
    assert_eq!(world.sent.len(), 32);
    world.run(secs(1), false);
    world.queue(other, &[50]);
    let small = world.sent.iter().rposition(|sent| sent.account == "small");
    world.reply(small.unwrap());
    world.run(secs(1), false);
    let last = world.sent.last().unwrap();
    assert_eq!((last.flow, last.account.as_str()), (paced, "small"));
    // The other one goes where it fits.
    world.run(secs(1), true);
    assert_eq!(world.costs_of("large").last(), Some(&50));
}
