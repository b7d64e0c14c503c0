//! The pool gate against simulated accounts, lanes and networks. At full size
//! they are part of `outflow-bench fairness`.
#![allow(clippy::indexing_slicing, clippy::expect_used)]

mod bucket;
mod case;
mod disturb;
mod pace;
mod relays;
mod rest;
mod rules;
mod sim;
mod takeover;
mod tally;

use case::{Case, Findings, Load, random_case};
use sim::Sim;

fn run(case: Case, seed: u64) -> Findings {
    Sim::new(case, seed, false).run()
}

/// What holds for every case: all is drained, and nearly all that could be
/// sent was.
fn expect_full_use(case: Case, worst_lane: f64, openings_per_1000: f64) -> Findings {
    let findings = run(case, 1);
    assert!(findings.drained, "{findings:?}");
    assert!(findings.of_possible >= 0.99, "{findings:?}");
    assert!(findings.worst_lane >= worst_lane, "{findings:?}");
    assert!(
        findings.openings_per_1000 <= openings_per_1000,
        "{findings:?}"
    );
    findings
}

#[test]
fn saturated_accounts_are_used_in_full_and_lanes_share_evenly() {
    let findings = expect_full_use(Case::new(50, 10, Load::Saturated), 0.98, 25.0);
    assert!(findings.accounts.0 >= 0.98, "{findings:?}");
    assert!(findings.searches_per_send <= 3.0, "{findings:?}");
}

#[test]
fn saturated_products_are_used_in_full() {
    let mut case = Case::new(50, 10, Load::Saturated).rate(20, 5);
    case.product = Some((1_000, 2));
    expect_full_use(case, 0.98, 15.0);
}

#[test]
fn one_hot_lane_gets_all_that_others_leave() {
    expect_full_use(Case::new(50, 10, Load::Hot), 0.9, 25.0);
}

#[test]
fn at_70_percent_all_is_sent() {
    expect_full_use(Case::new(50, 10, Load::Percent(70)), 0.97, 20.0);
}

#[test]
fn blocked_accounts_are_stood_in_for() {
    let mut case = Case::new(50, 10, Load::Percent(70));
    case.blocked_percent = 10;
    expect_full_use(case, 0.97, 20.0);
}

#[test]
fn failing_connects_cost_openings_not_sends() {
    let mut case = Case::new(50, 10, Load::Percent(70));
    case.connects_fail_percent = 20;
    expect_full_use(case, 0.97, 25.0);
}

#[test]
fn slow_connects_and_short_sessions_still_fill_fast_accounts() {
    let mut case = Case::new(10, 10, Load::Saturated)
        .rate(100, 20)
        .sessions(60, 5);
    case.connect_ms = (500, 500);
    expect_full_use(case, 0.97, 210.0);
}

#[test]
fn few_accounts_serve_many_lanes() {
    let mut case = Case::new(4, 100, Load::Percent(70))
        .rate(20, 5)
        .sessions(25, 100);
    case.measured_s = 100;
    expect_full_use(case, 0.9, 60.0);
}

#[test]
fn random_pools_keep_their_invariants_and_repeat_exactly() {
    for seed in 0..600 {
        let case = random_case(seed);
        let checked = Sim::new(case, seed, true).run();
        assert!(checked.drained, "seed {seed}: {case:?}");
        let again = Sim::new(case, seed, false).run();
        assert_eq!(checked.trace, again.trace, "seed {seed}");
    }
}
