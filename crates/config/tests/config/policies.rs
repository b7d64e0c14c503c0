use std::collections::BTreeSet;

use outflow_config::policy::ValidPolicy;
use outflow_config::policy::built_in::built_in;
use outflow_config::{Invalid, RawPolicy, match_of_path, path_of_match};
use outflow_core::limit::spec::LimitSpec;
use outflow_core::policy::policy::{RateOrShare, WhenAway};
use outflow_core::time::Wall;
use proptest::prelude::*;
use serde_json::{Value, json};

fn valid(value: Value) -> ValidPolicy {
    let raw = RawPolicy::read(&value).unwrap_or_else(|wrong| panic!("{value}: {wrong}"));
    raw.validate_whole()
        .unwrap_or_else(|wrong| panic!("{value}: {wrong}"))
}

fn complaints(value: Value) -> Invalid {
    match RawPolicy::read(&value) {
        Err(wrong) => wrong,
        Ok(raw) => raw.validate().expect_err("it should be refused"),
    }
}

fn pointers(wrong: &Invalid) -> Vec<&str> {
    wrong.errors.iter().map(|it| it.pointer.as_str()).collect()
}

#[test]
fn a_policy_reads_and_shows_the_same() {
    for written in [
        json!({"match": {"isp": "google", "ip": "*"}, "rate": "2/s", "burst": 5, "concurrency": 5}),
        json!({"match": {"tenant": "*"}, "rate": "100/s", "weight": 3, "when_away": "open"}),
        json!({"match": {"isp": "yahoo"}, "rate": "2.5%", "comment": "a share"}),
        json!({"match": {"global": "*"}, "rate": "0.5/min spaced"}),
        json!({"match": {"account": "a"}, "limits": [
            "14/s burst 28", "7/s", "600/min", "0.2/h", "40/s spaced", "10/h burst 2",
            "50000/day@America/Los_Angeles", "8 concurrent",
        ]}),
        json!({"match": {"lane": "default/isp:google"}, "rate": "1/day"}),
    ] {
        let policy = valid(written.clone()).policy;
        assert_eq!(RawPolicy::from(&policy).shown(), written);
    }
}

#[test]
fn rates_are_text_or_numbers() {
    let rate = |rate: Value| {
        valid(json!({"match": {"tenant": "a"}, "rate": rate}))
            .policy
            .rate
    };
    assert_eq!(rate(json!(40)), rate(json!("40/s")));
    assert_eq!(rate(json!(0.5)), rate(json!("0.5/s")));
    let policy = valid(json!({"match": {"isp": "a"}, "rate": "10%"})).policy;
    assert_eq!(policy.rate, Some(RateOrShare::Share { permille: 100 }));
    let policy = valid(json!({"match": {"isp": "a"}, "when_away": "local_share"})).policy;
    assert_eq!(policy.when_away, Some(WhenAway::LocalShare));
}

#[test]
fn what_cannot_be_honoured_is_refused_at_its_field() {
    let places = [
        (json!({"match": {"isp": "google"}, "rate": 0}), "/rate"),
        (json!({"match": {"isp": "google"}, "rate": -1}), "/rate"),
        (json!({"match": {"isp": "google"}, "burst": 0}), "/burst"),
        (json!({"match": {"isp": "google"}, "weight": 2}), "/weight"),
        (json!({"match": {"tenant": "a"}, "rate": "10%"}), "/rate"),
        (
            json!({"match": {"ip": "*", "tenant": "*"}, "rate": 1}),
            "/match",
        ),
        (json!({"match": {"isq": "google"}, "rate": 1}), "/match"),
        (json!({"rate": 1}), "/match"),
        (
            json!({"match": {"isp": "a"}, "rate": "1/s spaced", "burst": 3}),
            "/burst",
        ),
        (
            json!({"match": {"isp": "a"}, "when_away": "opne"}),
            "/when_away",
        ),
        (
            json!({"match": {"isp": "a"}, "rate": 5, "max_rate": 4}),
            "/max_rate",
        ),
        (json!({"match": {"isp": "a"}, "max_rate": 4}), "/max_rate"),
        (
            json!({"match": {"isp": "a"}, "cooldown_until": "2026-03-02T08:00:00Z"}),
            "/cooldown_until",
        ),
        (
            json!({"match": {"isp": "a"}, "mitigation_reason": "x", "cooldown_until": "soon"}),
            "/cooldown_until",
        ),
    ];
    for (value, place) in places {
        assert_eq!(pointers(&complaints(value.clone())), [place], "{value}");
    }
}

#[test]
fn a_mitigation_is_an_override_with_an_end() {
    let base = RawPolicy::read(&json!({
        "match": {"isp": "google"}, "rate": "40/s", "burst": 80, "concurrency": 5,
    }))
    .expect("it is sound");
    let over = RawPolicy::read(&json!({
        "match": {"isp": "google"}, "rate": "4/s",
        "mitigation_reason": "421 since noon", "cooldown_until": "2026-03-02T08:00:00Z",
    }))
    .expect("it is sound");
    let merged = base.overridden_by(&over);
    assert_eq!((merged.burst, merged.concurrency), (None, Some(5)));
    let valid = merged.validate_whole().expect("it is sound");
    assert_eq!(valid.policy.max_rate, None);
    let mitigation = valid.mitigation.expect("it is one");
    let end = Wall(1_772_438_400_000_000_000);
    assert_eq!(mitigation.until, Some(end));
    assert!(mitigation.holds_at(Wall(end.0 - 1)) && !mitigation.holds_at(end));
}

#[test]
fn what_is_learnt_holds_on_below_a_mitigation() {
    let read = |value| RawPolicy::read(&value).expect("it is sound");
    let base = read(json!({ "match": {"isp": "google"}, "rate": "50/s", "max_rate": "100/s" }));
    for (over, most) in [
        (json!({ "rate": "25/s spaced" }), Some("25/s")),
        (json!({ "rate": "200/s" }), Some("200/s")),
        (json!({ "rate": "25/s", "max_rate": "40/s" }), Some("40/s")),
        (json!({ "rate": "10%" }), None),
        (json!({ "burst": 3 }), Some("100/s")),
    ] {
        let merged = base.overridden_by(&read(over.clone()));
        let max_rate = merged.max_rate.as_ref().map(|rate| rate.text());
        assert_eq!(max_rate.as_deref(), most, "{over}");
        assert!(merged.validate_whole().is_ok(), "{over}");
    }
}

#[test]
fn the_address_says_what_a_policy_is_about() {
    for (path, canonical) in [
        ("isp/google", "isp/google"),
        ("ISP/Gmail", "isp/google"),
        ("isp/ATT/", "isp/att"),
        ("isp/google/account/ses-1", "account/ses-1/isp/google"),
        ("account/ses-1/isp/hotmail", "account/ses-1/isp/outlook"),
        ("global", "global"),
        ("global/*", "global"),
        ("sender-domain/Example.COM", "sender_domain/example.com"),
        ("tenant/a%2Fb%25", "tenant/a%2Fb%25"),
        ("tenant/*", "tenant/*"),
        ("lane/default/isp:gmail", "lane/default/isp:google"),
        ("lane/default/isp/gmail", "lane/default/isp:google"),
        ("lane/*", "lane/*"),
    ] {
        let matched = match_of_path(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(path_of_match(&matched), canonical, "{path}");
        assert_eq!(match_of_path(canonical), Ok(matched), "{path}");
    }
    for (path, words) in [
        ("", "use one of"),
        ("ips/google", "did you mean isp?"),
        ("isp", "isp/NAME"),
        ("isp/a/carrier/b", "one destination"),
        ("isp/a/isp/b", "twice"),
        ("class/urgent", "critical, high"),
    ] {
        let error = match_of_path(path).expect_err(path).to_string();
        assert!(error.contains(words), "{path}: {error}");
    }
    let matched = match_of_path("isp/gmail").expect("it is one");
    let raw = RawPolicy::read(&json!({"rate": 1})).expect("it is sound");
    let policy = raw
        .validate_about(&matched)
        .expect("the address says it")
        .policy;
    assert_eq!(policy.matches, matched);
    let other = RawPolicy::read(&json!({"rate": 1, "match": {"isp": "yahoo"}})).expect("sound");
    assert_eq!(
        pointers(&other.validate_about(&matched).expect_err("they differ")),
        ["/match"]
    );
}

proptest! {
    #[test]
    fn every_limit_that_reads_is_shown_so_that_it_reads_the_same(
        whole in 0_u32..2_000_000, decimals in "(\\.[0-9]{1,6})?",
        unit in prop::sample::select(vec!["s", "min", "h", "day"]),
        tail in prop::sample::select(vec!["", " burst 3", " spaced", "@Europe/Rome"]),
    ) {
        let text = format!("{whole}{decimals}/{unit}{tail}");
        if let Ok(limit) = LimitSpec::parse(&text) {
            let shown = outflow_config::policy::text::limit(&limit);
            prop_assert_eq!(LimitSpec::parse(&shown), Ok(limit), "{} -> {}", text, shown);
        }
    }

    #[test]
    fn any_path_is_refused_or_comes_back_canonical(path in "\\PC{0,40}", kind in "(isp|tenant|lane|global|account)?") {
        if let Ok(matched) = match_of_path(&format!("{kind}/{path}")) {
            prop_assert_eq!(match_of_path(&path_of_match(&matched)), Ok(matched));
        }
    }
}

#[test]
fn what_is_built_in_can_be_enforced_and_names_its_source() {
    let mut seen = BTreeSet::new();
    for raw in built_in() {
        let valid = raw.validate_whole().unwrap();
        let matches = valid.policy.matches.to_string();
        assert!(raw.comment.is_some(), "{matches} has no source");
        assert!(seen.insert(matches.clone()), "{matches} is there twice");
        assert!(
            valid.policy.rate.is_some() || valid.policy.concurrency.is_some(),
            "{matches} says nothing"
        );
    }
    assert!(seen.len() > 10);
}
