//! The real store under simulated nodes: silent when it is sound, whatever its
//! disk does, and found out when it is broken on purpose.

use std::panic::catch_unwind;

use outflow_simulator::scenario::Scenario;
use outflow_simulator::scenario::library::SHIPPED;
use outflow_simulator::scenario::random::{random_faults, random_faults_on};
use outflow_simulator::scenario::store::StoreKind;
use outflow_simulator::simulate::{run, run_broken};
use outflow_simulator::trace::Violation;
use outflow_simulator::world::sabotage::Sabotage;

/// Two pools, so that a message without its name goes astray; a trickle, so that
/// bodies are dead for long in segments that are still written to; crashes.
const STAGE: &str = r#"
title = "A small stage for a store"
duration = "2min"
drain = "5d"
store = { kind = "real", files = "small" }

[[account]]
name = "api-1"
sessions = "slots"

[[account]]
name = "api-2"
pool = "second"
sessions = "slots"

[[network]]
name = "google"
destinations = ["isp:google"]
protocol = "http"
latency = { kind = "lognormal", p50 = "50ms", p99 = "900ms" }
failures = { temporary = 0.2 }

[[traffic]]
name = "mixed"
tenants = 3
destination = "isp:google"
arrive = { kind = "poisson", rate = "3/s" }

[[traffic]]
name = "other"
destination = "isp:google"
pool = "second"
not_before = "7s"
arrive = { kind = "poisson", rate = "3/s" }

[faults]
heal_at = "2min"

[[faults.crash]]
when = { about_every = "15s" }
down = "1s"

[faults.store]
loses_unsynced = false
disk = { power = 0.6, cut_short = 0.2, fails = 0.005, record_waits = 0.05 }
"#;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=6;

fn stage() -> Scenario {
    Scenario::parse("store", STAGE).unwrap_or_else(|error| panic!("{error}"))
}

fn said(violations: &[Violation]) -> Vec<String> {
    let lines = violations.iter().take(5);
    lines
        .map(|it| format!("{} at {}: {}", it.checker, it.at, it.what))
        .collect()
}

#[test]
fn a_sound_store_is_silent_on_a_disk_that_goes_wrong() {
    let stage = stage();
    for seed in SEEDS {
        let (summary, violations) = run(&stage, seed).unwrap();
        assert!(
            violations.is_empty(),
            "seed {seed}: {:#?}",
            said(&violations)
        );
        let metrics = summary.metrics();
        assert!(metrics.get("accepted").is_some_and(|it| *it > 500.0));
        assert_eq!(metrics.get("unfinished"), Some(&0.0), "seed {seed}");
    }
}

/// Broken in this way, it is found out with most seeds. A store that panics is
/// found out too.
fn is_found(sabotage: Sabotage) {
    let stage = stage();
    let finds = |seed: &u64| {
        let ran = catch_unwind(|| run_broken(&stage, *seed, Some(sabotage)).unwrap());
        ran.map_or(true, |(_, violations)| !violations.is_empty())
    };
    let found: Vec<u64> = SEEDS.filter(finds).collect();
    assert!(
        found.len() >= 4,
        "{sabotage:?} is found with {found:?} only"
    );
}

/// The same, by random worlds.
fn is_found_by_random_worlds(sabotage: Sabotage) {
    let finds = |seed: &u64| {
        let world = random_faults_on(*seed, StoreKind::Real);
        let ran = catch_unwind(|| run_broken(&world, *seed, Some(sabotage)).unwrap());
        ran.map_or(true, |(_, violations)| !violations.is_empty())
    };
    let found: Vec<u64> = SEEDS.filter(finds).collect();
    assert!(
        found.len() >= 3,
        "{sabotage:?} is found with {found:?} only"
    );
}

#[test]
fn random_worlds_find_a_disk_that_does_not_sync() {
    is_found_by_random_worlds(Sabotage::SyncsNothing);
}

#[test]
fn random_worlds_find_a_segment_that_is_given_up_while_it_is_written() {
    is_found_by_random_worlds(Sabotage::TurnsInName);
}

#[test]
fn random_worlds_find_names_of_flows_that_are_not_written() {
    is_found_by_random_worlds(Sabotage::ForgetsNames);
}

#[test]
fn most_random_worlds_have_the_real_store() {
    let seeds = 1..=1_000;
    let real = seeds.filter(|seed| random_faults(*seed).store.kind == StoreKind::Real);
    assert!((700..800).contains(&real.count()));
}

#[test]
fn every_scenario_that_ships_has_the_real_store() {
    for (name, text) in SHIPPED {
        let scenario = Scenario::parse(name, text).unwrap();
        assert_eq!(scenario.store.kind, StoreKind::Real, "{name}");
    }
}

#[test]
fn a_disk_that_does_not_sync_is_found() {
    is_found(Sabotage::SyncsNothing);
}

#[test]
fn a_body_segment_that_is_given_up_while_it_is_written_is_found() {
    is_found(Sabotage::TurnsInName);
}

#[test]
fn names_of_flows_that_are_not_written_are_found() {
    is_found(Sabotage::ForgetsNames);
}
