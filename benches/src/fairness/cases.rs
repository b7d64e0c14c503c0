//! The cases: small ones in which the obvious schedules fail, and large ones
//! with 100,000 flows over several full levels.

use outflow_core::class::Class;
use outflow_core::entropy::Entropy;
use outflow_core::limit::spec::{Headroom, LimitSpec, Rate};
use outflow_core::time::Nanos;

use super::run::{Case, Change, Flow};

/// What a case must reach.
pub struct Goal {
    /// The lowest use of a limit that the optimum fills.
    pub use_min: f64,
    /// The worst flow against its fair share.
    pub share_min: f64,
    /// Looks at a flow per send.
    pub visits: f64,
}

/// All cases with their goals. `large` adds those with 100,000 flows.
pub fn all(large: bool) -> Vec<(Case, Goal)> {
    let mut cases = small();
    cases.extend(classes_and_changes());
    cases.extend(random_sets());
    if large {
        cases.extend(levels());
    }
    cases
}

fn small() -> Vec<(Case, Goal)> {
    let exact = || goal(0.99, 0.99, 1.1);
    vec![
        (
            case(
                "A, B, AB",
                &[bucket(100, 10), bucket(70, 10)],
                &[&[0], &[1], &[0, 1]],
            ),
            exact(),
        ),
        (
            case(
                "chain AB BC CD and singles",
                &[
                    bucket(100, 10),
                    bucket(80, 10),
                    bucket(60, 10),
                    bucket(40, 10),
                ],
                &[&[0, 1], &[1, 2], &[2, 3], &[0], &[1], &[2], &[3]],
            ),
            exact(),
        ),
        (
            case(
                "ABCD and singles",
                &[
                    bucket(100, 10),
                    bucket(80, 10),
                    bucket(60, 10),
                    bucket(40, 10),
                ],
                &[&[0, 1, 2, 3], &[0], &[1], &[2], &[3]],
            ),
            exact(),
        ),
        (costs(), goal(0.98, 0.98, 1.2)),
        (
            case(
                "concurrency 8 and a bucket of burst 4",
                &[slots(8), bucket(60, 4)],
                &[&[0], &[1], &[0, 1], &[0, 1], &[0], &[1]],
            ),
            goal(0.98, 0.92, 2.0),
        ),
        (
            case(
                "two concurrency limits and a bucket",
                &[slots(8), slots(6), bucket(50, 10)],
                &[&[0], &[1], &[0, 1], &[0, 1, 2], &[2], &[1, 2]],
            ),
            goal(0.97, 0.96, 1.4),
        ),
        (
            case(
                "concurrency, a bucket and a window",
                &[slots(8), bucket(50, 10), window(400, 10)],
                &[&[0], &[1], &[2], &[0, 1, 2], &[0, 2], &[1, 2]],
            ),
            goal(0.96, 0.85, 1.4),
        ),
        (
            case(
                "two limits of burst 1",
                &[bucket(10, 1), bucket(7, 1)],
                &[&[0], &[1], &[0, 1]],
            ),
            goal(0.865, 0.82, 1.9),
        ),
        (
            case(
                "four limits of burst 1",
                &[bucket(10, 1), bucket(9, 1), bucket(8, 1), bucket(7, 1)],
                &[&[0, 1, 2, 3], &[0], &[1], &[2], &[3]],
            ),
            goal(0.57, 0.56, 1.9),
        ),
    ]
}

fn costs() -> Case {
    let mut case = case(
        "costs 1, 5 and 10 at burst 20",
        &[bucket(100, 20), bucket(80, 20)],
        &[&[0], &[0], &[0, 1], &[0, 1], &[1], &[1]],
    );
    for (flow, cost) in case.flows.iter_mut().zip([1, 10, 5, 10, 1, 5]) {
        flow.cost = cost;
    }
    case
}

fn classes_and_changes() -> Vec<(Case, Goal)> {
    let limits = [bucket(100, 20), bucket(60, 20)];
    let flows: &[&[usize]] = &[&[0], &[1], &[0, 1], &[0, 1]];
    let mut storm = case("storm of low beside high", &limits, flows);
    for (index, flow) in storm.flows.iter_mut().enumerate() {
        flow.class = if index % 2 == 0 {
            Class::High
        } else {
            Class::Low
        };
    }
    let mut pause = case("pause of 60 s", &limits, flows);
    pause.changes = vec![Change::Pause {
        limit: 1,
        at: Nanos::from_secs(20),
        length: Nanos::from_secs(60),
    }];
    pause.warm_up = Nanos::from_secs(90);
    let mut cut = case("rate cut to a tenth", &limits, flows);
    cut.changes = vec![Change::Set {
        limit: 0,
        at: Nanos::from_secs(20),
        spec: bucket(10, 20),
    }];
    cut.warm_up = Nanos::from_secs(40);
    // The optimum is worked out with the numbers in force while it is measured.
    cut.limits[0] = bucket(10, 20);
    cut.changes.insert(
        0,
        Change::Set {
            limit: 0,
            at: Nanos(1),
            spec: bucket(100, 20),
        },
    );
    vec![
        (storm, goal(0.989, 0.94, 1.1)),
        (pause, goal(0.989, 0.94, 1.1)),
        (cut, goal(0.989, 0.94, 1.1)),
    ]
}

fn random_sets() -> Vec<(Case, Goal)> {
    (0..12)
        .map(|seed| {
            let mut random = Entropy(0xfa12 + seed);
            let count = random.between(3, 8) as usize;
            let limits: Vec<LimitSpec> = (0..count)
                .map(|_| bucket(random.between(10, 200) as u32, random.between(2, 20) as u32))
                .collect();
            let flows: Vec<Vec<usize>> = (0..random.between(5, 30))
                .map(|_| {
                    let mut set: Vec<usize> = (0..random.between(1, 4))
                        .map(|_| random.between(0, count as u64 - 1) as usize)
                        .collect();
                    set.sort_unstable();
                    set.dedup();
                    set
                })
                .collect();
            let flows: Vec<&[usize]> = flows.iter().map(Vec::as_slice).collect();
            let case = case(&format!("random sets {seed}"), &limits, &flows);
            (case, goal(0.86, 0.80, 2.0))
        })
        .collect()
}

/// Flows over levels of limits: each takes one of every level at random.
fn leveled(name: &str, levels: &[(usize, u64, u64)], seconds: u64) -> Case {
    let mut random = Entropy(0x1e7e15);
    let mut limits = Vec::new();
    let mut starts = Vec::new();
    for &(count, low, high) in levels {
        starts.push(limits.len());
        for _ in 0..count {
            let rate = random.between(low, high) as u32;
            limits.push(bucket(rate, (rate / 5).max(3)));
        }
    }
    let flows = (0..100_000)
        .map(|_| Flow {
            limits: starts
                .iter()
                .zip(levels)
                .map(|(start, &(count, ..))| start + random.between(0, count as u64 - 1) as usize)
                .collect(),
            cost: 1,
            class: Class::Normal,
        })
        .collect();
    Case {
        name: name.to_owned(),
        limits,
        headroom: Headroom::default(),
        flows,
        hold: Nanos::from_millis(100),
        warm_up: Nanos::from_secs(seconds / 3),
        length: Nanos::from_secs(seconds),
        changes: Vec::new(),
    }
}

fn levels() -> Vec<(Case, Goal)> {
    let mut beside = leveled(
        "100,000 on global+google beside 100 on global",
        &[(1, 10_000, 10_000), (1, 2_000, 2_000)],
        300,
    );
    for flow in beside.flows.iter_mut().skip(99_900) {
        flow.limits.truncate(1);
    }
    beside.length = Nanos::from_secs(600);
    vec![
        (
            leveled(
                "isps and accounts",
                &[(11, 500, 2_000), (50, 100, 500)],
                300,
            ),
            goal(0.99, 0.96, 1.2),
        ),
        (
            leveled(
                "accounts and tenants",
                &[(50, 100, 500), (1_000, 8, 25)],
                300,
            ),
            goal(0.963, 0.78, 1.7),
        ),
        (
            leveled(
                "isps, accounts and tenants",
                &[(11, 800, 2_000), (50, 150, 500), (1_000, 8, 25)],
                300,
            ),
            goal(0.899, 0.71, 1.6),
        ),
        (
            leveled(
                "four levels",
                &[
                    (1, 12_000, 12_000),
                    (11, 800, 2_000),
                    (50, 150, 500),
                    (1_000, 8, 25),
                ],
                300,
            ),
            goal(0.85, 0.0, 1.2),
        ),
        (beside, goal(0.97, 0.5, 2.0)),
    ]
}

fn case(name: &str, limits: &[LimitSpec], flows: &[&[usize]]) -> Case {
    Case {
        name: name.to_owned(),
        limits: limits.to_vec(),
        headroom: Headroom::default(),
        flows: flows
            .iter()
            .map(|limits| Flow {
                limits: limits.to_vec(),
                cost: 1,
                class: Class::Normal,
            })
            .collect(),
        hold: Nanos::from_millis(100),
        warm_up: Nanos::from_secs(20),
        length: Nanos::from_secs(200),
        changes: Vec::new(),
    }
}

fn goal(use_min: f64, share_min: f64, visits: f64) -> Goal {
    Goal {
        use_min,
        share_min,
        visits,
    }
}

fn bucket(per_second: u32, burst: u32) -> LimitSpec {
    LimitSpec::TokenBucket {
        rate: Rate::per_second(per_second),
        burst,
    }
}

fn slots(slots: u32) -> LimitSpec {
    LimitSpec::Concurrency { slots }
}

fn window(count: u32, seconds: u64) -> LimitSpec {
    LimitSpec::SlidingWindow {
        count,
        window: Nanos::from_secs(seconds),
    }
}
