use outflow_core::class::Class;
use outflow_core::limit::spec::Headroom;
use outflow_core::time::Nanos;

use super::library::{SHIPPED, listing, shipped};
use super::random::random_faults;
use super::random_world::random_world;
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

#[test]
fn random_worlds_are_sound_bounded_and_begin_as_random_scenarios() {
    let mut kinds = [0_u32; 9];
    for seed in 0..500 {
        let narrow = random_faults(seed);
        let world = random_world(seed)
            .checked()
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(world, random_world(seed));
        assert_eq!(world.duration, narrow.duration);
        assert_eq!(world.nodes, narrow.nodes);
        assert!(world.accounts.starts_with(&narrow.accounts));
        assert!(
            world
                .actions
                .iter()
                .all(|action| action.at < world.duration)
        );
        for action in &world.actions {
            for (count, is_one) in kinds.iter_mut().zip([
                action.pause.is_some(),
                action.cancel.is_some(),
                action.retry.is_some(),
                action.relocate.is_some(),
                action.account.is_some(),
                action.remove_account.is_some(),
                action.restart.is_some(),
            ]) {
                *count += u32::from(is_one);
            }
        }
        kinds[7] += u32::from(world.pools().len() > 1);
        kinds[8] += u32::from(world.traffic.iter().any(|source| source.destinations > 20));
        // Each pool ends with an account that serves everybody.
        for pool in world.pools() {
            let mut last = std::collections::BTreeMap::new();
            let later = world.actions.iter().filter_map(|it| it.account.as_ref());
            last.extend(world.accounts.iter().chain(later).map(|it| (&it.name, it)));
            let serves = |it: &&super::AccountData| it.pool == pool && it.tenant.is_none();
            assert!(last.into_values().any(|it| serves(&it)), "{seed}: {pool}");
        }
    }
    assert!(kinds.iter().all(|count| *count > 50), "{kinds:?}");
}

#[test]
fn actions_that_cannot_be_meant_are_named() {
    let action = |text: &str| problem(&format!("{SMALL}\n[[action]]\nat = \"5s\"\n{text}"));
    let nothing = action("");
    assert!(
        nothing.contains("action \"0\": must be one of pause"),
        "{nothing}"
    );
    let unknown = action("pause = { match = { tenant = \"a\" }, lasts = \"1s\", often = 2 }");
    assert!(unknown.contains("often"), "{unknown}");
    let scope = action("cancel = { match = { moon = \"a\" } }");
    assert!(scope.contains("moon"), "{scope}");
    let pool = action("move = { match = { tenant = \"a\" }, pool = \"nowhere\" }");
    assert!(pool.contains("no account is in pool \"nowhere\""), "{pool}");
    let account = action("remove_account = \"b\"");
    assert!(account.contains("there is no account \"b\""), "{account}");
}
