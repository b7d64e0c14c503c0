//! The files that come with the program: every rule shows what it matches.

use std::collections::BTreeSet;

use outflow_core::classify::{RuleSet, Rules, destination_named};
use outflow_core::destination::Destination;
use outflow_core::outcome::{Outcome, Reaction, ReplyClass, ReplyScope, Verdict};
use outflow_core::reply::{Reply, Stage};
use toml::Value;

macro_rules! files {
    ($($name:literal,)*) => {
        /// What stands in `data/replies`, by name.
        const FILES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../data/replies/", $name, ".toml"))),)*
        ];
    };
}

files! {
    "comcast", "cox", "free", "generic", "gmx", "godaddy", "google", "icloud", "mail.ru",
    "microsoft", "mimecast", "netease", "orange", "qq", "rackspace", "spectrum", "yahoo", "yandex",
}

const STAGES: [Stage; 6] = [
    Stage::Connect,
    Stage::Greeting,
    Stage::Auth,
    Stage::Sender,
    Stage::Recipient,
    Stage::Data,
];

pub(super) fn stage_of(sample: &str) -> (Stage, &str) {
    STAGES
        .into_iter()
        .find_map(|stage| {
            let said = sample.strip_prefix(stage.as_str())?.strip_prefix(": ")?;
            Some((stage, said))
        })
        .unwrap_or((Stage::Data, sample))
}

fn words<'a>(table: &'a Value, key: &str) -> Vec<&'a str> {
    let list = table.get(key).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn reply_of(rule: &Value, sample: &str) -> Reply {
    let (stage, said) = stage_of(sample);
    match rule.get("network") {
        Some(_) => Reply::Network {
            stage,
            text: said.to_owned().into(),
        },
        None => Reply::said(
            stage,
            said[..3].parse().unwrap(),
            said.get(4..).unwrap_or(""),
        ),
    }
}

/// Calls `each` with every sample of every rule, wherever it holds.
fn every_sample(mut each: impl FnMut(&Value, &str, &Outcome)) {
    let rules = Rules::built_in();
    for (name, text) in FILES {
        let file: Value = text.parse::<toml::Table>().map(Value::Table).unwrap();
        let destinations: Vec<Option<Destination>> = match words(&file, "destination") {
            none if none.is_empty() => vec![None],
            some => some.into_iter().map(destination_named).collect(),
        };
        let written = file["rule"].as_array().unwrap();
        assert_eq!(
            RuleSet::parse(text).unwrap().ids().count(),
            written.len(),
            "{name}"
        );
        for rule in written {
            let is_first = rule.get("first_attempt_only").is_some();
            for sample in words(rule, "samples") {
                let reply = reply_of(rule, sample);
                for to in &destinations {
                    for attempts in if is_first { 1..=1 } else { 2..=3 } {
                        let outcome = rules.classify(to.as_ref(), &reply, attempts);
                        each(rule, sample, &outcome);
                    }
                }
            }
        }
    }
}

#[test]
fn every_sample_of_every_rule_is_won_by_its_rule() {
    let mut won = BTreeSet::new();
    every_sample(|rule, sample, outcome| {
        let id = rule["id"].as_str().unwrap();
        assert_eq!(outcome.rule.as_str(), id, "{sample}");
        for (key, word) in [
            ("verdict", outcome.verdict.as_str()),
            ("class", outcome.class.as_str()),
            ("scope", outcome.scope.as_str()),
        ] {
            assert_eq!(rule[key].as_str(), Some(word), "{id}");
        }
        if let Some(action) = rule.get("action") {
            assert_eq!(action.as_str(), Some(outcome.action.as_str()), "{id}");
        }
        won.insert(id.to_owned());
    });
    let ids: Vec<&str> = FILES
        .iter()
        .flat_map(|(_, text)| text.split("\nid = \"").skip(1))
        .collect();
    assert_eq!(
        ids.len(),
        won.len(),
        "a rule without a sample, or an id used twice"
    );
}

#[test]
fn rules_of_a_file_say_whose_they_are() {
    for (name, text) in FILES {
        assert!(text.contains("\nversion = 1\n"), "{name}");
        if *name == "generic" {
            continue;
        }
        assert!(text.contains("\ndestination = ["), "{name}");
        for id in RuleSet::parse(text).unwrap().ids() {
            assert!(id.starts_with(&format!("{name}.")), "{id} in {name}.toml");
        }
    }
    let on_disk = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/replies");
    let on_disk = on_disk.read_dir().unwrap().count();
    assert_eq!(
        on_disk,
        FILES.len(),
        "a file in data/replies is not tested here"
    );
}

#[test]
fn no_sample_costs_a_recipient_what_is_not_his_fault() {
    every_sample(|_, sample, outcome| {
        let is_ours = matches!(
            outcome.class,
            ReplyClass::Rate | ReplyClass::Reputation | ReplyClass::Authentication
        );
        if is_ours {
            assert_ne!(outcome.verdict, Verdict::Bounced, "{sample}");
        }
        if outcome.suppresses() {
            let of = (outcome.verdict, outcome.class, outcome.scope);
            let him = (
                Verdict::Bounced,
                ReplyClass::Recipient,
                ReplyScope::Recipient,
            );
            assert_eq!(of, him, "{sample}");
        }
        if outcome.verdict == Verdict::Misconfigured {
            assert!(
                outcome.alert && outcome.action == Reaction::Pause,
                "{sample}"
            );
        }
        let acts = matches!(
            outcome.action,
            Reaction::Pause | Reaction::SlowDown | Reaction::FewerConnections
        );
        assert_eq!(outcome.lasts.is_some(), acts, "{sample}");
    });
}
