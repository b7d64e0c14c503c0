//! Who waits is served in order, and nobody starves.

use super::{MS, World, spec};
use crate::class::Class;
use crate::limit::spec::{Headroom, LimitSpec};
use crate::throttle::Settings;
use crate::throttle::request::{Outcome, Refusal, Ticket, Verdict, Why};

fn waits(verdict: Verdict) -> Ticket {
    match verdict {
        Verdict::Waiting(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn is_granted(outcome: &Outcome) -> bool {
    matches!(outcome.verdict, Verdict::Granted(_))
}

#[test]
fn first_come_first_served_and_the_more_urgent_first() {
    let mut world = World::plain();
    let one = spec("10/s burst 1");
    assert!(world.takes(0, "a", &one, 1));
    let want: &[(&str, &LimitSpec, u32)] = &[("a", &one, 1)];
    let low = waits(world.ask(0, Class::Low, 10_000 * MS, want));
    let first = waits(world.ask(0, Class::Normal, 10_000 * MS, want));
    let second = waits(world.ask(0, Class::Normal, 10_000 * MS, want));
    let urgent = waits(world.ask(0, Class::Critical, 10_000 * MS, want));
    let told = world.run(1_000 * MS);
    let waits = world.throttle.waits();
    assert_eq!(waits.len(), 1);
    // The first was granted at once; the others waited.
    assert_eq!((waits[0].1.came, waits[0].1.passed()), (4, 4));
    assert_eq!(waits[0].1.waited.0 / MS, 1_000);
    let order: Vec<_> = told
        .iter()
        .map(|(now, it)| (*now / MS, it.ticket))
        .collect();
    assert_eq!(
        order,
        [(100, urgent), (200, first), (300, second), (400, low)]
    );
}

#[test]
fn nobody_overtakes_who_waits() {
    let mut world = World::plain();
    let one = spec("10/s burst 1");
    let want: &[(&str, &LimitSpec, u32)] = &[("a", &one, 1)];
    assert!(world.takes(0, "a", &one, 1));
    let first = waits(world.ask(0, Class::Normal, 10_000 * MS, want));
    // There is a token, but it is somebody else's, who was not woken yet.
    let verdict = world.ask(100 * MS, Class::Normal, 0, want);
    let Verdict::Refused(refusal) = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(refusal.why, Why::Limited);
    let told = world.run(100 * MS);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1.ticket, first);
}

#[test]
fn who_waited_too_long_hears_when_to_come_back() {
    let mut world = World::plain();
    let two = spec("2 concurrent");
    assert!(world.takes(0, "a", &two, 2));
    let ticket = waits(world.ask(0, Class::Normal, 50 * MS, &[("a", &two, 1)]));
    let told = world.run(50 * MS);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1.ticket, ticket);
    let Verdict::Refused(Refusal { retry_after, .. }) = told[0].1.verdict else {
        panic!("nobody gave a slot back");
    };
    assert!(retry_after.is_some());
    assert_eq!(world.throttle.waiters(), 0);
}

#[test]
fn no_time_is_spent_on_what_cannot_come_in_time() {
    let mut world = World::plain();
    let slow = spec("1/s burst 1");
    assert!(world.takes(0, "a", &slow, 1));
    let verdict = world.ask(0, Class::Normal, 500 * MS, &[("a", &slow, 1)]);
    let Verdict::Refused(refusal) = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(refusal.retry_after.map(|it| it.0 / MS), Some(1_000));
}

#[test]
fn who_needs_two_busy_limits_gets_them() {
    let mut world = World::new(Settings {
        headroom: Headroom::default(),
        ..Settings::default()
    });
    let one = spec("100/s burst 1");
    let long = 200_000 * MS;
    for name in ["a", "b"] {
        world.takes(0, name, &one, 1);
        for _ in 0..50 {
            waits(world.ask(0, Class::Normal, long, &[(name, &one, 1)]));
        }
    }
    let both = waits(world.ask(0, Class::Normal, long, &[("a", &one, 1), ("b", &one, 1)]));
    // Tokens of the two limits come at different times from now on, and there
    // is always somebody else who wants one of them.
    let mut got = None;
    for i in 1..400_u64 {
        for (name, shift) in [("a", 0), ("b", 3)] {
            let now = i * 10 * MS + shift * MS;
            let told = world.run(now);
            if told
                .iter()
                .any(|(_, it)| it.ticket == both && is_granted(it))
            {
                got = got.or(Some(i));
            }
            world.ask(now, Class::Normal, long, &[(name, &one, 1)]);
        }
    }
    // It was the 51st at either.
    let got = got.expect("it starves");
    assert!(got <= 60, "{got}");
}

#[test]
fn the_least_urgent_gets_one_in_fifty() {
    let mut world = World::plain();
    let fast = spec("100/s burst 1");
    let want: &[(&str, &LimitSpec, u32)] = &[("a", &fast, 1)];
    world.takes(0, "a", &fast, 1);
    let long = 200_000 * MS;
    let low = waits(world.ask(0, Class::Low, long, want));
    let mut got = None;
    for i in 0..300_u64 {
        // Two of the most urgent for each token.
        for _ in 0..2 {
            world.ask(i * 10 * MS, Class::Critical, long, want);
        }
        let told = world.run((i + 1) * 10 * MS);
        if told.iter().any(|(_, it)| it.ticket == low) {
            got = got.or(Some(i));
        }
    }
    let got = got.expect("it starves");
    assert!(got <= 52, "{got}");
}

#[test]
fn as_many_wait_as_may() {
    let mut world = World::new(Settings {
        waiters_max: 1,
        ..Settings::default()
    });
    let slots = spec("1 concurrent");
    assert!(world.takes(0, "a", &slots, 1));
    let want: &[(&str, &LimitSpec, u32)] = &[("a", &slots, 1)];
    let ticket = waits(world.ask(0, Class::Normal, 1_000 * MS, want));
    let verdict = world.ask(0, Class::Normal, 1_000 * MS, want);
    assert!(matches!(
        verdict,
        Verdict::Refused(Refusal {
            why: Why::TooManyWaiters,
            ..
        })
    ));
    assert!(world.throttle.cancel(&super::at(MS), ticket));
    assert!(!world.throttle.cancel(&super::at(MS), ticket));
    waits(world.ask(MS, Class::Normal, 1_000 * MS, want));
}
