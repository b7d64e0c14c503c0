//! The answers of redis-cell, case by case.

use super::{MS, World, at};
use crate::limit::spec::Rate;
use crate::throttle::cell::{Answer, Cell, Told};
use crate::time::Nanos;

fn call(
    world: &mut World,
    now_ms: u64,
    (burst, count, period): (u32, u32, u64),
    quantity: u32,
) -> Answer {
    let cell = Cell {
        space: "",
        name: "user123",
        burst,
        rate: Rate {
            count,
            per: Nanos::from_secs(period),
        },
        quantity,
    };
    let answer = world
        .throttle
        .cell(&at(now_ms * MS), &cell, &mut world.outcomes);
    match answer.unwrap() {
        Told::Answer(answer) => answer,
        Told::NotYet => panic!("there is no ledger"),
    }
}

/// (time in ms, quantity, limited, remaining, retry after, reset after), for a
/// bucket of 5 that fills by one a second.
const CASES: [(u64, u32, bool, u64, i64, i64); 15] = [
    (0, 6, true, 5, -1, 0),
    (0, 1, false, 4, -1, 1),
    (0, 1, false, 3, -1, 2),
    (0, 1, false, 2, -1, 3),
    (0, 1, false, 1, -1, 4),
    (0, 1, false, 0, -1, 5),
    (0, 1, true, 0, 1, 5),
    (3_000, 1, false, 2, -1, 3),
    (3_100, 1, false, 1, -1, 4),
    (4_000, 1, false, 1, -1, 4),
    (8_000, 1, false, 4, -1, 1),
    (9_500, 1, false, 4, -1, 1),
    (9_500, 0, false, 4, -1, 1),
    (9_500, 2, false, 2, -1, 3),
    (9_500, 5, true, 2, 3, 3),
];

#[test]
fn answers_as_redis_cell_does() {
    let mut world = World::plain();
    for (i, (now, quantity, limited, remaining, retry_after, reset_after)) in
        CASES.into_iter().enumerate()
    {
        let answer = call(&mut world, now, (5, 1, 1), quantity);
        let wanted = Answer {
            limited,
            limit: 5,
            remaining,
            retry_after,
            reset_after,
        };
        assert_eq!(answer, wanted, "case {i}");
    }
}

#[test]
fn the_example_of_its_manual() {
    let mut world = World::plain();
    let answer = call(&mut world, 0, (16, 30, 60), 1);
    let wanted = Answer {
        limited: false,
        limit: 16,
        remaining: 15,
        retry_after: -1,
        reset_after: 2,
    };
    assert_eq!(answer, wanted);
}

#[test]
fn other_numbers_give_no_fresh_burst() {
    let mut world = World::plain();
    for _ in 0..5 {
        assert!(!call(&mut world, 0, (5, 1, 1), 1).limited);
    }
    let answer = call(&mut world, 0, (50, 10, 1), 1);
    assert!(answer.limited);
    assert_eq!(answer.limit, 50);
    // At the new rate there is one after 100 ms.
    assert!(!call(&mut world, 100, (50, 10, 1), 1).limited);
}

#[test]
fn a_pause_is_limited_and_has_nothing_remaining() {
    let mut world = World::plain();
    assert!(!call(&mut world, 0, (5, 1, 1), 1).limited);
    world.throttle.pause(
        &at(0),
        ("", "user123"),
        Nanos::from_secs(7),
        &mut world.outcomes,
    );
    let answer = call(&mut world, 0, (5, 1, 1), 1);
    assert!(answer.limited);
    assert_eq!((answer.remaining, answer.retry_after), (0, 7));
    assert!(!call(&mut world, 7_000, (5, 1, 1), 1).limited);
}
