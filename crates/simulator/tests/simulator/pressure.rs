//! A tenth of the accounts is blocked: the others keep their rate, or drag one
//! another down.

use outflow_simulator::scenario::Scenario;
use outflow_simulator::scenario::library::shipped;
use outflow_simulator::simulate::{run, run_broken};
use outflow_simulator::summary::Summary;
use outflow_simulator::trace::Violation;
use outflow_simulator::traffic::pattern::Pattern;
use outflow_simulator::world::sabotage::Sabotage;

const SEED: u64 = 1;

fn whole() -> Scenario {
    shipped("cascade").unwrap().unwrap()
}

/// The shipped scenario with a fifth of its accounts and traffic.
fn cascade() -> Scenario {
    let mut scenario = whole();
    for account in &mut scenario.accounts {
        account.count /= 5;
    }
    for source in &mut scenario.traffic {
        if let Pattern::Poisson { rate, .. } = &mut source.arrive {
            rate.rate.count /= 5;
        }
    }
    scenario
}

fn lines(violations: &[Violation]) -> String {
    let first = violations.iter().take(10);
    first
        .map(|it| format!("\n  {} at {}: {}", it.checker, it.at, it.what))
        .collect()
}

fn metric(summary: &Summary, name: &str) -> f64 {
    summary.metrics().get(name).copied().unwrap()
}

#[test]
fn a_tenth_blocked_costs_a_tenth() {
    let scenario = whole();
    let (summary, violations) = run(&scenario, SEED).unwrap();
    assert!(violations.is_empty(), "{}", lines(&violations));
    let verdicts = scenario.expect.check(&summary.metrics(), None);
    let missed: Vec<_> = verdicts.iter().filter(|it| !it.held).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn accounts_that_fill_up_to_their_limit_are_noticed() {
    let (summary, violations) = run_broken(&cascade(), SEED, Some(Sabotage::FillsUp)).unwrap();
    let spoke = |it: &Violation| it.checker == "pressure" && it.what.contains("while others wait");
    assert!(violations.iter().any(spoke), "{}", lines(&violations));
    // Their own limits still hold: nobody else is refused.
    assert!(violations.iter().all(|it| it.checker == "pressure"));
    assert!(metric(&summary, "pressure.kept") > 0.92);
}

#[test]
fn handing_the_share_of_the_blocked_to_the_others_blocks_them_too() {
    let (summary, violations) =
        run_broken(&cascade(), SEED, Some(Sabotage::Redistributes)).unwrap();
    let spoke = |it: &Violation| it.checker == "pressure" && it.what.contains("while others wait");
    assert!(violations.iter().any(spoke), "{}", lines(&violations));
    let sound = run(&cascade(), SEED).unwrap().0;
    let (kept, throttled) = (
        metric(&summary, "pressure.kept"),
        metric(&summary, "throttled"),
    );
    assert!(kept < 0.8, "the pool kept {kept} of its rate");
    assert!(throttled > 10.0 * metric(&sound, "throttled"));
}
