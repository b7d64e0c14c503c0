//! A scenario and a seed make a run, byte for byte.

use outflow_simulator::scenario::Scenario;
use outflow_simulator::scenario::library::{self, SHIPPED};
use outflow_simulator::scenario::random::random_faults;
use outflow_simulator::scenario::random_world::random_world;
use outflow_simulator::simulate::simulate;

fn json(scenario: &Scenario, seed: u64) -> String {
    simulate(scenario, seed).unwrap().json().to_string()
}

#[test]
fn the_same_seed_is_the_same_run() {
    let mut scenario = library::shipped("crash-every-minute").unwrap().unwrap();
    scenario.duration.0 = outflow_core::time::Nanos::from_secs(130);
    assert_eq!(json(&scenario, 7), json(&scenario, 7));
    assert_ne!(json(&scenario, 7), json(&scenario, 8));
}

#[test]
fn the_same_random_scenario_is_the_same_run() {
    for seed in [1, 2, 3] {
        assert_eq!(random_faults(seed), random_faults(seed));
        for scenario in [random_faults(seed), random_world(seed)] {
            assert_eq!(json(&scenario, seed), json(&scenario, seed));
        }
    }
}

#[test]
fn every_shipped_scenario_parses_and_is_listed() {
    for (name, text) in SHIPPED {
        let scenario = Scenario::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert!(!scenario.title.is_empty(), "{name}");
        assert!(!scenario.expect.is_empty(), "{name} expects nothing");
    }
    let listing = library::listing();
    assert_eq!(listing.lines().count(), SHIPPED.len());
    for (line, (name, _)) in listing.lines().zip(SHIPPED) {
        assert!(line.starts_with(name), "{line}");
    }
}
