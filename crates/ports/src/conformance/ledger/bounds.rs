//! Never too much: the guarantee of each algorithm holds for all askers
//! together, over every interval, whatever they do.

use outflow_core::engine::event::LeaseAnswer;
use outflow_core::limit::{LimitSpec, Rate};
use outflow_core::time::Nanos;

use super::fleet::{Fleet, Habit};
use super::{Case, Harness};
use crate::conformance::guarantee;

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("buckets hold for all", buckets_hold_for_all),
        ("spaced tokens are spaced for all", spaced_for_all),
        ("windows hold for all", windows_hold_for_all),
        ("quotas hold for all", quotas_hold_for_all),
        ("large costs count", large_costs_count),
        ("changed numbers hold", changed_numbers_hold),
        ("a raised rate keeps the gap", a_raised_rate_keeps_the_gap),
        ("lost state is no fresh burst", lost_state_is_no_fresh_burst),
        (
            "what can never fit is refused",
            what_can_never_fit_is_refused,
        ),
        ("a lease is paid in advance", a_lease_is_paid_in_advance),
        ("a cost of before is no cost", a_cost_of_before_is_no_cost),
    ]
}

pub(super) fn spec(text: &str) -> LimitSpec {
    LimitSpec::parse(text).expect("a limit as people write it")
}

/// Careless askers share a limit for a while.
fn hold<H: Harness>(make: &dyn Fn() -> H, limits: &[&str], costs: &[u32], span: Nanos) {
    for text in limits {
        for seed in 0..make().seeds() {
            let spec = spec(text);
            let mut fleet = Fleet::new(make(), &spec, seed);
            for &cost in costs {
                fleet.add(1, Habit::Careless).cost = cost;
            }
            fleet.run(span);
            let kept = guarantee::check(&spec, &fleet.uses);
            assert_eq!(kept, Ok(()), "{text} is exceeded, seed {seed}");
            assert!(fleet.uses.len() > 1, "{text} lets nothing through");
        }
    }
}

fn buckets_hold_for_all<H: Harness>(make: &dyn Fn() -> H) {
    let limits = [
        "1000/s burst 100",
        "1000/s burst 5",
        "100/s burst 3",
        "50/s burst 60",
        "10/s burst 1",
        "3/s burst 2",
    ];
    hold(make, &limits, &[1; 4], Nanos::from_secs(8));
}

fn spaced_for_all<H: Harness>(make: &dyn Fn() -> H) {
    let limits = ["200/s spaced", "40/s spaced", "3/s spaced"];
    hold(make, &limits, &[1; 4], Nanos::from_secs(8));
    hold(make, &limits, &[2; 3], Nanos::from_secs(8));
}

fn windows_hold_for_all<H: Harness>(make: &dyn Fn() -> H) {
    for (count, secs) in [(50, 1), (300, 3), (2_000, 5)] {
        let window = Nanos::from_secs(secs);
        let spec = LimitSpec::SlidingWindow { count, window };
        for seed in 0..make().seeds() {
            let mut fleet = Fleet::new(make(), &spec, seed);
            fleet.add(3, Habit::Careless);
            fleet.add(1, Habit::Greedy);
            fleet.run(Nanos::from_secs(12));
            let kept = guarantee::check(&spec, &fleet.uses);
            assert_eq!(kept, Ok(()), "{count} in {secs} s is exceeded");
            let least = fleet.harness.least(u64::from(count) * 8);
            assert!(
                fleet.uses.len() as u64 * secs > least,
                "two thirds of {count} in {secs} s are used"
            );
        }
    }
}

fn quotas_hold_for_all<H: Harness>(make: &dyn Fn() -> H) {
    let spec = spec("500/min@UTC");
    let mut fleet = Fleet::new(make(), &spec, 1);
    fleet.add(3, Habit::Careless);
    fleet.add(1, Habit::Greedy);
    fleet.run(Nanos::from_secs(125));
    let kept = guarantee::check(&spec, &fleet.uses);
    assert_eq!(kept, Ok(()), "a quota is exceeded");
    let used = fleet.uses.len();
    assert!(used > 500, "the next minute has its own: {used}");
}

fn large_costs_count<H: Harness>(make: &dyn Fn() -> H) {
    let limits = ["1000/s burst 100", "50/s burst 60"];
    hold(make, &limits, &[1, 3, 7, 20], Nanos::from_secs(8));
    hold(make, &["20/s burst 4"], &[4; 3], Nanos::from_secs(8));
}

/// After a change at most the largest burst in force plus the integral of the
/// rate, where old leases are in force until they end.
fn changed_numbers_hold<H: Harness>(make: &dyn Fn() -> H) {
    let changes = [
        ("1000/s burst 100", "100/s burst 10"),
        ("100/s burst 10", "1000/s burst 100"),
        ("10/s burst 1", "200/s burst 50"),
        ("200/s burst 50", "10/s burst 1"),
    ];
    for (before, after) in changes {
        let (before, after) = (spec(before), spec(after));
        let mut fleet = Fleet::new(make(), &before, 2);
        fleet.add(3, Habit::Careless);
        fleet.run(Nanos::from_secs(4));
        let kept = guarantee::check(&before, &fleet.uses);
        assert_eq!(kept, Ok(()), "{before:?} is exceeded");
        let changed_at = fleet.harness.now().mono;
        fleet.reconfigure(&after);
        fleet.run(Nanos::from_secs(4));
        let larger = if before.capacity() > after.capacity() {
            &before
        } else {
            &after
        };
        let kept = guarantee::check(larger, &fleet.uses);
        assert_eq!(kept, Ok(()), "a change is worth a burst: {after:?}");
        let since = fleet.uses.iter().copied();
        let since: Vec<_> = since.filter(|it| it.mono >= changed_at).collect();
        let kept = guarantee::check(&after, &since);
        assert_eq!(kept, Ok(()), "{after:?} is exceeded after a change");
        assert!(!since.is_empty(), "{after:?} lets nothing through");
    }
}

/// The rate over the gap in which it is raised makes up one token: only what is
/// left of the gap gets shorter.
fn a_raised_rate_keeps_the_gap<H: Harness>(make: &dyn Fn() -> H) {
    const TOKEN: u64 = 1_000_000_000;
    let (before, after) = (spec("5/s spaced"), spec("50/s spaced"));
    for late in (0..200).step_by(40) {
        let mut fleet = Fleet::new(make(), &before, 3);
        fleet.add(3, Habit::Greedy);
        fleet.run(Nanos::from_millis(2_000 + late));
        let changed_at = fleet.harness.now().mono;
        fleet.reconfigure(&after);
        fleet.run(Nanos::from_secs(1));
        let uses = fleet.uses.iter().map(|it| it.mono);
        let last = uses.clone().filter(|at| *at < changed_at).max();
        let first = uses.filter(|at| *at >= changed_at).min();
        let (last, first) = (last.expect("some went"), first.expect("more went"));
        let accrued = changed_at.since(last).0 * 5 + first.since(changed_at).0 * 50;
        // Whole nanoseconds.
        assert!(accrued + 100 >= TOKEN, "{late}: {accrued} of a token");
    }
}

fn lost_state_is_no_fresh_burst<H: Harness>(make: &dyn Fn() -> H) {
    for text in [
        "1000/s burst 100",
        "20/s burst 40",
        "10/s burst 1",
        "40/s spaced",
    ] {
        let spec = spec(text);
        let mut fleet = Fleet::new(make(), &spec, 3);
        fleet.add(2, Habit::Careless);
        fleet.add(2, Habit::Greedy);
        for _ in 0..4 {
            fleet.run(Nanos::from_secs(3));
            fleet.harness.lose_state();
        }
        fleet.run(Nanos::from_secs(3));
        let kept = guarantee::check(&spec, &fleet.uses);
        assert_eq!(kept, Ok(()), "a loss is worth a burst: {text}");
        let end = fleet.harness.now().mono;
        let lately = fleet.used_since(end - Nanos::from_secs(1));
        assert!(lately > 0, "{text} goes on after a loss");
    }
    let window = Nanos::from_secs(2);
    let spec = LimitSpec::SlidingWindow { count: 30, window };
    let mut fleet = Fleet::new(make(), &spec, 3);
    fleet.add(3, Habit::Greedy);
    fleet.run(Nanos::from_secs(3));
    fleet.harness.lose_state();
    fleet.run(Nanos::from_secs(6));
    let kept = guarantee::check(&spec, &fleet.uses);
    assert_eq!(kept, Ok(()), "a loss is worth a window");
}

fn what_can_never_fit_is_refused<H: Harness>(make: &dyn Fn() -> H) {
    for text in ["1000/s burst 100", "2/s burst 1", "50/min", "50/min@UTC"] {
        let spec = spec(text);
        let mut fleet = Fleet::new(make(), &spec, 4);
        fleet.add(1, Habit::Greedy);
        fleet.add(1, Habit::Idle).cost = spec.capacity() + 1;
        let answer = fleet.hear(spec.capacity() + 1);
        let LeaseAnswer::Refused { retry_after } = answer else {
            unreachable!("{text} granted what can never fit: {answer:?}");
        };
        assert!(
            retry_after >= Nanos::from_millis(100),
            "{text}: who can never fit asks all the time"
        );
        let from = fleet.harness.now().mono;
        fleet.run(Nanos::from_secs(3));
        let used = fleet.used_since(from);
        assert!(used > 0, "{text}: others wait for what can never fit");
    }
}

/// A burst that is lowered below a cost that fitted once is of use to others.
fn a_cost_of_before_is_no_cost<H: Harness>(make: &dyn Fn() -> H) {
    let (before, after) = (spec("1000/s burst 100"), spec("1000/s burst 10"));
    let mut fleet = Fleet::new(make(), &before, 6);
    fleet.add(1, Habit::Greedy).cost = 60;
    fleet.run(Nanos::from_secs(1));
    assert!(!fleet.uses.is_empty(), "60 fit into 100");
    fleet.reconfigure(&after);
    fleet.add(1, Habit::Greedy);
    let from = fleet.harness.now().mono;
    fleet.run(Nanos::from_secs(2));
    assert!(
        fleet.used_since(from) > 0,
        "others wait for what fitted once"
    );
}

/// A lease lives no longer than is paid for.
fn a_lease_is_paid_in_advance<H: Harness>(make: &dyn Fn() -> H) {
    let (rate, burst) = (Rate::per_second(1_000), 100);
    let spec = LimitSpec::TokenBucket { rate, burst };
    let mut fleet = Fleet::new(make(), &spec, 5);
    fleet.add(1, Habit::Idle);
    fleet.run(Nanos::from_secs(2));
    let answer = fleet.hear(burst);
    let LeaseAnswer::Leased { tokens, life, .. } = answer else {
        unreachable!("a full bucket leases: {answer:?}");
    };
    assert!(life <= Nanos::from_millis(300), "a lease is short");
    let paid = rate.time_for(u64::from(burst - tokens));
    assert!(
        life <= paid,
        "{tokens} tokens live {life}, which nobody paid"
    );
}
