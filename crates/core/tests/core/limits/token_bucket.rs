//! At most `burst + rate * T` in any time `T`; after a live change the largest
//! burst in force plus the integral of the rate.

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
    ClockBack(u64),
    Take(u32),
    TakeWhenReady(u32),
    Change(Rate, u32),
}

fn rates() -> impl Strategy<Value = Rate> {
    let pers = prop_oneof![Just(SECOND), Just(MINUTE), Just(HOUR), Just(DAY)];
    (1..5_000_u32, pers).prop_map(|(count, per)| Rate {
        count,
        per: Nanos(per),
    })
}

fn bursts() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1), 1..10_u32, 1..3_000_u32]
}

fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![0..2_000_u64, 0..SECOND / 100, 0..5 * SECOND, 0..2 * HOUR,]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => waits().prop_map(Op::Wait),
        1 => waits().prop_map(Op::ClockBack),
        4 => (1..12_u32).prop_map(Op::Take),
        6 => (1..12_u32).prop_map(Op::TakeWhenReady),
        1 => (rates(), bursts()).prop_map(|(rate, burst)| Op::Change(rate, burst)),
    ];
    prop::collection::vec(op, 1..80)
}

/// A grant, with the integral of the rate up to it in units of `1 / DAY` of a
/// token, and which numbers were in force.
struct Grant {
    cost: u32,
    integral: u128,
    numbers: usize,
}

fn holds(grants: &[Grant], bursts: &[u32]) {
    for (i, first) in grants.iter().enumerate() {
        let mut sum = 0;
        for last in &grants[i..] {
            sum += u128::from(last.cost);
            let burst = bursts[first.numbers..=last.numbers].iter().max().unwrap();
            let accrued = last.integral - first.integral;
            let bound = u128::from(*burst) * u128::from(DAY) + accrued;
            assert!(sum * u128::from(DAY) <= bound);
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn at_most_burst_and_rate_over_every_interval(
        mut rate in rates(),
        burst in bursts(),
        empty in any::<bool>(),
        ops in ops(),
    ) {
        let fill = if empty { Fill::Empty } else { Fill::Full };
        let first = LimitSpec::TokenBucket { rate, burst };
        let mut limit = Limit::owned(first, Headroom::default(), &at(HOUR), fill);
        promise_all(&mut limit);
        let mut bursts = vec![burst];
        let (mut now, mut furthest, mut integral) = (HOUR, HOUR, 0_u128);
        let mut grants = Vec::new();
        for op in ops {
            let mut wanted = None;
            match op {
                Op::Wait(span) => now += span,
                Op::ClockBack(span) => now = now.saturating_sub(span),
                Op::Take(cost) => wanted = Some(cost),
                Op::TakeWhenReady(cost) => {
                    if let Until::At(time) = until_is_exact(&limit, &at(now), Need::whole(cost)) {
                        now = time.0;
                    }
                    wanted = Some(cost);
                }
                Op::Change(..) => {}
            }
            // Time passes for the limit only when it is shown a later one.
            let mut pass = || {
                let unit = u128::from(DAY / rate.per.0);
                let passed = u128::from(now.saturating_sub(furthest));
                integral += passed * u128::from(rate.count) * unit;
                furthest = furthest.max(now);
            };
            if let Op::Change(new_rate, burst) = op {
                // The same numbers change nothing: the limit is shown no time.
                if (new_rate, Some(&burst)) != (rate, bursts.last()) {
                    pass();
                }
                limit.reconfigure(&at(now), LimitSpec::TokenBucket { rate: new_rate, burst });
                promise_all(&mut limit);
                rate = new_rate;
                bursts.push(burst);
            } else if let Some(cost) = wanted && try_take(&mut limit, &at(now), cost) {
                pass();
                grants.push(Grant { cost, integral, numbers: bursts.len() - 1 });
            }
        }
        holds(&grants, &bursts);
    }

    #[test]
    fn uses_99_9_percent_when_there_is_demand(
        rate in rates(),
        burst in bursts(),
        costs in prop::collection::vec(1..4_u32, 40),
    ) {
        let burst = burst.max(4);
        let mut limit = full(LimitSpec::TokenBucket { rate, burst }, &at(0));
        let (mut now, mut taken) = (at(0), 0_u64);
        for cost in costs.iter().cycle().take(4_000) {
            now = fits_from(&limit, &now, Need::whole(*cost)).expect("a time");
            prop_assert!(try_take(&mut limit, &now, *cost));
            taken += u64::from(*cost);
        }
        let possible = u128::from(burst)
            + u128::from(now.mono.0) * u128::from(rate.count) / u128::from(rate.per.0);
        prop_assert!(u128::from(taken) * 1_000 >= possible * 999);
    }
}

#[test]
fn burst_1() {
    let mut limit = full(spec("2/s burst 1"), &at(0));
    assert!(try_take(&mut limit, &at(0), 1));
    assert!(!try_take(&mut limit, &at(0), 1));
    assert!(!try_take(&mut limit, &at(SECOND / 2 - 1), 1));
    assert!(try_take(&mut limit, &at(SECOND / 2), 1));
    assert!(try_take(&mut limit, &at(DAY), 1));
    assert!(!try_take(&mut limit, &at(DAY), 1));
}

#[test]
fn cost_above_burst_is_refused_for_good() {
    for text in ["14/s burst 28", "28/min", "28/day@UTC", "28 concurrent"] {
        let limit = full(spec(text), &at(0));
        assert_eq!(limit.largest_cost(), 28, "{text}");
        let until = limit.until(&at(0), Class::Critical, Need::whole(29));
        assert_eq!(until, Until::Never, "{text}");
        let until = limit.until(&at(0), Class::Critical, Need::whole(28));
        assert_ne!(until, Until::Never, "{text}");
    }
}

#[test]
fn one_per_day() {
    let rate = Rate {
        count: 1,
        per: Nanos(DAY),
    };
    let mut limit = full(LimitSpec::TokenBucket { rate, burst: 1 }, &at(0));
    for day in 0..400 {
        if day > 0 {
            assert!(!try_take(&mut limit, &at(day * DAY - 1), 1));
        }
        assert!(try_take(&mut limit, &at(day * DAY), 1));
    }
}

#[test]
fn three_per_second_for_a_year() {
    let mut limit = full(spec("3/s burst 1"), &at(0));
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
fn rate_lowered_to_a_tenth_and_raised_while_others_wait() {
    let mut limit = full(spec("100/s burst 10"), &at(0));
    assert!(try_take(&mut limit, &at(0), 10));
    let waits_for = |limit: &Limit, now| limit.until(&at(now), Class::Normal, Need::whole(5));
    assert_eq!(waits_for(&limit, 0), Until::At(Mono(SECOND / 20)));

    limit.reconfigure(&at(SECOND / 50), spec("10/s burst 10"));
    let two_by_now_three_to_come = SECOND / 50 + 3 * SECOND / 10;
    assert_eq!(
        waits_for(&limit, SECOND / 50),
        Until::At(Mono(two_by_now_three_to_come))
    );

    limit.reconfigure(&at(SECOND / 50 + SECOND / 10), spec("100/s burst 10"));
    let two_more = SECOND / 50 + SECOND / 10 + 2 * SECOND / 100;
    assert_eq!(
        waits_for(&limit, SECOND / 50 + SECOND / 10),
        Until::At(Mono(two_more))
    );
}

#[test]
fn a_rate_of_nothing_waits_for_a_change() {
    let rate = Rate::per_second(0);
    let stopped = LimitSpec::TokenBucket { rate, burst: 5 };
    let mut limit = full(spec("5/s burst 5"), &at(0));
    assert!(try_take(&mut limit, &at(0), 5));
    limit.reconfigure(&at(0), stopped);
    let until = limit.until(&at(HOUR), Class::Normal, Need::whole(1));
    assert_eq!(until, Until::At(Mono::NEVER));
    limit.reconfigure(&at(HOUR), spec("5/s burst 5"));
    assert!(!try_take(&mut limit, &at(HOUR), 1));
    assert!(try_take(&mut limit, &at(HOUR + SECOND / 5), 1));
}

#[test]
fn the_floor_is_a_share_of_the_burst_for_the_classes_above() {
    let headroom = Headroom([200, 100, 0, 0]);
    let floors = |text: &str, cost_max| {
        let limit = Limit::owned(spec(text), headroom, &at(0), Fill::Full);
        Class::ALL.map(|class| limit.floor(&at(0), class, cost_max).0)
    };
    assert_eq!(floors("10/s burst 28", 1), [0, 5_600, 8_400, 8_400]);
    assert_eq!(floors("10/s burst 28", 10), [0, 5_600, 8_000, 8_000]);
    assert_eq!(floors("10/s burst 1", 1), [0; 4]);
    assert_eq!(floors("10/s spaced", 1), [0; 4]);
    assert_eq!(floors("10/min", 1), [0; 4]);
    assert_eq!(floors("100/day@UTC", 1), [0, 20_000, 30_000, 30_000]);
}

#[test]
fn a_block_holds_whatever_the_tokens_say() {
    let mut limit = full(spec("10/s burst 10"), &at(0));
    limit.block_until(Mono(2 * SECOND));
    limit.block_until(Mono(SECOND));
    assert!(!limit.is_idle(&at(0)));
    let until = until_is_exact(&limit, &at(0), Need::whole(1));
    assert_eq!(until, Until::At(Mono(2 * SECOND)));
    assert!(try_take(&mut limit, &at(2 * SECOND), 10));
    assert!(!limit.is_idle(&at(3 * SECOND - 1)));
    assert!(limit.is_idle(&at(3 * SECOND)));
}
