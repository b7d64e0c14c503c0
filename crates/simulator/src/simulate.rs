//! One simulation from start to verdict.

use outflow_core::engine::HEADS_MAX;
use outflow_core::time::Nanos;

use crate::checkers::{Checkers, memory};
use crate::recorder::Recorder;
use crate::report::Outcome;
use crate::scenario::Scenario;
use crate::summary::Summary;
use crate::trace::{Observer, Trace, Violation};
use crate::world::World;
use crate::world::sabotage::Sabotage;

/// Checkers and recorder side by side.
struct Watch {
    checkers: Checkers,
    recorder: Recorder,
}

impl Observer for Watch {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        self.checkers.observe(at, trace);
        self.recorder.observe(at, trace);
    }
}

/// Runs a scenario, with what it is compared with, and judges it.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome, String> {
    let (summary, mut violations) = run(scenario, seed)?;
    let baseline = match scenario.baseline() {
        Some(other) => Some(run(&other, seed)?.0.metrics()),
        None => None,
    };
    let mut verdicts = scenario.expect.check(&summary.metrics(), baseline.as_ref());
    if let Some(calm) = scenario.calm() {
        let (summary, more) = run(&calm, seed)?;
        violations.extend(more);
        verdicts.extend(scenario.expect_calm.check(&summary.metrics(), None));
    }
    Ok(Outcome {
        title: scenario.title.clone(),
        summary,
        verdicts,
        violations,
    })
}

/// Runs a scenario once.
pub fn run(scenario: &Scenario, seed: u64) -> Result<(Summary, Vec<Violation>), String> {
    run_broken(scenario, seed, None)
}

/// Runs a scenario once, with nodes that are broken in one way or in none.
pub fn run_broken(
    scenario: &Scenario,
    seed: u64,
    sabotage: Option<Sabotage>,
) -> Result<(Summary, Vec<Violation>), String> {
    let later = scenario.actions.iter().filter_map(|it| it.account.as_ref());
    let accounts = scenario.accounts.iter().chain(later);
    let are_kept = accounts.clone().any(|account| account.tenant.is_some());
    let sessions: u32 = accounts
        .map(|account| account.count.max(1) * account.connections.unwrap_or(8))
        .sum();
    let by_domain = scenario.traffic.iter().any(|source| source.domains > 0);
    let bounds = memory::Bounds {
        heads_per_flow: u64::from(HEADS_MAX),
        // Beside those of its domains, a destination has flows of its own.
        flows_per_live: if by_domain { 2 } else { 1 },
        lanes_per_flow: if are_kept { 2 } else { 1 },
        // A store that fails makes callers come again with what was never
        // accepted.
        flows_extra: if scenario.faults.store.fails.0 > 0.0
            || scenario.faults.store.disk.fail_commits()
        {
            1_000
        } else {
            64
        },
        // What is learnt is learnt for pairs of accounts and networks, and for
        // few things besides.
        limits_extra: if scenario.learn { 1_000 } else { 0 },
        in_flight: u64::from(sessions) * u64::from(scenario.nodes.max(1)),
        sessions: u64::from(sessions),
        queued: 100_000,
    };
    let watch = Watch {
        checkers: Checkers::for_scenario(scenario, bounds),
        recorder: Recorder::default(),
    };
    let mut world = World::new(scenario, seed, watch)?;
    if let Some(sabotage) = sabotage {
        world = world.sabotaged(sabotage);
    }
    let (mut watch, end, mut violations) = world.run();
    violations.extend(watch.checkers.finish(end, scenario.drain.is_some()));
    Ok((watch.recorder.finish(&scenario.name, seed, end), violations))
}
