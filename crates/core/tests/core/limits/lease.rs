//! A lease is never exceeded: by class, by time, by spacing.

use outflow_core::class::Class;
use outflow_core::limit::{Grant, Headroom, Limit, Need, Until};
use outflow_core::time::{Mono, Nanos};
use proptest::prelude::*;

use super::{DAY, SECOND, at, cases, later, spec};

fn leased(text: &str) -> Limit {
    Limit::leased(spec(text), Headroom([200, 0, 0, 0]))
}

fn grant(tokens: u32, class: Class, usable_from: u64, ends_at: u64) -> Grant {
    Grant {
        tokens,
        class,
        usable_from: Mono(usable_from),
        ends_at: Mono(ends_at),
        spacing: Nanos::ZERO,
        cost: 1,
        asked_at: Mono(usable_from),
        asked: at(0).clocks(),
        parting_max: Nanos(SECOND / 4),
        receipt: None,
    }
}

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Grant(Grant),
    Take(Class, u32),
    TakeWhenReady(Class, u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let class = || (0..4_usize).prop_map(|index| Class::ALL[index]);
    let grant = (1..10_u32, class(), 0..300_u64, 1..600_u64);
    let op = prop_oneof![
        4 => (0..200_u64).prop_map(Op::Wait),
        4 => grant.prop_map(|(tokens, class, from, life)| Op::Grant(grant_of(tokens, class, from, life))),
        6 => (class(), 1..4_u32).prop_map(|(class, cost)| Op::Take(class, cost)),
        3 => (class(), 1..4_u32).prop_map(|(class, cost)| Op::TakeWhenReady(class, cost)),
    ];
    prop::collection::vec(op, 1..60)
}

/// Times are relative until it is granted.
fn grant_of(tokens: u32, class: Class, from: u64, life: u64) -> Grant {
    grant(tokens, class, from, from + life)
}

struct Take {
    time: u64,
    class: Class,
    cost: u32,
}

/// No message is taken from a run whose pause is shorter than its gap.
fn has_gaps(takes: &[Take], grants: &[Grant]) {
    for take in takes {
        let good = grants.iter().filter(|grant| {
            let is_good = grant.usable_from.0 <= take.time && take.time < grant.ends_at.0;
            is_good && grant.cost >= take.cost && grant.class >= take.class
        });
        assert!(good.map(|grant| grant.tokens).sum::<u32>() >= take.cost);
    }
}

/// No set of takes by a class and those below it, in any stretch, exceeds the
/// batches of those classes that were good in that stretch.
fn holds(takes: &[Take], grants: &[Grant]) {
    for class in Class::ALL {
        for (i, first) in takes.iter().enumerate() {
            for last in &takes[i..] {
                let inside = takes[i..].iter().filter(|take| take.time <= last.time);
                let inside = inside.filter(|take| take.class >= class);
                let taken: u32 = inside.map(|take| take.cost).sum();
                let good = grants.iter().filter(|grant| {
                    grant.class >= class
                        && grant.usable_from.0 <= last.time
                        && grant.ends_at.0 > first.time
                });
                assert!(taken <= good.map(|grant| grant.tokens).sum());
            }
        }
    }
}

fn run(limit: &mut Limit, spacing: u64, ops: Vec<Op>) -> (Vec<Take>, Vec<Grant>) {
    let (mut takes, mut grants) = (Vec::new(), Vec::new());
    let mut now = at(1_000);
    for op in ops {
        match op {
            Op::Wait(span) => now = later(&now, now.mono + Nanos(span)),
            Op::Grant(relative) => {
                let granted = Grant {
                    usable_from: now.mono + Nanos(relative.usable_from.0),
                    ends_at: now.mono + Nanos(relative.ends_at.0),
                    spacing: Nanos(spacing),
                    cost: (1 + relative.ends_at.0 % 3) as u32,
                    ..relative
                };
                limit.grant(&now, granted);
                grants.push(granted);
            }
            Op::Take(class, cost) | Op::TakeWhenReady(class, cost) => {
                let need = Need::whole(cost);
                limit.expect_cost(cost);
                let until = limit.until(&now, class, need);
                let fits_at = |mono| limit.fits(&later(&now, mono), class, need);
                if let Until::At(time) = until {
                    assert!(fits_at(time) && !fits_at(Mono(time.0 - 1)));
                    if matches!(op, Op::TakeWhenReady(..)) {
                        now = later(&now, time);
                    }
                }
                if limit.fits(&now, class, need) {
                    limit.take(&now, class, cost);
                    let time = now.mono.0;
                    takes.push(Take { time, class, cost });
                }
            }
        }
    }
    (takes, grants)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn never_more_than_granted_to_the_class_and_in_time(ops in ops()) {
        let (takes, grants) = run(&mut leased("1000/s burst 1000"), 0, ops);
        holds(&takes, &grants);
    }

    #[test]
    fn spaced_runs_keep_their_gaps(ops in ops(), spacing in 1..50_u64) {
        let (takes, grants) = run(&mut leased("1000/s spaced"), spacing, ops);
        holds(&takes, &grants);
        has_gaps(&takes, &grants);
        for pair in takes.windows(2) {
            prop_assert!(pair[1].time - pair[0].time >= spacing * u64::from(pair[0].cost));
        }
    }
}

#[test]
fn a_batch_serves_its_class_and_those_above() {
    let mut limit = leased("100/s burst 100");
    limit.grant(&at(0), grant(1, Class::Normal, 0, SECOND));
    let fits = |limit: &Limit, class| limit.fits(&at(0), class, Need::whole(1));
    assert!(Class::ALL.map(|class| fits(&limit, class)) == [true, true, true, false]);
    limit.grant(&at(0), grant(1, Class::Critical, 0, SECOND));
    limit.take(&at(0), Class::Critical, 1);
    assert!(fits(&limit, Class::Normal), "critical takes its own first");
}

#[test]
fn a_batch_is_void_at_its_end() {
    let mut limit = leased("100/s burst 100");
    assert_eq!(
        limit.until(&at(0), Class::Low, Need::whole(1)),
        Until::Granted
    );
    assert_eq!(
        limit.until(&at(0), Class::Low, Need::whole(101)),
        Until::Never
    );
    limit.grant(&at(0), grant(5, Class::Low, SECOND, 2 * SECOND));
    assert_eq!(
        limit.until(&at(0), Class::Low, Need::whole(5)),
        Until::At(Mono(SECOND))
    );
    assert_eq!(
        limit.until(&at(0), Class::Low, Need::whole(6)),
        Until::Granted
    );
    assert!(limit.fits(&at(2 * SECOND - 1), Class::Low, Need::whole(5)));
    assert!(!limit.fits(&at(2 * SECOND), Class::Low, Need::whole(1)));
    assert!(limit.is_idle(&at(2 * SECOND)));
}

#[test]
fn tokens_are_void_when_the_clocks_have_parted() {
    // A millisecond goes unnoticed, so it counts against the quarter.
    let quarter = (SECOND / 4 - 1_000_000) as i64;
    for (moved, good) in [
        (0, true),
        (quarter, true),
        (-quarter, true),
        (quarter + 1, false),
        (-quarter - 1, false),
        (DAY as i64, false),
    ] {
        let mut limit = leased("100/s burst 100");
        limit.grant(&at(0), grant(5, Class::Low, 0, SECOND));
        let mut now = at(SECOND / 2);
        now.wall.0 += moved;
        assert_eq!(limit.void_parted(&now), !good);
        let fits = limit.fits(&now, Class::Low, Need::whole(5));
        assert_eq!(fits, good, "the wall clock moved by {moved}");
        let until = limit.until(&now, Class::Low, Need::whole(5));
        assert_eq!(until == Until::Now, good);
        assert_eq!(limit.lapses_at(&now).is_some(), good);
        assert_eq!(limit.drain(&now).len(), usize::from(good));
    }
}

#[test]
fn a_block_reaches_tokens_already_leased() {
    let mut limit = leased("100/s burst 100");
    limit.grant(&at(0), grant(5, Class::Low, 0, 2 * SECOND));
    limit.block_until(Mono(SECOND));
    assert!(!limit.fits(&at(0), Class::Critical, Need::whole(1)));
    assert_eq!(
        limit.until(&at(0), Class::Low, Need::whole(1)),
        Until::At(Mono(SECOND))
    );
    limit.block_until(Mono(3 * SECOND));
    assert_eq!(
        limit.until(&at(0), Class::Low, Need::whole(1)),
        Until::Granted
    );
}

#[test]
fn what_is_left_can_be_given_back_and_does_not_outlive_a_change() {
    let mut limit = leased("100/s burst 100");
    limit.grant(&at(0), grant(5, Class::Low, 0, SECOND));
    limit.grant(&at(0), grant(3, Class::Low, 0, 2 * SECOND));
    limit.take(&at(0), Class::Low, 2);
    let returned: u32 = limit.drain(&at(0)).iter().map(|grant| grant.tokens).sum();
    assert_eq!(returned, 6);
    assert!(limit.is_idle(&at(0)));
    limit.grant(&at(0), grant(5, Class::Low, 0, SECOND));
    limit.reconfigure(&at(0), spec("10/s burst 100"));
    assert!(!limit.fits(&at(0), Class::Critical, Need::whole(1)));
    assert_eq!(limit.floor(&at(0), Class::Low, 1), Need::ZERO);
}

/// The ledger begins the next run, perhaps at another node, after the gap of the
/// largest cost that it was told.
#[test]
fn a_run_is_not_for_costs_that_the_ledger_did_not_know() {
    let mut limit = leased("20/s spaced");
    let (now, gap) = (at(1_000), Nanos(SECOND / 20));
    limit.expect_cost(2);
    let run = |cost| Grant {
        spacing: gap,
        cost,
        ..grant(5, Class::Normal, now.mono.0, now.mono.0 + SECOND)
    };
    limit.grant(&now, run(1));
    let two = Need::whole(2);
    assert!(limit.fits(&now, Class::Normal, Need::whole(1)));
    assert_eq!(limit.until(&now, Class::Normal, two), Until::Granted);
    limit.grant(&now, run(2));
    assert_eq!(limit.until(&now, Class::Normal, two), Until::Now);
}
