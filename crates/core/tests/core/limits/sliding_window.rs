//! At most `count` in any window, and 98 % of it when there is demand.

use outflow_core::limit::{LimitSpec, Need, Until};
use outflow_core::time::Nanos;
use proptest::prelude::*;

use super::{
    DAY, HOUR, MINUTE, SECOND, at, cases, fits_from, full, spec, try_take, until_is_exact,
};

#[derive(Clone, Debug)]
enum Op {
    /// In thousandths of a window.
    Wait(u64),
    /// In hundredths of the count.
    Take(u32),
    TakeWhenReady(u32),
    Change(u32, u64),
}

fn counts() -> impl Strategy<Value = u32> {
    prop_oneof![1..20_u32, 1..256_u32, 257..5_000_u32]
}

fn windows() -> impl Strategy<Value = u64> {
    prop_oneof![1..200_u64, Just(MINUTE), Just(HOUR), 1..DAY]
}

fn ops(changes: u32) -> impl Strategy<Value = Vec<Op>> {
    let waits = prop_oneof![0..3_u64, 0..40_u64, 0..1_500_u64];
    let op = prop_oneof![
        6 => waits.prop_map(Op::Wait),
        6 => (0..30_u32).prop_map(Op::Take),
        4 => (0..30_u32).prop_map(Op::TakeWhenReady),
        changes => (counts(), windows()).prop_map(|(count, window)| Op::Change(count, window)),
    ];
    prop::collection::vec(op, 1..100)
}

struct Grant {
    time: u64,
    cost: u32,
    numbers: usize,
}

/// What was in force from `since` on.
struct Numbers {
    count: u32,
    window: u64,
    since: u64,
}

/// Whether the grant can still be known when `numbers` is in force: no change
/// between found it outside the shorter of the windows before and after.
fn is_known(grant: &Grant, numbers: usize, all: &[Numbers]) -> bool {
    let changes = all[grant.numbers..=numbers].windows(2);
    changes.into_iter().all(|pair| {
        let remembered = pair[0].window.min(pair[1].window);
        grant.time + remembered > pair[1].since
    })
}

fn run(count: u32, window: u64, ops: Vec<Op>) -> (Vec<Grant>, Vec<Numbers>) {
    let sliding = |count, window| LimitSpec::SlidingWindow {
        count,
        window: Nanos(window),
    };
    let mut limit = full(sliding(count, window), &at(0));
    let mut all = vec![Numbers {
        count,
        window,
        since: 0,
    }];
    let mut grants = Vec::new();
    let mut now = 0_u64;
    for op in ops {
        let (count, window) = all.last().map(|last| (last.count, last.window)).unwrap();
        let share = |percent: u32| (count * percent / 100).max(1);
        let mut wanted = None;
        match op {
            Op::Wait(permille) => now += window.div_ceil(1_000) * permille,
            Op::Take(percent) => wanted = Some(share(percent)),
            Op::TakeWhenReady(percent) => {
                let cost = share(percent);
                if let Until::At(time) = until_is_exact(&limit, &at(now), Need::whole(cost)) {
                    now = time.0;
                }
                wanted = Some(cost);
            }
            Op::Change(count, window) => {
                limit.reconfigure(&at(now), sliding(count, window));
                all.push(Numbers {
                    count,
                    window,
                    since: now,
                });
            }
        }
        if let Some(cost) = wanted
            && try_take(&mut limit, &at(now), cost)
        {
            let numbers = all.len() - 1;
            grants.push(Grant {
                time: now,
                cost,
                numbers,
            });
        }
    }
    (grants, all)
}

fn holds(grants: &[Grant], all: &[Numbers]) {
    for (j, last) in grants.iter().enumerate() {
        let numbers = &all[last.numbers];
        let inside = grants[..=j]
            .iter()
            .rev()
            .take_while(|grant| grant.time + numbers.window > last.time);
        let known = inside.filter(|grant| is_known(grant, last.numbers, all));
        let sum: u64 = known.map(|grant| u64::from(grant.cost)).sum();
        assert!(
            sum <= u64::from(numbers.count),
            "{sum} of {}",
            numbers.count
        );
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn at_most_count_in_every_window(count in counts(), window in windows(), ops in ops(0)) {
        let (grants, all) = run(count, window, ops);
        holds(&grants, &all);
        // The same without any notion of what is known: every stretch that
        // begins at a grant.
        for (i, first) in grants.iter().enumerate() {
            let inside = grants[i..].iter().take_while(|grant| grant.time < first.time + window);
            let sum: u64 = inside.map(|grant| u64::from(grant.cost)).sum();
            prop_assert!(sum <= u64::from(count));
        }
    }

    #[test]
    fn at_most_the_larger_count_in_windows_across_a_change(
        count in counts(),
        window in windows(),
        ops in ops(1),
    ) {
        let (grants, all) = run(count, window, ops);
        holds(&grants, &all);
    }
}

/// How long demand lasts, in windows.
const WINDOWS: u64 = 6;

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn uses_98_percent_when_there_is_demand(
        count in 257..500_u32,
        window in prop_oneof![Just(MINUTE), Just(HOUR), Just(DAY), SECOND..DAY],
        trickles in prop::collection::vec(0..3_000_u64, 1..30),
    ) {
        let sliding = LimitSpec::SlidingWindow { count, window: Nanos(window) };
        let mut limit = full(sliding, &at(0));
        let (mut now, mut taken) = (at(0), 0_u64);
        let spacing = window / u64::from(count);
        let mut trickles = trickles.iter().cycle();
        while now.mono.0 < WINDOWS * window {
            // In the first window demand is scattered, so that slots are wide.
            if now.mono.0 < window {
                let wait = spacing * trickles.next().unwrap() / 2_000;
                now = at(now.mono.0 + wait);
            }
            now = fits_from(&limit, &now, Need::whole(1)).expect("a time");
            if now.mono.0 >= window {
                taken += 1;
            }
            prop_assert!(try_take(&mut limit, &now, 1));
        }
        let possible = u64::from(count) * (WINDOWS - 1);
        prop_assert!(taken * 100 >= possible * 98, "{taken} of {possible}");
    }

    #[test]
    fn uses_98_percent_of_steady_demand(count in 257..500_u32, window in SECOND..DAY) {
        let sliding = LimitSpec::SlidingWindow { count, window: Nanos(window) };
        let mut limit = full(sliding, &at(0));
        let step = window * 9 / 10 / u64::from(count);
        let takes = (0..WINDOWS * window).step_by(usize::try_from(step).unwrap());
        let taken = takes.filter(|time| try_take(&mut limit, &at(*time), 1)).count() as u64;
        prop_assert!(taken * 100 >= u64::from(count) * WINDOWS * 98);
    }
}

#[test]
fn one_per_day() {
    let mut limit = full(spec("1/day"), &at(0));
    for day in 0..400 {
        if day > 0 {
            assert!(!try_take(&mut limit, &at(day * DAY - 1), 1));
        }
        assert!(try_take(&mut limit, &at(day * DAY), 1));
    }
}

#[test]
fn admits_when_the_window_does_and_not_at_the_full_minute() {
    let mut limit = full(spec("2/min"), &at(0));
    assert!(try_take(&mut limit, &at(50 * SECOND), 1));
    assert!(try_take(&mut limit, &at(55 * SECOND), 1));
    assert!(!try_take(&mut limit, &at(60 * SECOND), 1));
    let until = until_is_exact(&limit, &at(60 * SECOND), Need::whole(1));
    assert_eq!(until, Until::At(at(110 * SECOND).mono));
    assert!(limit.is_idle(&at(115 * SECOND)));
}

#[test]
fn a_large_window_stays_small() {
    let mut limit = full(spec("50k/day"), &at(0));
    for i in 0..200_000 {
        let _ = try_take(&mut limit, &at(i * DAY / 50_000), 1);
    }
    assert!(format!("{limit:?}").matches("leaves_at").count() <= 66);
}
