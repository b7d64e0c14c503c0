//! Many runs side by side: a table for people, JSON for programs.

use std::fmt::Write as _;

use outflow_core::time::Nanos;
use serde_json::{Value, json};

use super::library::Named;
use super::run::{Case, Figures, STARTS_AT, run};
use super::sender::Rule;

/// The share of the all-knowing sender to reach.
pub const SHARE_LEAST: f64 = 0.90;
/// The share of attempts that may be refused for the rate.
pub const DEFERRED_MOST: f64 = 0.01;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Providers.
    pub providers: Vec<Named>,
    /// Full rates, in messages a second.
    pub fulls: Vec<f64>,
    /// Starts, as multiples of the full rate.
    pub starts: Vec<f64>,
    /// Rules.
    pub rules: Vec<Rule>,
    /// How long each runs.
    pub length: Nanos,
    /// Which chance.
    pub seed: u64,
}

/// One run of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The provider's file.
    pub provider: &'static str,
    /// The provider in words.
    pub title: String,
    /// The full rate.
    pub full: f64,
    /// The start, as a multiple of it.
    pub start: f64,
    /// The rule.
    pub rule: Rule,
    /// What came out.
    pub figures: Figures,
}

impl Row {
    /// Whether the controller must reach the targets and does not.
    pub fn misses(&self) -> bool {
        matches!(self.rule, Rule::Seek | Rule::Engine)
            && (self.figures.share_converged < SHARE_LEAST
                || self.figures.deferred_converged >= DEFERRED_MOST)
    }
}

/// Runs it all; `done` sees each row as it comes.
pub fn rows(plan: &Plan, mut done: impl FnMut(&Row)) -> Vec<Row> {
    let mut rows = Vec::new();
    for &full in &plan.fulls {
        for &start in &plan.starts {
            for named in &plan.providers {
                for &rule in &plan.rules {
                    let figures = run(&Case {
                        provider: named.provider.clone(),
                        full,
                        start,
                        rule,
                        length: plan.length,
                        starts_at: STARTS_AT,
                        seed: plan.seed,
                    });
                    let row = Row {
                        provider: named.name,
                        title: named.provider.title.clone(),
                        full,
                        start,
                        rule,
                        figures,
                    };
                    done(&row);
                    rows.push(row);
                }
            }
        }
    }
    rows
}

/// The table in Markdown: per provider, rate and start a line, per rule a
/// column with the delivered share and the deferred share from hour 4 on.
pub fn markdown(rows: &[Row], rules: &[Rule]) -> String {
    let mut text = String::from("| provider | rate | start |");
    for rule in rules {
        let _ = write!(text, " {} |", rule.title());
    }
    text.push_str("\n|---|---|---|");
    text.push_str(&"---|".repeat(rules.len()));
    for row in rows {
        if Some(&row.rule) == rules.first() {
            let _ = write!(
                text,
                "\n| {} | {}/s | x{} |",
                row.title, row.full, row.start
            );
        }
        let _ = write!(text, " {} |", cell(&row.figures));
    }
    text.push('\n');
    text
}

fn cell(figures: &Figures) -> String {
    format!(
        "{:.1}/{:.2}",
        100.0 * figures.share_converged,
        100.0 * figures.deferred_converged
    )
}

/// All rows and the worst of the controller's.
pub fn json(rows: &[Row]) -> Value {
    let cases: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "provider": row.provider,
                "full_per_s": row.full,
                "start": row.start,
                "rule": row.rule.name(),
                "delivered_share": rounded(row.figures.share_converged),
                "deferred_share": rounded(row.figures.deferred_converged),
                "delivered_share_from_start": rounded(row.figures.share),
                "deferred_share_from_start": rounded(row.figures.deferred),
            })
        })
        .collect();
    let ours = || rows.iter().filter(|row| row.rule == Rule::Seek);
    let delivered = ours().map(|row| row.figures.share_converged);
    let deferred = ours().map(|row| row.figures.deferred_converged);
    json!({
        "bench": "control",
        "cases": cases,
        "worst_delivered_share": rounded(delivered.fold(f64::INFINITY, f64::min)),
        "worst_deferred_share": rounded(deferred.fold(0.0, f64::max)),
        "misses": ours().filter(|row| row.misses()).count(),
        "behind_best": behind_best(rows),
    })
}

/// The cases in which another rule under the bound of deferrals delivers more
/// than 2 % more than the controller.
fn behind_best(rows: &[Row]) -> Vec<Value> {
    let rivals = |row: &Row| {
        rows.iter()
            .filter(|other| {
                other.provider == row.provider
                    && other.full == row.full
                    && other.start == row.start
                    && other.figures.deferred_converged < DEFERRED_MOST
            })
            .map(|other| other.figures.share_converged)
            .fold(0.0, f64::max)
    };
    rows.iter()
        .filter(|row| row.rule == Rule::Seek)
        .filter(|row| row.figures.share_converged < 0.98 * rivals(row))
        .map(|row| json!([row.provider, row.full, row.start, rounded(rivals(row))]))
        .collect()
}

fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}
