//! Limits that a fleet shares: nothing is spent that was not granted, and nobody
//! is refused for a question that was not answered.

use proptest::prelude::*;

use super::{MS, World, at, spec};
use crate::class::Class;
use crate::engine::action::{Action, LeaseRequest};
use crate::engine::event::LeaseAnswer;
use crate::limit::spec::LimitSpec;
use crate::throttle::Settings;
use crate::throttle::cell::{Cell, Told};
use crate::throttle::request::{Outcome, Refusal, Ticket, Verdict};
use crate::time::Nanos;

fn fleet() -> World {
    World::new(Settings {
        leased: true,
        ..Settings::default()
    })
}

fn leased(tokens: u32) -> LeaseAnswer {
    LeaseAnswer::Leased {
        tokens,
        life: Nanos(300 * MS),
        wait: Nanos::ZERO,
        spacing: Nanos::ZERO,
        receipt: Default::default(),
        owed: Default::default(),
    }
}

impl World {
    /// What the ledger is asked.
    fn asked(&mut self) -> Vec<LeaseRequest> {
        let mut actions = Vec::new();
        self.throttle.take_actions(&mut actions);
        let leases = actions.into_iter().filter_map(|action| match action {
            Action::Lease(request) => Some(request),
            _ => None,
        });
        leases.collect()
    }

    fn answer(&mut self, now: u64, request: &LeaseRequest, answer: LeaseAnswer) -> Vec<Outcome> {
        let name = (request.limit, request.no);
        self.throttle
            .granted(&at(now), name, answer, &mut self.outcomes);
        std::mem::take(&mut self.outcomes)
    }
}

fn waits(verdict: Verdict) -> Ticket {
    match verdict {
        Verdict::Waiting(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_does_not_wait_hears_the_ledger_first() {
    let mut world = fleet();
    let rate = spec("100/s burst 50");
    let want: &[(&str, &LimitSpec, u32)] = &[("a", &rate, 1)];
    let ticket = waits(world.ask(0, Class::Normal, 0, want));
    let asked = world.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].key.to_string(), "key:a");
    let told = world.answer(2 * MS, &asked[0], leased(5));
    let granted = Outcome {
        ticket,
        verdict: Verdict::Granted(None),
    };
    assert_eq!(told, [granted]);
    // The others are there at once.
    for _ in 0..4 {
        let verdict = world.ask(3 * MS, Class::Normal, 0, want);
        assert_eq!(verdict, Verdict::Granted(None));
    }
}

#[test]
fn a_refusal_of_the_ledger_says_when_to_come_back() {
    let mut world = fleet();
    let rate = spec("100/s burst 50");
    let want: &[(&str, &LimitSpec, u32)] = &[("a", &rate, 1)];
    let ticket = waits(world.ask(0, Class::Normal, 0, want));
    let asked = world.asked();
    let retry_after = Nanos(50 * MS);
    let told = world.answer(2 * MS, &asked[0], LeaseAnswer::Refused { retry_after });
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].ticket, ticket);
    assert!(
        matches!(told[0].verdict, Verdict::Refused(Refusal { retry_after: Some(after), .. })
        if after == retry_after)
    );
    // Until then the ledger is not asked again, and nobody waits for it.
    let verdict = world.ask(10 * MS, Class::Normal, 0, want);
    assert!(
        matches!(verdict, Verdict::Refused(Refusal { retry_after: Some(after), .. })
        if after == Nanos(42 * MS)),
        "{verdict:?}"
    );
    assert!(world.asked().is_empty());
    // Who waits is asked for when the time has come.
    waits(world.ask(10 * MS, Class::Normal, 1_000 * MS, want));
    world.run(52 * MS);
    let asked = world.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(world.answer(53 * MS, &asked[0], leased(1)).len(), 1);
}

#[test]
fn a_silent_ledger_refuses_in_the_end() {
    let mut world = fleet();
    let rate = spec("100/s burst 50");
    waits(world.ask(0, Class::Normal, 0, &[("a", &rate, 1)]));
    let told = world.run(5_000 * MS);
    assert_eq!(told.len(), 1);
    assert!(matches!(told[0].1.verdict, Verdict::Refused(_)));
    assert_eq!(world.throttle.waiters(), 0);
}

#[test]
fn a_call_of_redis_cell_waits_for_the_ledger_as_well() {
    let mut world = fleet();
    let cell = |quantity| Cell {
        space: "",
        name: "a",
        burst: 16,
        rate: crate::limit::spec::Rate {
            count: 30,
            per: Nanos::from_secs(60),
        },
        quantity,
    };
    let call = |world: &mut World, now, quantity| {
        let told = world
            .throttle
            .cell(&at(now), &cell(quantity), &mut world.outcomes);
        told.unwrap()
    };
    assert_eq!(call(&mut world, 0, 1), Told::NotYet);
    let asked = world.asked();
    assert_eq!(asked.len(), 1);
    world.answer(MS, &asked[0], leased(2));
    let Told::Answer(answer) = call(&mut world, MS, 1) else {
        panic!("it has tokens");
    };
    assert!(!answer.limited);
    let Told::Answer(answer) = call(&mut world, MS, 0) else {
        panic!("to look takes no time");
    };
    assert_eq!((answer.limit, answer.remaining), (16, 1));
}

#[test]
fn all_limits_are_asked_for_at_once_and_taken_together() {
    let mut world = fleet();
    let rate = spec("100/s burst 50");
    let ticket = waits(world.ask(0, Class::Normal, 0, &[("a", &rate, 1), ("b", &rate, 2)]));
    let asked = world.asked();
    assert_eq!(asked.len(), 2);
    assert!(world.answer(MS, &asked[0], leased(5)).is_empty());
    let told = world.answer(2 * MS, &asked[1], leased(5));
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].ticket, ticket);
    assert_eq!(told[0].verdict, Verdict::Granted(None));
}

/// A ledger that begins empty refuses each limit once. Whoever wants several of
/// them together is served as soon as all have something.
#[test]
fn several_limits_that_begin_empty_are_all_asked_for_again() {
    let (rate, slots) = (spec("100/s burst 50"), spec("4 concurrent"));
    for second in [&rate, &slots] {
        let mut world = fleet();
        let want = [("a", &rate, 1), ("b", second, 1)];
        let ticket = waits(world.ask(0, Class::Normal, 10_000 * MS, &want));
        let mut refused = std::collections::BTreeSet::new();
        let mut now = 0;
        let granted = loop {
            assert!(now < 5_000 * MS, "it waits for nothing");
            for request in world.asked() {
                let answer = match refused.insert(request.limit) {
                    true => LeaseAnswer::Refused {
                        retry_after: Nanos(1_000 * MS),
                    },
                    false => leased(5),
                };
                let told = world.answer(now + MS, &request, answer);
                world.outcomes.extend(told);
            }
            now += 2 * MS;
            let mut told: Vec<Outcome> = world.outcomes.drain(..).collect();
            told.extend(world.run(now).into_iter().map(|(_, it)| it));
            if let Some(it) = told.into_iter().find(|it| it.ticket == ticket) {
                break it.verdict;
            }
        };
        assert!(matches!(granted, Verdict::Granted(_)), "{granted:?}");
        assert!(now < 1_200 * MS, "granted at {} ms", now / MS);
    }
}

/// A less urgent one whose turn has come spends what was leased for the others:
/// nobody stands still while more is leased for it.
#[test]
fn a_turn_of_the_less_urgent_holds_nobody_up() {
    let mut world = fleet();
    let rate = spec("1000/s burst 100");
    let want: &[(&str, &LimitSpec, u32)] = &[("a", &rate, 1)];
    let low = waits(world.ask(0, Class::Low, 10_000 * MS, want));
    let mut urgent = 0;
    for turn in 0..60 {
        urgent += 1;
        waits(world.ask(turn * MS, Class::Critical, 10_000 * MS, want));
    }
    let mut granted = Vec::new();
    for round in 0..40 {
        let told = world.run((61 + round) * MS);
        granted.extend(told.into_iter().map(|(_, it)| it.ticket));
        for request in world.asked() {
            // The floor that is kept from it leaves nothing for the less urgent.
            let answer = match request.class {
                Class::Critical => leased(10),
                _ => LeaseAnswer::Refused {
                    retry_after: Nanos(1),
                },
            };
            let told = world.answer((61 + round) * MS, &request, answer);
            granted.extend(told.into_iter().map(|it| it.ticket));
        }
    }
    assert!(
        granted.contains(&low),
        "it had its turn among {}",
        granted.len()
    );
    assert_eq!(granted.len(), urgent + 1, "and so had all others");
}

#[test]
fn a_permit_of_another_process_is_nobodys_here() {
    let slots = spec("1 concurrent");
    let want: &[(&str, &LimitSpec, u32)] = &[("a", &slots, 1)];
    let mut first = World::seeded(1 << 33);
    let Verdict::Granted(Some(old)) = first.ask(0, Class::Normal, 0, want) else {
        panic!("a slot is free");
    };
    let mut second = World::seeded(7 << 40);
    let Verdict::Granted(Some(new)) = second.ask(0, Class::Normal, 0, want) else {
        panic!("a slot is free");
    };
    assert_ne!(old, new);
    let mut outcomes = Vec::new();
    assert!(!second.throttle.release(&at(0), old, None, &mut outcomes));
    assert!(second.throttle.release(&at(0), new, None, &mut outcomes));
}

proptest! {
    /// Whatever is asked and whatever the ledger answers, no more is granted than
    /// it granted, and everybody hears something.
    #[test]
    fn spends_only_what_was_granted(steps in prop::collection::vec(
        (0..30 * MS, 1_u32..4, prop_oneof![Just(0), Just(200 * MS)], 0_u32..12), 1..100,
    )) {
        let mut world = fleet();
        let rate = spec("1000/s burst 100");
        let (mut now, mut spent, mut lent) = (0, 0_u64, 0_u64);
        let mut waiting = std::collections::BTreeMap::new();
        for (after, cost, wait, tokens) in steps {
            now += after;
            let mut told: Vec<Outcome> = world.run(now).into_iter().map(|(_, it)| it).collect();
            match world.ask(now, Class::Normal, wait, &[("a", &rate, cost)]) {
                Verdict::Granted(_) => spent += u64::from(cost),
                Verdict::Waiting(ticket) => {
                    waiting.insert(ticket, cost);
                }
                Verdict::Refused(_) => {}
            }
            told.append(&mut world.outcomes);
            for request in world.asked() {
                let answer = match tokens {
                    0 => LeaseAnswer::Refused { retry_after: Nanos(20 * MS) },
                    11 => continue,
                    tokens => {
                        lent += u64::from(tokens);
                        leased(tokens)
                    }
                };
                told.extend(world.answer(now, &request, answer));
            }
            for outcome in told {
                let cost = waiting.remove(&outcome.ticket).unwrap();
                if let Verdict::Granted(_) = outcome.verdict {
                    spent += u64::from(cost);
                }
            }
            prop_assert!(spent <= lent, "{spent} of {lent}");
        }
        let told = world.run(now + 10_000 * MS);
        for (_, outcome) in told {
            waiting.remove(&outcome.ticket);
        }
        prop_assert!(waiting.is_empty(), "somebody waits for ever");
    }
}
