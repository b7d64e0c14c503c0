use outflow_core::class::Class;
use outflow_core::limit::spec::Headroom;
use outflow_core::time::Nanos;

use super::library::{SHIPPED, listing, shipped};
use super::random::random_faults;
use super::{Scenario, ScenarioError};

const SMALL: &str = r#"
title = "t"
duration = "10s"
[[account]]
name = "a"
[[network]]
name = "n"
[[traffic]]
name = "s"
destination = "isp:google"
arrive = { kind = "at_once", count = 1 }
"#;

fn problem(text: &str) -> String {
    Scenario::parse("x", text).unwrap_err().to_string()
}

#[test]
fn every_shipped_scenario_is_sound_and_expects_something() {
    for (name, text) in SHIPPED {
        let scenario = Scenario::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert!(!scenario.expect.is_empty(), "{name}");
        assert!(!scenario.about.is_empty(), "{name}");
    }
    assert_eq!(listing().lines().count(), SHIPPED.len());
    assert!(shipped("receipts-burst").is_some() && shipped("nothing").is_none());
}

#[test]
fn errors_name_the_place() {
    assert!(Scenario::parse("x", SMALL).is_ok());
    let unknown = problem(&SMALL.replace("count = 1", "count = 1, colour = 2"));
    assert!(unknown.contains("colour"), "{unknown}");
    let rate = problem(&format!(
        "{SMALL}\n[[policy]]\nmatch = {{ isp = \"google\" }}\nrate = \"fast\""
    ));
    assert!(rate.contains("fast") && rate.contains("line"), "{rate}");
    let pool = problem(&format!("{SMALL}pool = \"other\""));
    assert_eq!(pool, "x: traffic \"s\": no account is in pool \"other\"");
    let nodes = problem(&format!("nodes = 2\n{SMALL}"));
    assert!(nodes.contains("ledger"), "{nodes}");
    let node = problem(&format!(
        "{SMALL}\n[[faults.crash]]\nnode = 3\nwhen = {{ every = \"60s\" }}\ndown = \"1s\""
    ));
    assert_eq!(node, "x: faults.crash: there is no node 3");
    let zone = problem(&format!(
        "{SMALL}\n[[policy]]\nmatch = {{ isp = \"google\" }}\nlimits = [{{ kind = \"calendar\", count = 5, period = \"day\", zone = \"Mars\" }}]"
    ));
    assert!(
        zone.contains("policy \"0\"") && zone.contains("Mars"),
        "{zone}"
    );
}

#[test]
fn a_name_twice_is_an_error() {
    let twice = SMALL.replace("[[network]]", "[[account]]\nname = \"a\"\n[[network]]");
    assert!(matches!(
        Scenario::parse("x", &twice),
        Err(ScenarioError::Unsound { .. })
    ));
}

#[test]
fn headroom_becomes_thousandths() {
    let scenario =
        Scenario::parse("x", &format!("headroom = {{ critical = 0.2 }}\n{SMALL}")).unwrap();
    assert_eq!(Headroom::from(scenario.headroom), Headroom([200, 0, 0, 0]));
    assert_eq!(scenario.headroom.share(Class::Low), 0.0);
}

#[test]
fn the_baseline_takes_away_what_it_says() {
    let scenario = shipped("one-tenant-floods").unwrap().unwrap();
    let baseline = scenario.baseline().unwrap();
    assert_eq!(baseline.traffic.len() + 1, scenario.traffic.len());
    assert!(
        baseline
            .policies
            .iter()
            .all(|it| it.burst.is_none_or(|burst| burst == 1))
    );
    assert!(baseline.baseline().is_none());
}

#[test]
fn a_calm_run_has_no_faults() {
    let scenario = shipped("four-nodes-one-limit").unwrap().unwrap();
    let calm = scenario.calm().unwrap();
    assert!(!scenario.faults.pauses.is_empty() && calm.faults.pauses.is_empty());
    assert!(calm.faults.ledger.partitions.is_empty());
    assert_eq!(calm.faults.ledger.latency, scenario.faults.ledger.latency);
    assert!(!calm.expect.is_empty());
}

#[test]
fn random_scenarios_are_sound_short_and_repeat() {
    for seed in 0..500 {
        let scenario = random_faults(seed)
            .checked()
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario, random_faults(seed));
        assert!(scenario.duration.0 <= Nanos::from_secs(120));
    }
    assert_ne!(random_faults(1), random_faults(2));
}
