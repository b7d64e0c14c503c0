//! The reference of metrics, made from their declarations.

use std::fmt::Write;

use crate::declarations::{ALL, Metric};

/// The page `docs/metrics.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         Served under `/metrics` as text for Prometheus. Labels are bounded: destinations, \
         limits and accounts have so many names of their own as the settings say (1,000 each \
         unless set), the rest are `other`. Times are in seconds.\n\n\
         This page is made from `crates/telemetry/src/declarations.rs`; a test compares them.\n\n",
    );
    let mut line = |text: &str| {
        page.write_str(text)
            .expect("a string takes whatever is written");
        page.push('\n');
    };
    line("| metric | kind | labels | what it counts |");
    line("|---|---|---|---|");
    for metric in ALL {
        line(&row(metric));
    }
    page
}

fn row(metric: &Metric) -> String {
    let Metric {
        name,
        kind,
        labels,
        help,
    } = metric;
    let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
    let (kind, labels) = (kind.as_str(), labels.join(", "));
    format!("| `{name}` | {kind} | {labels} | {help} |")
}
