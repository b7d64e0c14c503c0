use std::collections::BTreeMap;

use outflow_core::time::Nanos;
use serde::Deserialize;

use super::spec::TrafficSpec;
use super::{Arrival, Traffic};

#[derive(Deserialize)]
struct File {
    traffic: Vec<TrafficSpec>,
}

fn arrivals(toml: &str, until_secs: u64) -> Vec<Arrival> {
    let file: File = toml::from_str(toml).unwrap();
    assert!(file.traffic.iter().all(|spec| spec.problems().is_empty()));
    Traffic::new(&file.traffic, 42, Nanos::from_secs(until_secs)).collect()
}

fn source(arrive: &str) -> String {
    format!("[[traffic]]\nname = \"a\"\ndestination = \"isp:google\"\narrive = {arrive}\n")
}

#[test]
fn each_pattern_yields_what_it_says() {
    for (arrive, count, last_ms) in [
        ("{ kind = \"at_once\", count = 3 }", 3, 0),
        ("{ kind = \"burst\", count = 4, over = \"200ms\" }", 4, 150),
        ("{ kind = \"constant\", rate = \"10/s\" }", 100, 9_900),
        (
            "{ kind = \"constant\", rate = \"10/s\", count = 5 }",
            5,
            400,
        ),
        (
            "{ kind = \"bursts\", count = 20, every = \"5s\" }",
            40,
            5_000,
        ),
        (
            "{ kind = \"on_off\", rate = \"10/s\", on = \"1s\", off = \"4s\" }",
            20,
            5_900,
        ),
    ] {
        let seen = arrivals(&source(arrive), 10);
        assert_eq!(seen.len(), count, "{arrive}");
        assert_eq!(
            seen.last().unwrap().at,
            Nanos::from_millis(last_ms),
            "{arrive}"
        );
    }
    let poisson = arrivals(&source("{ kind = \"poisson\", rate = \"10/s\" }"), 1_000);
    assert!(
        (9_600..10_400).contains(&poisson.len()),
        "{}",
        poisson.len()
    );
}

#[test]
fn sources_merge_in_order_and_a_seed_repeats() {
    let toml = format!(
        "{}{}",
        source("{ kind = \"poisson\", rate = \"50/s\" }"),
        source("{ kind = \"bursts\", count = 7, every = \"1s\" }").replace("\"a\"", "\"b\"")
    );
    let seen = arrivals(&toml, 20);
    assert!(seen.is_sorted_by_key(|arrival| arrival.at));
    assert!(
        seen.iter()
            .enumerate()
            .all(|(n, arrival)| arrival.message == n as u64)
    );
    assert_eq!(seen, arrivals(&toml, 20));
}

#[test]
fn one_more_source_leaves_the_others_as_they_were() {
    let alone = source("{ kind = \"poisson\", rate = \"50/s\" }");
    let both = format!("{alone}{}", alone.replace("\"a\"", "\"b\""));
    let times = |toml: &str| -> Vec<Nanos> {
        arrivals(toml, 5)
            .iter()
            .filter(|arrival| arrival.source == 0)
            .map(|arrival| arrival.at)
            .collect()
    };
    assert_eq!(times(&alone), times(&both));
}

#[test]
fn tenants_domains_costs_and_times_are_as_written() {
    let toml = "[[traffic]]\nname = \"small\"\ntenants = 3\ndomains = 3\ndns = \"20ms\"\n\
        destination = \"isp:google\"\nclass = \"low\"\ncost = [[1, 0.5], [5, 0.5]]\n\
        not_before = \"1s\"\nexpires = \"10s\"\nrecipients = 2\n\
        arrive = { kind = \"at_once\", count = 900 }";
    let seen = arrivals(toml, 1);
    let mut by_flow = BTreeMap::new();
    for arrival in &seen {
        let domain = arrival.domain.as_ref().unwrap();
        assert_eq!(domain.after, Nanos::from_millis(20));
        assert_eq!(domain.destination.to_string(), "isp:google");
        assert!(!arrival.flow.destination.is_resolved());
        assert_eq!(
            (arrival.due, arrival.expires),
            (Nanos::from_secs(1), Nanos::from_secs(11))
        );
        assert!(arrival.recipient < 2 && [1, 5].contains(&arrival.cost));
        *by_flow.entry(arrival.flow.clone()).or_insert(0) += 1;
    }
    assert_eq!(by_flow.len(), 9);
    assert!(by_flow.values().all(|count| *count == 100));
    assert!(by_flow.keys().any(|flow| flow.tenant.as_str() == "small-3"));
}

#[test]
fn a_million_messages_are_not_materialised() {
    let toml = source("{ kind = \"at_once\", count = 1000000 }");
    let file: File = toml::from_str(&toml).unwrap();
    let mut traffic = Traffic::new(&file.traffic, 1, Nanos::from_secs(1));
    assert_eq!(traffic.peek(), Some(Nanos::ZERO));
    assert_eq!(traffic.next().unwrap().message, 0);
    assert_eq!(traffic.count(), 999_999);
}
