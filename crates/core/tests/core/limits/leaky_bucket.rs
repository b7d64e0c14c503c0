//! Gaps of at least `1 / rate`, to the nanosecond of the clock; after a change
//! by the rate in force when the gap ends, and by the integral of the rate.

use outflow_core::class::Class;
use outflow_core::limit::{Fill, Headroom, Limit, LimitSpec, Need, Rate, Until};
use outflow_core::time::{Mono, Nanos};
use proptest::prelude::*;

use super::{
    DAY, HOUR, MINUTE, SECOND, at, cases, fits_from, full, promise_all, spec, try_take,
    until_is_exact,
};

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Take(u32),
    TakeWhenReady(u32),
    Change(Rate),
}

fn rates() -> impl Strategy<Value = Rate> {
    let pers = prop_oneof![Just(SECOND), Just(MINUTE), Just(HOUR)];
    (1..1_000_u32, pers).prop_map(|(count, per)| Rate {
        count,
        per: Nanos(per),
    })
}

fn ops(changes: u32) -> impl Strategy<Value = Vec<Op>> {
    let waits = prop_oneof![0..3_u64, 0..SECOND / 50, 0..10 * SECOND];
    let op = prop_oneof![
        3 => waits.prop_map(Op::Wait),
        3 => (1..4_u32).prop_map(Op::Take),
        8 => (1..4_u32).prop_map(Op::TakeWhenReady),
        changes => rates().prop_map(Op::Change),
    ];
    prop::collection::vec(op, 1..60)
}

struct Grant {
    time: u64,
    cost: u32,
    /// In units of `1 / HOUR` of a token.
    integral: u128,
    rate: Rate,
}

fn run(mut rate: Rate, ops: Vec<Op>) -> Vec<Grant> {
    let mut limit = full(LimitSpec::LeakyBucket { rate }, &at(0));
    let (mut now, mut integral) = (0, 0_u128);
    let mut grants = Vec::new();
    for op in ops {
        let before = now;
        let mut wanted = None;
        match op {
            Op::Wait(span) => now += span,
            Op::Take(cost) => wanted = Some(cost),
            Op::TakeWhenReady(cost) => {
                if let Until::At(time) = until_is_exact(&limit, &at(now), Need::whole(cost)) {
                    now = time.0;
                }
                wanted = Some(cost);
            }
            Op::Change(_) => {}
        }
        let unit = u128::from(HOUR / rate.per.0);
        integral += u128::from(now - before) * u128::from(rate.count) * unit;
        if let Op::Change(changed) = op {
            limit.reconfigure(&at(now), LimitSpec::LeakyBucket { rate: changed });
            rate = changed;
        }
        if let Some(cost) = wanted
            && try_take(&mut limit, &at(now), cost)
        {
            grants.push(Grant {
                time: now,
                cost,
                integral,
                rate,
            });
        }
    }
    grants
}

/// The time for `tokens`, rounded down to the clock.
fn floor_time(tokens: u64, rate: Rate) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(rate.per.0) / u128::from(rate.count)).unwrap()
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn gaps_are_long_enough_between_any_two(rate in rates(), ops in ops(0)) {
        let grants = run(rate, ops);
        for (i, first) in grants.iter().enumerate() {
            let mut tokens = u64::from(first.cost);
            for second in &grants[i + 1..] {
                prop_assert!(second.time - first.time >= floor_time(tokens, rate));
                tokens += u64::from(second.cost);
            }
        }
    }

    #[test]
    fn gaps_hold_through_live_changes(rate in rates(), ops in ops(3)) {
        let grants = run(rate, ops);
        for pair in grants.windows(2) {
            let gap = pair[1].time - pair[0].time;
            prop_assert!(gap >= floor_time(u64::from(pair[0].cost), pair[1].rate));
        }
        for (i, first) in grants.iter().enumerate() {
            let mut tokens = u128::from(first.cost);
            // A grant may be less than a nanosecond late by the exact count.
            let nano = u128::from(first.rate.count) * u128::from(HOUR / first.rate.per.0);
            for second in &grants[i + 1..] {
                let accrued = second.integral - first.integral;
                prop_assert!(accrued + nano > tokens * u128::from(HOUR));
                tokens += u128::from(second.cost);
            }
        }
    }
}

#[test]
fn three_per_second_for_a_year() {
    let mut limit = full(spec("3/s spaced"), &at(0));
    let (mut now, mut taken) = (at(0), 0_u64);
    let year = 365 * DAY;
    while let Some(next) = fits_from(&limit, &now, Need::whole(1)).filter(|next| next.mono.0 < year)
    {
        now = next;
        assert!(try_take(&mut limit, &now, 1));
        taken += 1;
    }
    assert_eq!(taken, 3 * 365 * 86_400);
}

#[test]
fn a_cost_of_n_takes_n_slots() {
    let mut limit = full(spec("10/s spaced"), &at(0));
    assert_eq!(limit.largest_cost(), u32::MAX);
    assert!(try_take(&mut limit, &at(0), 5));
    assert!(!try_take(&mut limit, &at(SECOND / 2 - 1), 1));
    assert!(try_take(&mut limit, &at(SECOND / 2), 1));
}

#[test]
fn a_raised_rate_shortens_what_is_left_and_a_lowered_one_stretches_the_gap() {
    let waits_until = |limit: &Limit, now| limit.until(&at(now), Class::Normal, Need::whole(1));
    let mut limit = full(spec("1/day spaced"), &at(0));
    assert!(try_take(&mut limit, &at(0), 1));
    limit.reconfigure(&at(DAY / 2), spec("1/s spaced"));
    assert_eq!(
        waits_until(&limit, DAY / 2),
        Until::At(Mono(DAY / 2 + SECOND / 2))
    );

    let mut limit = full(spec("10/s spaced"), &at(0));
    assert!(try_take(&mut limit, &at(0), 1));
    limit.reconfigure(&at(SECOND / 20), spec("1/s spaced"));
    assert_eq!(waits_until(&limit, SECOND / 20), Until::At(Mono(SECOND)));
}

#[test]
fn one_that_starts_empty_waits_as_long_as_it_can_have_forgotten() {
    for (text, first) in [("10/s spaced", 5 * SECOND), ("1/min spaced", MINUTE)] {
        let mut limit = Limit::owned(spec(text), Headroom::default(), &at(0), Fill::Empty);
        promise_all(&mut limit);
        let until = until_is_exact(&limit, &at(0), Need::whole(1));
        assert_eq!(until, Until::At(Mono(first)));
    }
}
