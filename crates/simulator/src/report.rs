//! A run for people: a table. For programs: JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::expect::Verdict;
use crate::summary::Summary;
use crate::tally::{Figures, Fixed};
use crate::trace::Violation;

/// More tenants than this are shown as their best and worst.
const TENANTS_SHOWN: usize = 6;

/// No more limits than this are shown.
const LIMITS_SHOWN: usize = 24;

/// A run, judged.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What the scenario shows.
    pub title: String,
    /// What came out.
    pub summary: Summary,
    /// Whether that was expected.
    pub verdicts: Vec<Verdict>,
    /// What must never happen, and did.
    pub violations: Vec<Violation>,
}

impl Outcome {
    /// Whether all expectations held and no checker spoke.
    pub fn held(&self) -> bool {
        self.violations.is_empty() && self.verdicts.iter().all(|verdict| verdict.held)
    }

    /// All of it as JSON, the same bytes for the same run.
    pub fn json(&self) -> Value {
        let verdicts = self.verdicts.iter().map(|it| {
            json!({ "metric": it.metric, "value": it.value, "wanted": it.wanted, "held": it.held })
        });
        let violations = self.violations.iter().map(
            |it| json!({ "at_s": Fixed::secs(it.at), "checker": it.checker, "what": it.what }),
        );
        json!({
            "title": self.title,
            "held": self.held(),
            "summary": self.summary,
            "expectations": verdicts.collect::<Vec<_>>(),
            "violations": violations.collect::<Vec<_>>(),
        })
    }

    /// All of it as a table.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let summary = &self.summary;
        let mut line = |words: String| {
            text.push_str(words.trim_end());
            text.push('\n');
        };
        line(format!("{}: {}", summary.scenario, self.title));
        line(format!(
            "seed {}, {} s of virtual time, {} events, trace {}",
            summary.seed,
            summary.ended_s.value(),
            grouped(summary.events),
            summary.trace
        ));
        line(String::new());
        line(header("messages"));
        line(row("all", &summary.all));
        for (class, figures) in &summary.classes {
            line(row(&format!("  {class}"), figures));
        }
        line(String::new());
        line(header("tenants"));
        for (tenant, figures) in self.tenants() {
            line(row(&format!("  {tenant}"), figures));
        }
        text.push_str(&self.limits());
        text.push_str(&self.answers());
        text.push_str(&self.judgement());
        text
    }

    /// All tenants if they are few, else those that wait longest and shortest.
    fn tenants(&self) -> Vec<(&String, &Figures)> {
        let mut tenants: Vec<_> = self.summary.tenants.iter().collect();
        if tenants.len() <= TENANTS_SHOWN {
            return tenants;
        }
        tenants.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.wait_p99_ms));
        let shortest = tenants.len() - TENANTS_SHOWN / 2;
        let (longest, rest) = tenants.split_at(TENANTS_SHOWN / 2);
        let rest = rest.iter().skip(shortest - longest.len());
        longest.iter().chain(rest).copied().collect()
    }

    fn limits(&self) -> String {
        let mut text = format!("\n{:<28}{:>12}{:>12}\n", "limits", "granted", "used");
        let all = &self.summary.limits;
        for (key, limit) in all.iter().take(LIMITS_SHOWN) {
            let used = limit.utilisation.map_or_else(
                || "-".to_owned(),
                |share| format!("{:.1} %", share.value() * 100.0),
            );
            let _ = writeln!(text, "  {key:<26}{:>12}{used:>12}", grouped(limit.granted));
        }
        if all.len() > LIMITS_SHOWN {
            let _ = writeln!(text, "  and {} more", all.len() - LIMITS_SHOWN);
        }
        text
    }

    fn answers(&self) -> String {
        let answers = &self.summary.answers;
        let all = [
            ("throttled", answers.throttled),
            ("deferred", answers.deferred),
            ("refused", answers.refused),
            ("failed", answers.failed),
            ("uncertain", answers.uncertain),
            ("retries", answers.retries),
            ("duplicates", answers.duplicates),
            ("late bounces", answers.late_bounces),
            ("crashes", answers.crashes),
        ];
        let said: Vec<String> = all
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{} {name}", grouped(*count)))
            .collect();
        if said.is_empty() {
            return String::new();
        }
        format!("\nanswers: {}\n", said.join(", "))
    }

    fn judgement(&self) -> String {
        let mut text = String::from("\nexpected\n");
        for verdict in &self.verdicts {
            let sign = if verdict.held { "ok    " } else { "MISSED" };
            let value = verdict
                .value
                .map_or_else(|| "no such metric".to_owned(), number);
            let _ = writeln!(
                text,
                "  {sign}  {} = {value} ({})",
                verdict.metric, verdict.wanted
            );
        }
        if self.violations.is_empty() {
            text.push_str("checkers: silent\n");
        }
        for violation in &self.violations {
            let _ = writeln!(
                text,
                "  VIOLATION  {} at {} s: {}",
                violation.checker,
                Fixed::secs(violation.at).value(),
                violation.what
            );
        }
        text
    }
}

fn header(what: &str) -> String {
    format!(
        "{what:<28}{:>12}{:>12}{:>10}{:>10}{:>12}{:>12}{:>12}",
        "accepted", "delivered", "otherwise", "open", "p50 wait", "p99 wait", "max wait"
    )
}

fn row(name: &str, figures: &Figures) -> String {
    let otherwise =
        figures.bounced + figures.expired + figures.cancelled + figures.suppressed + figures.dead;
    format!(
        "{name:<28}{:>12}{:>12}{:>10}{:>10}{:>12}{:>12}{:>12}",
        grouped(figures.accepted),
        grouped(figures.delivered),
        grouped(otherwise),
        grouped(figures.unfinished),
        wait(figures.wait_p50_ms),
        wait(figures.wait_p99_ms),
        wait(figures.wait_max_ms),
    )
}

/// A wait in the unit in which it reads best.
fn wait(ms: Option<Fixed>) -> String {
    match ms.map(Fixed::value) {
        None => "-".to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.1} ms"),
        Some(ms) if ms < 10_000.0 => format!("{ms:.0} ms"),
        Some(ms) => format!("{:.0} s", ms / 1_000.0),
    }
}

/// A number with as many decimals as it needs, at most three.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(number(0.99), "0.99");
        assert_eq!(number(5_000.0), "5000");
        assert_eq!(wait(Some(Fixed(1_500))), "1.5 ms");
        assert_eq!(wait(Some(Fixed(49_000_000))), "49 s");
    }
}
