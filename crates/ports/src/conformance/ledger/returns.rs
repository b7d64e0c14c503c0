//! What comes back, and what is held back: tokens that nobody used, slots of the
//! dead, pauses, numbers that were overtaken.

use outflow_core::class::Class;
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::ledger::slots::{TURN, TURNS_MAX};
use outflow_core::limit::LimitSpec;
use outflow_core::time::{Mono, Nanos};

use super::bounds::spec;
use super::fleet::{Fleet, Habit};
use super::{Case, Harness};
use crate::conformance::guarantee;

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("given back is no gift", given_back_is_no_gift),
        (
            "a window gets back what was not used",
            a_window_gets_it_back,
        ),
        ("slots hold for all", slots_hold_for_all),
        ("slots of the dead come back", slots_of_the_dead_come_back),
        ("slots are shared", slots_are_shared),
        (
            "a large message finds its slots",
            a_large_message_finds_its_slots,
        ),
        ("a pause holds for all", a_pause_holds_for_all),
        ("a pause can be lifted", a_pause_can_be_lifted),
        ("old numbers are not leased", old_numbers_are_not_leased),
    ]
}

/// Askers that give back at random moments exceed nothing.
fn given_back_is_no_gift<H: Harness>(make: &dyn Fn() -> H) {
    for text in ["1000/s burst 100", "50/s burst 60", "100/s burst 3"] {
        for seed in 0..make().seeds() {
            let spec = spec(text);
            let mut fleet = Fleet::new(make(), &spec, seed);
            fleet.add(3, Habit::Fickle);
            fleet.add(1, Habit::Greedy);
            fleet.run(Nanos::from_secs(6));
            let kept = guarantee::check(&spec, &fleet.uses);
            assert_eq!(
                kept,
                Ok(()),
                "{text} is exceeded by give-backs, seed {seed}"
            );
            assert!(fleet.uses.len() > 10, "{text} lets next to nothing through");
        }
    }
}

fn a_window_gets_it_back<H: Harness>(make: &dyn Fn() -> H) {
    let window = Nanos::from_secs(3_600);
    let sliding = LimitSpec::SlidingWindow { count: 100, window };
    for spec in [sliding, spec("100/h@UTC")] {
        let mut fleet = Fleet::new(make(), &spec, 1);
        fleet.add(1, Habit::Idle);
        // All of it, twice over, if it were not given back.
        for _ in 0..4 {
            fleet.settle();
            let LeaseAnswer::Leased { tokens, .. } = fleet.hear(100) else {
                unreachable!("{spec:?} leases nothing");
            };
            assert!(tokens >= 50, "{tokens} of {spec:?}");
            fleet.give_back_all();
        }
        fleet.add(1, Habit::Greedy);
        fleet.run(Nanos::from_secs(2));
        let used = fleet.used_since(Mono(0));
        assert_eq!(used, 100, "{spec:?} is used up after all came back");
    }
}

fn slots_hold_for_all<H: Harness>(make: &dyn Fn() -> H) {
    let spec = LimitSpec::Concurrency { slots: 10 };
    let mut fleet = Fleet::new(make(), &spec, 1);
    fleet.add(4, Habit::Idle);
    let mut held = [0_u32; 4];
    for round in 0..12_u32 {
        for (place, own) in held.iter_mut().enumerate() {
            let wanted = (round * 3 + place as u32 * 5) % 7;
            let in_use = (*own).min(wanted);
            match fleet.hold(place, in_use, wanted) {
                LeaseAnswer::Leased { tokens, .. } => {
                    assert!(tokens <= wanted.max(in_use), "more than was wanted");
                    // What is in use stays until it comes back.
                    *own = tokens.max(in_use);
                }
                LeaseAnswer::Refused { .. } => *own = 0,
                LeaseAnswer::Away => unreachable!("the ledger is there"),
            }
        }
        let all: u32 = held.iter().sum();
        assert!(all <= 10, "{held:?} of 10 slots in round {round}");
    }
    let mut seen = 0;
    for place in 0..4 {
        fleet.hold(place, 0, 0);
    }
    for place in 0..4 {
        if let LeaseAnswer::Leased { tokens, .. } = fleet.hold(place, 0, 4) {
            seen += tokens;
        }
    }
    assert_eq!(seen, 10, "all slots are found again");
}

fn slots_of_the_dead_come_back<H: Harness>(make: &dyn Fn() -> H) {
    let spec = LimitSpec::Concurrency { slots: 3 };
    let mut fleet = Fleet::new(make(), &spec, 1);
    fleet.add(2, Habit::Idle);
    let LeaseAnswer::Leased { tokens, life, .. } = fleet.hold(0, 0, 3) else {
        unreachable!("three slots are free");
    };
    assert_eq!(tokens, 3, "all of them");
    let second = fleet.hold(1, 0, 1);
    assert!(matches!(second, LeaseAnswer::Refused { .. }), "{second:?}");
    // The first never asks again.
    fleet.run(life + Nanos(life.0 / 2));
    let second = fleet.hold(1, 0, 1);
    let LeaseAnswer::Leased { tokens, .. } = second else {
        unreachable!("the dead hold on: {second:?}");
    };
    assert_eq!(tokens, 1, "as many as were wanted");
}

/// Who holds all hears that another one waits; what he uses counts until he
/// says that it is free.
fn slots_are_shared<H: Harness>(make: &dyn Fn() -> H) {
    let spec = LimitSpec::Concurrency { slots: 10 };
    let mut fleet = Fleet::new(make(), &spec, 1);
    fleet.add(2, Habit::Idle);
    fleet.run(Nanos::from_secs(4));
    assert_eq!(slots(fleet.hold(0, 0, 30)), 10, "nobody else wants any");
    assert_eq!(slots(fleet.hold(1, 0, 30)), 0, "none is free");
    assert_eq!(slots(fleet.hold(0, 10, 30)), 5, "another one waits");
    assert_eq!(slots(fleet.hold(1, 0, 30)), 0, "none has come back");
    assert_eq!(slots(fleet.hold(0, 7, 30)), 5, "three came back");
    assert_eq!(slots(fleet.hold(1, 0, 30)), 3, "as many as came back");
    assert_eq!(slots(fleet.hold(0, 5, 30)), 5, "the others too");
    assert_eq!(slots(fleet.hold(1, 3, 30)), 5, "half of all");
    fleet.hold(1, 0, 0);
    assert_eq!(slots(fleet.hold(0, 5, 30)), 10, "nobody else wants any");
}

/// Messages that take all slots at once find them in turn.
fn a_large_message_finds_its_slots<H: Harness>(make: &dyn Fn() -> H) {
    let spec = LimitSpec::Concurrency { slots: 5 };
    let mut fleet = Fleet::new(make(), &spec, 1);
    fleet.add(1, Habit::Idle);
    fleet.add(1, Habit::Idle).cost = 5;
    fleet.run(Nanos::from_secs(4));
    assert_eq!(slots(fleet.hold(0, 0, 30)), 5, "nobody else wants any");
    assert_eq!(slots(fleet.hold(1, 0, 5)), 0, "none is free");
    assert_eq!(slots(fleet.hold(0, 5, 30)), 5, "its turn is not over");
    fleet.run(TURN.times(TURNS_MAX));
    assert_eq!(slots(fleet.hold(1, 0, 5)), 0, "none is free");
    assert_eq!(slots(fleet.hold(0, 5, 30)), 0, "its turn is over");
    assert_eq!(slots(fleet.hold(1, 0, 5)), 0, "none has come back");
    assert_eq!(slots(fleet.hold(0, 0, 30)), 0, "they are the other's");
    assert_eq!(slots(fleet.hold(1, 0, 5)), 5, "all came back");
}

/// The slots that an asker was leased.
fn slots(answer: LeaseAnswer) -> u32 {
    match answer {
        LeaseAnswer::Leased { tokens, .. } => tokens,
        LeaseAnswer::Refused { .. } | LeaseAnswer::Away => 0,
    }
}

fn a_pause_holds_for_all<H: Harness>(make: &dyn Fn() -> H) {
    let spec = spec("1000/s burst 100");
    let mut fleet = Fleet::new(make(), &spec, 1);
    fleet.add(2, Habit::Greedy);
    fleet.run(Nanos::from_secs(1));
    fleet.pause(Nanos::from_secs(2));
    // What is leased may be used until all have heard of it.
    fleet.run(Nanos::from_millis(500));
    for (place, heard) in fleet.heard().enumerate() {
        assert!(
            heard
                .iter()
                .any(|event| matches!(event, Event::Paused { .. })),
            "asker {place} was not told"
        );
    }
    let from = fleet.harness.now().mono;
    fleet.run(Nanos::from_secs(1));
    assert_eq!(fleet.used_since(from), 0, "nothing during a pause");
    let paused = fleet.ask_again();
    let LeaseAnswer::Refused { retry_after } = paused else {
        unreachable!("leased during a pause: {paused:?}");
    };
    assert!(retry_after <= Nanos::from_secs(1), "{retry_after}");
    fleet.run(Nanos::from_secs(2));
    let least = fleet.harness.least(500);
    assert!(fleet.used_since(from) > least, "it goes on after the pause");
    let kept = guarantee::check(&spec, &fleet.uses);
    assert_eq!(kept, Ok(()), "a pause is worth a burst");
}

fn a_pause_can_be_lifted<H: Harness>(make: &dyn Fn() -> H) {
    let spec = spec("1000/s burst 100");
    let mut fleet = Fleet::new(make(), &spec, 1);
    fleet.add(2, Habit::Greedy);
    fleet.run(Nanos::from_secs(1));
    fleet.pause(Nanos::from_secs(3_600));
    fleet.run(Nanos::from_secs(1));
    fleet.pause(Nanos::ZERO);
    fleet.run(Nanos::from_millis(500));
    let from = fleet.harness.now().mono;
    fleet.run(Nanos::from_secs(1));
    let least = fleet.harness.least(500);
    assert!(fleet.used_since(from) > least, "it goes on once lifted");
    let kept = guarantee::check(&spec, &fleet.uses);
    assert_eq!(kept, Ok(()), "a pause is worth a burst");
}

fn old_numbers_are_not_leased<H: Harness>(make: &dyn Fn() -> H) {
    let (old, new) = (spec("1000/s burst 100"), spec("10/s burst 5"));
    let mut fleet = Fleet::new(make(), &old, 1);
    fleet.add(2, Habit::Greedy);
    fleet.run(Nanos::from_secs(1));
    // One node hears of the change, the other does not.
    fleet.change(1, &new, 7);
    fleet.run(Nanos::from_secs(1));
    let from = fleet.harness.now().mono;
    fleet.run(Nanos::from_secs(3));
    let used = fleet.used_since(from);
    assert!(
        used <= 36,
        "{used} in 3 s at 10 a second: old numbers hold on"
    );
    assert!(
        used >= fleet.harness.least(10),
        "{used} in 3 s at 10 a second"
    );
    let answer = fleet.hear_as(0, Class::Normal, 5);
    assert!(
        !matches!(answer, LeaseAnswer::Leased { .. }),
        "a lease under numbers that were overtaken"
    );
}
