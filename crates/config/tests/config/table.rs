//! The table of keys, held against the raw types, the reference and the file.

use std::path::Path;

use outflow_config::account::{RawAccount, RawDkim, RawFailure, RawSandbox};
use outflow_config::document::Document;
use outflow_config::form;
use outflow_config::key::{Form, Key};
use outflow_config::raw::*;
use outflow_config::raw_runbook::*;
use outflow_config::valid::warm_up::RawWarmUp;
use outflow_config::{RawPolicy, Settings, default_toml, keys, reference_markdown};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The fields that a type reads, from its own complaint about another.
fn fields<T: DeserializeOwned>() -> Vec<String> {
    let error = serde_json::from_value::<T>(json!({"?": 1}))
        .err()
        .expect("it is unknown");
    let error = error.to_string();
    let names = error.split('`').skip(3).step_by(2);
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

fn names(keys: &[Key]) -> Vec<String> {
    let mut names: Vec<String> = keys.iter().map(|key| key.name.to_owned()).collect();
    names.sort();
    names
}

fn inner(keys: &[Key], path: &[&str]) -> &'static [Key] {
    let [first, rest @ ..] = path else {
        unreachable!("a path has a step")
    };
    let key = keys.iter().find(|key| key.name == *first);
    let found = match key.unwrap_or_else(|| panic!("{first} is missing")).form {
        Form::Table(keys) | Form::List(&Form::Table(keys), _) => keys,
        other => panic!("{first} is {other:?}"),
    };
    if rest.is_empty() {
        found
    } else {
        inner(found, rest)
    }
}

#[test]
fn the_table_and_the_raw_types_have_the_same_keys() {
    let of = |path: &[&str]| names(inner(keys::ROOT, path));
    assert_eq!(fields::<RawSettings>(), names(keys::ROOT));
    assert_eq!(fields::<RawServer>(), of(&["server"]));
    assert_eq!(fields::<RawStore>(), of(&["store"]));
    assert_eq!(fields::<RawLedger>(), of(&["ledger"]));
    assert_eq!(fields::<RawListener>(), of(&["smtp"]));
    assert_eq!(fields::<RawThrottle>(), of(&["throttle"]));
    assert_eq!(fields::<RawFeedback>(), of(&["feedback"]));
    assert_eq!(fields::<RawDns>(), of(&["dns"]));
    assert_eq!(fields::<RawDestinations>(), of(&["destinations"]));
    assert_eq!(fields::<RawAccount>(), of(&["account"]));
    assert_eq!(fields::<RawDkim>(), of(&["account", "dkim"]));
    assert_eq!(fields::<RawSandbox>(), of(&["account", "sandbox"]));
    assert_eq!(
        fields::<RawFailure>(),
        of(&["account", "sandbox", "failures"])
    );
    assert_eq!(fields::<RawPolicy>(), of(&["policy"]));
    assert_eq!(fields::<RawClasses>(), of(&["classes"]));
    assert_eq!(fields::<RawRetry>(), of(&["retry"]));
    for class in ["critical", "high", "normal", "low"] {
        assert_eq!(fields::<RawClass>(), of(&["classes", class]));
    }
    for schedule in ["email", "critical", "api"] {
        assert_eq!(fields::<RawSchedule>(), of(&["retry", schedule]));
    }
    assert_eq!(fields::<RawRunbook>(), of(&["runbook"]));
    for watch in ["complaints", "too_fast", "deferrals", "hard_bounces"] {
        assert_eq!(fields::<RawWatch>(), of(&["runbook", watch]));
    }
    assert_eq!(fields::<RawOpens>(), of(&["runbook", "fewer_opens"]));
    assert_eq!(fields::<RawCanary>(), of(&["canary"]));
    assert_eq!(fields::<RawWarmUp>(), of(&["warm_up"]));
    assert_eq!(fields::<RawRetention>(), of(&["retention"]));
    assert_eq!(fields::<RawLog>(), of(&["log"]));
    assert_eq!(fields::<RawMetrics>(), of(&["metrics"]));
}

#[test]
fn every_default_and_example_has_the_form_of_its_key() {
    fn check(keys: &[Key]) {
        for key in keys {
            assert!(
                key.doc.ends_with('.'),
                "{}: a sentence ends with a stop",
                key.name
            );
            for toml in [key.default, key.example].into_iter().flatten() {
                let value =
                    Document::parse(&format!("it = {toml}")).map(|it| it.value["it"].clone());
                let mut whole = json!({key.name: value.expect("it is TOML")});
                let mut problems = outflow_config::problem::Problems::default();
                outflow_config::check::table(&mut whole, keys, "", &mut problems);
                problems
                    .or(())
                    .unwrap_or_else(|wrong| panic!("{}: {wrong}", key.name));
            }
            if let Form::Table(keys) | Form::List(&Form::Table(keys), _) = key.form {
                check(keys);
            }
        }
    }
    check(keys::ROOT);
}

#[test]
fn an_account_without_a_field_is_one_with_its_default() {
    let with_defaults = |base: Value, keys: &[Key]| {
        let mut account = base;
        for key in keys
            .iter()
            .filter(|key| account.get(key.name).is_none())
            .collect::<Vec<_>>()
        {
            if let Some(toml) = key.default {
                let value =
                    Document::parse(&format!("it = {toml}")).map(|it| it.value["it"].clone());
                account[key.name] = value.expect("it is TOML");
            }
        }
        account
    };
    let valid = |value: &Value| RawAccount::read(value).and_then(|raw| raw.validate());
    let relay = json!({"id": "a", "host": "h"});
    assert_eq!(
        valid(&relay),
        valid(&with_defaults(relay.clone(), keys::ACCOUNT))
    );
    let sandbox = inner(keys::ACCOUNT, &["sandbox"]);
    let plain = json!({"id": "a", "transport": "sandbox"});
    let mut full = plain.clone();
    full["sandbox"] = with_defaults(json!({}), sandbox);
    assert_eq!(valid(&plain), valid(&full));
    assert!(
        form::read(&json!("20ms"), &sandbox[0].form).is_err(),
        "an either is checked as a whole"
    );
}

#[test]
fn the_default_file_says_the_defaults() {
    let written = Settings::parse(&default_toml()).unwrap_or_else(|error| panic!("{error}"));
    let silent = Settings::parse("").expect("nothing is needed");
    assert_eq!(format!("{written:?}"), format!("{silent:?}"));
    for entry in written.entries() {
        let expected = if entry.key == "account[0]" {
            "default"
        } else {
            "file"
        };
        assert_eq!(
            entry.origin, expected,
            "{} is missing in the default file",
            entry.key
        );
    }
}

#[test]
fn the_examples_in_the_default_file_work_when_they_are_taken_out_of_their_comments() {
    let text = default_toml();
    let mut example = String::new();
    let mut is_inside = false;
    for line in text.lines() {
        is_inside = line.starts_with("# [[") || (is_inside && !line.is_empty());
        if is_inside {
            example.push_str(line.trim_start_matches("# "));
            example.push('\n');
        }
    }
    let settings = Settings::parse(&example).unwrap_or_else(|error| panic!("{example}{error}"));
    assert_eq!((settings.accounts.len(), settings.policies.len()), (1, 1));
    assert!(!settings.is_sandbox_by_default);
}

#[test]
fn the_committed_pages_are_those_generated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, text) in [
        ("docs/configuration.md", reference_markdown()),
        ("examples/outflow.toml", default_toml()),
    ] {
        let file = root.join(path);
        if std::env::var_os("OUTFLOW_BLESS").is_some() {
            let folder = file.parent().expect("it is in a folder");
            std::fs::create_dir_all(folder).expect("a folder can be made");
            std::fs::write(&file, &text).expect("a page can be written");
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            committed == text,
            "{path} is stale: run this test with OUTFLOW_BLESS=1"
        );
    }
}
