//! The queries of the examples ask for metrics and labels that exist.

use std::collections::BTreeSet;
use std::fs;

use outflow_telemetry::declarations::{Kind, Metric, find};
use serde_json::Value;

use super::workspace;

fn read(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap()
}

/// All texts under a key, wherever they stand.
fn texts_under<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(entries) => {
            for (name, entry) in entries {
                match entry {
                    Value::String(text) if name == key => found.push(text),
                    other => texts_under(other, key, found),
                }
            }
        }
        Value::Array(entries) => {
            for entry in entries {
                texts_under(entry, key, found);
            }
        }
        _ => {}
    }
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The names of our metrics in a query, each with what stands behind it.
fn names(query: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(at) = rest.find("outflow_") {
        let name = &rest[at..];
        let end = name.find(|letter| !is_word(letter)).unwrap_or(name.len());
        rest = &name[end..];
        found.push((&name[..end], rest));
    }
    found
}

fn has_label(metric: &Metric, label: &str) -> bool {
    metric.labels.contains(&label) || (label == "le" && metric.kind == Kind::Histogram)
}

fn check(query: &str, legend: &str) {
    let mut used = Vec::new();
    for (name, rest) in names(query) {
        let metric = find(name).unwrap_or_else(|| panic!("no metric {name}: {query}"));
        assert!(
            metric.kind != Kind::Histogram || metric.name != name,
            "a histogram has no value of its own: {query}"
        );
        used.push(metric);
        let selector = rest.strip_prefix('{').and_then(|it| it.split('}').next());
        for matcher in selector.into_iter().flat_map(|it| it.split(',')) {
            let label = matcher.split(['=', '!', '~']).next().unwrap().trim();
            assert!(has_label(metric, label), "{name} has no {label}: {query}");
        }
    }
    assert!(!used.is_empty(), "asks for nothing of ours: {query}");
    let grouped = query.split("by (").skip(1);
    let grouped = grouped.filter_map(|it| it.split(')').next());
    let shown = legend.split("{{").skip(1);
    let shown = shown.filter_map(|it| it.split("}}").next());
    let labels: BTreeSet<&str> = grouped.flat_map(|it| it.split(',')).chain(shown).collect();
    for label in labels {
        let label = label.trim().trim_start_matches("$labels.");
        assert!(
            used.iter().all(|metric| has_label(metric, label)),
            "no {label}: {query}"
        );
    }
}

#[test]
fn the_board_asks_for_what_there_is() {
    let board: Value = serde_json::from_str(&read("examples/grafana/outflow.json")).unwrap();
    let (mut queries, mut legends) = (Vec::new(), Vec::new());
    texts_under(&board, "expr", &mut queries);
    texts_under(&board, "legendFormat", &mut legends);
    assert!(queries.len() >= 20 && queries.len() == legends.len());
    for (query, legend) in queries.into_iter().zip(legends) {
        check(query, legend);
    }
}

#[test]
fn the_alerts_ask_for_what_there_is() {
    let rules = read("examples/prometheus/alerts.yml");
    let mut queries = 0;
    for rule in rules.split("- alert: ").skip(1) {
        let query = rule.lines().find_map(|it| it.trim().strip_prefix("expr: "));
        check(query.unwrap_or_else(|| panic!("no query: {rule}")), "");
        queries += 1;
    }
    assert!(queries >= 8);
}
