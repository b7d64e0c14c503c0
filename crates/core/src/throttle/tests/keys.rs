//! Keys that come and go, and the cases where others break.

use super::{MS, World, at, spec};
use crate::class::Class;
use crate::limit::Fill;
use crate::policy::facet::Facet;
use crate::policy::policy::WhenAway;
use crate::throttle::Settings;
use crate::throttle::request::{Key, Owner, POLICY_SPACE, Refusal, Request, Verdict, Wanted, Why};
use crate::time::Nanos;

fn small() -> World {
    World::new(Settings {
        keys_max: 4,
        ..Settings::default()
    })
}

#[test]
fn a_burst_of_one() {
    let mut world = World::plain();
    let one = spec("10/s burst 1");
    assert!(world.takes(0, "a", &one, 1));
    assert!(!world.takes(99 * MS, "a", &one, 1));
    assert!(world.takes(100 * MS, "a", &one, 1));
    assert!(!world.takes(100 * MS, "a", &one, 1));
}

#[test]
fn a_cost_above_the_burst_is_refused_for_good() {
    let mut world = World::plain();
    let five = spec("10/s burst 5");
    let verdict = world.ask(
        0,
        Class::Normal,
        1_000 * MS,
        &[("b", &five, 1), ("a", &five, 6)],
    );
    let wanted = Refusal {
        by: 1,
        why: Why::TooLarge { largest: 5 },
        retry_after: None,
    };
    assert_eq!(verdict, Verdict::Refused(wanted));
    assert_eq!(world.throttle.waiters(), 0);
    // Twice the same key counts together.
    let verdict = world.ask(0, Class::Normal, 0, &[("a", &five, 3), ("a", &five, 3)]);
    assert!(matches!(
        verdict,
        Verdict::Refused(Refusal {
            retry_after: None,
            ..
        })
    ));
}

#[test]
fn a_cost_equal_to_the_burst_is_granted_to_every_class() {
    for class in Class::ALL {
        let mut world = World::plain();
        let five = spec("10/s burst 5");
        let verdict = world.ask(0, class, 0, &[("a", &five, 5)]);
        assert_eq!(verdict, Verdict::Granted(None), "{class}");
        let verdict = world.ask(0, class, 1_000 * MS, &[("a", &five, 5)]);
        assert!(matches!(verdict, Verdict::Waiting(_)), "{class}");
        let told = world.run(1_000 * MS);
        assert_eq!(told.len(), 1, "{class}");
        assert_eq!(told[0].0, 500 * MS, "{class}");
    }
}

#[test]
fn a_limit_that_remembers_is_not_forgotten_for_another() {
    let mut world = small();
    let slow = spec("1/s burst 10");
    for name in ["a", "b", "c", "d"] {
        for _ in 0..10 {
            assert!(world.takes(0, name, &slow, 1));
        }
    }
    let verdict = world.ask(0, Class::Normal, 0, &[("e", &slow, 1)]);
    assert!(matches!(
        verdict,
        Verdict::Refused(Refusal {
            why: Why::TooManyKeys,
            ..
        })
    ));
    // Nobody got a fresh burst by it.
    for name in ["a", "b", "c", "d"] {
        assert!(!world.takes(0, name, &slow, 1));
    }
    // Just before they are full they still remember, and then they do not.
    assert!(!world.takes(9_999 * MS, "e", &slow, 1));
    assert!(world.takes(10_000 * MS, "e", &slow, 1));
    assert_eq!(world.throttle.keys(), 4);
}

#[test]
fn idle_keys_make_room_before_it_is_needed() {
    let mut world = World::plain();
    let fast = spec("1000/s burst 1");
    for i in 0..1_000_u64 {
        assert!(world.takes(i * 10 * MS, &format!("key {i}"), &fast, 1));
    }
    assert!(world.throttle.keys() < 10, "{}", world.throttle.keys());
}

#[test]
fn after_a_restart_a_bucket_starts_empty() {
    let mut world = World::new(Settings {
        fill: Fill::Empty,
        ..Settings::default()
    });
    let ten = spec("10/s burst 10");
    assert!(!world.takes(0, "a", &ten, 1));
    // It was empty when the process began, not when it was first asked.
    assert!(world.takes(500 * MS, "b", &ten, 5));
    assert!(!world.takes(500 * MS, "b", &ten, 1));
}

#[test]
fn slots_come_back_on_release_and_at_their_end() {
    let mut world = World::plain();
    let two = spec("2 concurrent");
    let Verdict::Granted(Some(first)) = world.ask(0, Class::Normal, 0, &[("gpu", &two, 1)]) else {
        panic!("it is free");
    };
    assert!(world.takes(0, "gpu", &two, 1));
    assert!(!world.takes(0, "gpu", &two, 1));
    let (his, nobody_in_particular, another) = (Owner(7), Owner::default(), Owner(8));
    for not_his in [another, nobody_in_particular] {
        let released = world
            .throttle
            .release(&at(MS), first, Some(not_his), &mut world.outcomes);
        assert!(!released, "{not_his:?}");
    }
    let waits = world.ask(MS, Class::Normal, 100_000 * MS, &[("gpu", &two, 1)]);
    let Verdict::Waiting(ticket) = waits else {
        panic!("both are held");
    };
    assert!(
        world
            .throttle
            .release(&at(2 * MS), first, Some(his), &mut world.outcomes)
    );
    assert_eq!(world.outcomes.len(), 1);
    assert_eq!(world.outcomes[0].ticket, ticket);
    assert!(
        !world
            .throttle
            .release(&at(2 * MS), first, None, &mut world.outcomes)
    );
    // The second was never given back: after its minute it is free.
    world.outcomes.clear();
    world.run(60_001 * MS);
    assert!(world.takes(60_001 * MS, "gpu", &two, 1));
    assert!(!world.takes(60_001 * MS, "gpu", &two, 1));
}

#[test]
fn a_pause_holds_a_key_that_is_not_known_yet_and_all_limits_on_it() {
    let mut world = World::plain();
    world
        .throttle
        .pause(&at(0), ("", "a"), Nanos::from_secs(5), &mut world.outcomes);
    assert!(!world.takes(0, "a", &spec("10/s burst 5"), 1));
    assert!(!world.takes(0, "a", &spec("100/min"), 1));
    assert!(world.takes(0, "b", &spec("10/s burst 5"), 1));
    assert!(world.takes(5_000 * MS, "a", &spec("10/s burst 5"), 1));
    assert!(world.takes(5_000 * MS, "a", &spec("100/min"), 1));
}

#[test]
fn new_keys_of_one_request_do_not_push_each_other_out() {
    let mut world = World::plain();
    let (small, large) = (spec("10/s burst 2"), spec("10/s burst 20"));
    let wants = [
        ("a", &small, 1),
        ("b", &small, 1),
        ("c", &small, 1),
        ("d", &large, 15),
    ];
    let verdict = world.ask(0, Class::Critical, 0, &wants);
    assert_eq!(verdict, Verdict::Granted(None));
    assert_eq!(world.throttle.keys(), 4);
}

#[test]
fn one_owner_leaves_room_for_the_keys_of_others() {
    let settings = Settings {
        keys_max: 100,
        ..Settings::default()
    };
    let mut world = World::new(settings);
    let slow = spec("1/h burst 10");
    let mut ask = |space: &str, name: usize| {
        let name = name.to_string();
        let key = Key {
            space,
            name: &name,
            facet: &Facet::Rate,
        };
        let wanted = Wanted {
            key,
            spec: &slow,
            cost: 1,
            when_away: WhenAway::Closed,
            version: 0,
        };
        let request = Request {
            wants: &[wanted],
            class: Class::Critical,
            wait: Nanos::ZERO,
            ttl: Nanos::ZERO,
            owner: Owner::default(),
        };
        let verdict = world.throttle.acquire(&at(0), &request, &mut Vec::new());
        match verdict {
            Verdict::Refused(refusal) => Err(refusal.why),
            _ => Ok(()),
        }
    };
    let greedy = (0..100).filter(|no| ask("acme", *no).is_ok()).count();
    assert_eq!(greedy, 89);
    assert_eq!(ask("acme", 200), Err(Why::TooManyOwnKeys));
    assert_eq!(ask("acme", 5), Ok(()), "what is known goes on");
    assert_eq!(ask("other", 0), Ok(()));
    assert_eq!(ask("", 0), Ok(()));
    let of_policies = (0..100).filter(|no| ask(POLICY_SPACE, *no).is_ok()).count();
    assert_eq!(of_policies, 9, "what policies limit has all that is left");
    assert_eq!(ask("other", 1), Err(Why::TooManyKeys));
}

/// What becomes of a request of an owner for one of `slots`.
fn slot(world: &mut World, owner: u64, slots: &str, wait: Nanos) -> Result<(), Why> {
    let spec = spec(slots);
    let wanted = Wanted {
        key: Key {
            space: "",
            name: "slots",
            facet: &Facet::of(&spec),
        },
        spec: &spec,
        cost: 1,
        when_away: WhenAway::Closed,
        version: 0,
    };
    let request = Request {
        wants: &[wanted],
        class: Class::Normal,
        wait,
        ttl: Nanos::from_secs(60),
        owner: Owner(owner),
    };
    match world.throttle.acquire(&at(0), &request, &mut Vec::new()) {
        Verdict::Refused(refusal) => Err(refusal.why),
        _ => Ok(()),
    }
}

#[test]
fn one_owner_leaves_permits_to_others() {
    let mut world = World::new(Settings {
        permits_max: 9,
        ..Settings::default()
    });
    let mut ask = |owner| slot(&mut world, owner, "100 concurrent", Nanos::ZERO);
    let held = (0..20).filter(|_| ask(1).is_ok()).count();
    assert_eq!(held, 8, "eight ninths");
    assert_eq!(ask(1), Err(Why::TooManyOwnPermits));
    assert_eq!(ask(2), Ok(()));
    assert_eq!(ask(3), Err(Why::TooManyKeys));
    assert_eq!(world.throttle.permits_of(Owner(1)), (8, 0));
    // What ends comes back.
    world.throttle.wake(&at(61_000 * MS), &mut Vec::new());
    assert_eq!(world.throttle.permits_of(Owner(1)), (0, 8));
}

#[test]
fn one_owner_leaves_places_to_wait_to_others() {
    let mut world = World::new(Settings {
        waiters_max: 9,
        ..Settings::default()
    });
    let long = Nanos::from_secs(10);
    let mut ask = |owner| slot(&mut world, owner, "1 concurrent", long);
    assert_eq!(ask(4), Ok(()), "it has the slot");
    let waiting = (0..20).filter(|_| ask(1).is_ok()).count();
    assert_eq!(waiting, 8, "eight ninths");
    assert_eq!(ask(1), Err(Why::TooManyOwnWaiters));
    assert_eq!(ask(2), Ok(()));
    assert_eq!(ask(3), Err(Why::TooManyWaiters));
    assert_eq!(world.throttle.waiters_of(Owner(1)), (8, 0));
    world.throttle.wake(&at(11_000 * MS), &mut Vec::new());
    assert_eq!(world.throttle.waiters_of(Owner(1)), (0, 8));
}
