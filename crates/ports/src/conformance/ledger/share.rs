//! Never too little: what a limit allows is used if somebody wants it, and the
//! urgent find something.

use outflow_core::class::Class;
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::limit::{Headroom, LimitSpec};
use outflow_core::pool::ClassMask;
use outflow_core::time::Nanos;

use super::bounds::spec;
use super::fleet::{Fleet, Habit};
use super::{Case, Harness};
use crate::conformance::guarantee;

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("a fast limit is used up", a_fast_limit_is_used_up),
        ("small bursts are of use", small_bursts_are_of_use),
        ("nobody is left out", nobody_is_left_out),
        ("a lower class gets its part", a_lower_class_gets_its_part),
        ("what is owed is told", what_is_owed_is_told),
        ("urgent tokens are kept", urgent_tokens_are_kept),
        ("a quota's floor melts", a_quotas_floor_melts),
    ]
}

/// Greedy askers get at least so many thousandths of a limit, and no more than
/// all of it.
fn used_up<H: Harness>(make: &dyn Fn() -> H, text: &str, askers: usize, per_second: u64) {
    let spec = spec(text);
    let mut fleet = Fleet::new(make(), &spec, 6);
    fleet.add(askers, Habit::Greedy);
    fleet.run(Nanos::from_secs(3));
    let from = fleet.harness.now().mono;
    fleet.run(Nanos::from_secs(10));
    let kept = guarantee::check(&spec, &fleet.uses);
    assert_eq!(kept, Ok(()), "{text} is exceeded by greed");
    let used = fleet.used_since(from);
    let least = fleet.harness.least(per_second * 10);
    assert!(
        used >= least,
        "{askers} askers used {used} of {text} in 10 s"
    );
}

fn a_fast_limit_is_used_up<H: Harness>(make: &dyn Fn() -> H) {
    for askers in [1, 4, 16] {
        used_up(make, "1000/s burst 100", askers, 980);
    }
    used_up(make, "100/s burst 10", 4, 98);
    used_up(make, "50/s burst 100", 4, 49);
}

fn small_bursts_are_of_use<H: Harness>(make: &dyn Fn() -> H) {
    let late = make().late();
    for (text, per_second) in [
        ("10/s burst 1", 9),
        ("1000/s burst 20", 900),
        ("40/s spaced", 36),
        ("500/s spaced", 450),
    ] {
        // Who comes late for a spaced token comes late for all after it.
        let gap = spec(text).shape().rate.expect("a rate").time_for(1);
        let per_second = per_second * gap.0 / (gap + late).0;
        for askers in [1, 4] {
            used_up(make, text, askers, per_second);
        }
    }
}

fn nobody_is_left_out<H: Harness>(make: &dyn Fn() -> H) {
    for text in [
        "1000/s burst 100",
        "40/s spaced",
        "10/s burst 1",
        "3000/min",
    ] {
        let mut fleet = Fleet::new(make(), &spec(text), 7);
        fleet.add(4, Habit::Greedy);
        fleet.run(Nanos::from_secs(20));
        let shares: Vec<u64> = fleet.askers.iter().map(|asker| asker.spent).collect();
        let all: u64 = shares.iter().sum();
        let least = shares.iter().min().copied().unwrap_or(0);
        // An even share would be a quarter.
        assert!(least * 16 >= all, "{text} is shared as {shares:?}");
    }
}

/// One asker of a low class beside three that take all there is for a high one.
fn a_lower_class_gets_its_part<H: Harness>(make: &dyn Fn() -> H) {
    let window = Nanos::from_secs(2);
    let sliding = LimitSpec::SlidingWindow { count: 200, window };
    let texts = [
        "1000/s burst 100",
        "100/s burst 10",
        "40/s spaced",
        "10/s burst 1",
    ];
    for spec in texts.map(spec).into_iter().chain([sliding]) {
        let mut fleet = Fleet::new(make(), &spec, 7);
        fleet.add(4, Habit::Greedy);
        for asker in fleet.askers.iter_mut().take(3) {
            asker.class = Class::Critical;
        }
        let low = fleet.askers.last_mut().expect("four were added");
        low.class = Class::Low;
        fleet.run(Nanos::from_secs(5));
        let before: Vec<u64> = fleet.askers.iter().map(|asker| asker.spent).collect();
        fleet.run(Nanos::from_secs(40));
        let spent = fleet.askers.iter().zip(before);
        let spent: Vec<u64> = spent.map(|(asker, before)| asker.spent - before).collect();
        let all: u64 = spent.iter().sum();
        let low = spent.last().copied().unwrap_or(0);
        // 2 %, less what the ends of the stretch may cost.
        assert!(low * 1_000 >= all * 16, "{spec:?} is shared as {spent:?}");
        let kept = guarantee::check(&spec, &fleet.uses);
        assert_eq!(kept, Ok(()), "{spec:?} is exceeded by what is owed");
    }
}

/// A class that waits where a higher one asks is not leased anything itself: the
/// node is told what it owes that class of what others were granted.
fn what_is_owed_is_told<H: Harness>(make: &dyn Fn() -> H) {
    let mut fleet = Fleet::new(make(), &spec("1000/s burst 100"), 7);
    fleet.add(3, Habit::Greedy);
    fleet.add(1, Habit::Idle).also = ClassMask::of(Class::Low);
    fleet.run(Nanos::from_secs(3));
    fleet.hear(1);
    fleet.run(Nanos::from_secs(2));
    let mut told = 0;
    for _ in 0..50 {
        if let LeaseAnswer::Leased { owed, .. } = fleet.hear(1) {
            let [.., low] = owed;
            told += low;
        }
    }
    assert!(told >= 10, "{told} of some 40 tokens were earned and told");
}

fn urgent_tokens_are_kept<H: Harness>(make: &dyn Fn() -> H) {
    let spec = spec("1000/s burst 100");
    let mut fleet = Fleet::new(make(), &spec, 8);
    fleet.keep(Headroom([300, 0, 0, 0]));
    fleet.add(3, Habit::Greedy);
    for asker in &mut fleet.askers {
        asker.class = Class::Low;
    }
    fleet.run(Nanos::from_secs(2));
    let from = fleet.harness.now().mono;
    fleet.run(Nanos::from_secs(5));
    let used = fleet.used_since(from);
    let least = fleet.harness.least(4_900);
    assert!(used >= least, "headroom costs no rate: {used} in 5 s");
    let urgent = fleet.add(1, Habit::Idle);
    urgent.class = Class::Critical;
    let answer = fleet.hear(30);
    let LeaseAnswer::Leased { tokens, .. } = answer else {
        unreachable!("the urgent find nothing: {answer:?}");
    };
    assert!(tokens >= 25, "the urgent find {tokens} of 30");
    fleet.run(Nanos::from_secs(1));
    let kept = guarantee::check(&spec, &fleet.uses);
    assert_eq!(kept, Ok(()), "headroom is within the burst");
}

fn a_quotas_floor_melts<H: Harness>(make: &dyn Fn() -> H) {
    let spec = spec("600/min@UTC");
    let mut fleet = Fleet::new(make(), &spec, 9);
    fleet.keep(Headroom([500, 0, 0, 0]));
    fleet.add(2, Habit::Greedy);
    // To the next full minute, so that a whole one is ahead.
    let minute = 60_000_000_000;
    let into = fleet.harness.now().wall.0.rem_euclid(minute);
    fleet.run(Nanos(into.abs_diff(minute)));
    let from = fleet.harness.now().mono;
    fleet.run(Nanos::from_secs(20));
    let early = fleet.used_since(from);
    assert!(
        (fleet.harness.least(200)..=500).contains(&early),
        "of a kept half a third melted: {early}"
    );
    fleet.run(Nanos::from_secs(38));
    let late = fleet.used_since(from);
    let least = fleet.harness.least(570);
    assert!(late >= least, "in the end all of it is used: {late}");
    let kept = guarantee::check(&spec, &fleet.uses);
    assert_eq!(kept, Ok(()), "a quota is exceeded");
}
