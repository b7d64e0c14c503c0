//! Expected ranges: what must come out of a scenario.
//!
//! A metric is named as the summary names it; `*` stands for any run of
//! characters, and every metric that matches must be in range. A name that
//! matches nothing does not hold: an expectation that can never be missed is
//! worth nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// The metrics of a run, by name.
pub type Metrics = BTreeMap<String, f64>;

/// Ranges by metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Expectations(pub BTreeMap<String, Range>);

/// What a metric may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Range {
    /// At least this.
    pub min: Option<f64>,
    /// At most this.
    pub max: Option<f64>,
    /// At most so many times what the baseline has, plus `baseline_plus`.
    pub baseline_times: Option<f64>,
    /// What is added to that.
    pub baseline_plus: f64,
}

/// Whether one metric was in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which metric.
    pub metric: String,
    /// What it was; nothing if there is none of this name.
    pub value: Option<f64>,
    /// What was expected.
    pub wanted: String,
    /// Whether it held.
    pub held: bool,
}

impl Expectations {
    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a second run is needed to judge.
    pub fn needs_baseline(&self) -> bool {
        self.0.values().any(|range| range.baseline_times.is_some())
    }

    /// Judges the metrics of a run. Of several that match a pattern only the
    /// one that is furthest out is reported.
    pub fn check(&self, metrics: &Metrics, baseline: Option<&Metrics>) -> Vec<Verdict> {
        self.0
            .iter()
            .map(|(pattern, range)| {
                metrics
                    .iter()
                    .filter(|(name, _)| matches(pattern, name))
                    .map(|(name, value)| {
                        let reference = baseline.and_then(|it| it.get(name)).copied();
                        range.judge(name, *value, reference)
                    })
                    .max_by(|a, b| a.1.total_cmp(&b.1))
                    .map(|(verdict, _)| verdict)
                    .unwrap_or_else(|| Verdict {
                        metric: pattern.clone(),
                        value: None,
                        wanted: range.to_string(),
                        held: false,
                    })
            })
            .collect()
    }
}

impl Range {
    /// The verdict, and how far out the value is relative to its bound: 1 is
    /// on the bound.
    fn judge(&self, name: &str, value: f64, reference: Option<f64>) -> (Verdict, f64) {
        let from_baseline = self
            .baseline_times
            .map(|times| reference.map_or(f64::NAN, |it| it * times + self.baseline_plus));
        let above = [self.max, from_baseline]
            .into_iter()
            .flatten()
            .map(|max| excess(value, max));
        let below = self.min.map(|min| excess(min, value));
        let out = above.chain(below).fold(0.0, |worst: f64, out| {
            if out.is_nan() {
                f64::INFINITY
            } else {
                worst.max(out)
            }
        });
        let wanted = match from_baseline {
            Some(bound) => format!("{self} = {bound:.3}"),
            None => self.to_string(),
        };
        let verdict = Verdict {
            metric: name.to_owned(),
            value: Some(value),
            wanted,
            held: out <= 1.0,
        };
        (verdict, out)
    }
}

/// By which factor `value` exceeds `bound`, at most 1 if it does not.
fn excess(value: f64, bound: f64) -> f64 {
    if value.is_nan() || bound.is_nan() {
        return f64::NAN;
    }
    if value <= bound {
        return if bound > 0.0 {
            (value / bound).min(1.0)
        } else {
            0.0
        };
    }
    if bound > 0.0 {
        (value / bound).max(1.0 + 1e-9)
    } else {
        2.0 + value
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => parts.push(format!("= {min}")),
            (Some(min), Some(max)) => parts.push(format!("{min} to {max}")),
            (Some(min), None) => parts.push(format!(">= {min}")),
            (None, Some(max)) => parts.push(format!("<= {max}")),
            (None, None) => {}
        }
        if let Some(times) = self.baseline_times {
            parts.push(format!("<= {times} x baseline + {}", self.baseline_plus));
        }
        f.write_str(&parts.join(", "))
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(tail) = name.strip_prefix(head) else {
        return false;
    };
    tail.char_indices()
        .map(|(at, _)| at)
        .chain([tail.len()])
        .any(|at| tail.get(at..).is_some_and(|tail| matches(rest, tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectations(toml: &str) -> Expectations {
        toml::from_str(toml).unwrap()
    }

    fn metrics(pairs: &[(&str, f64)]) -> Metrics {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
    }

    #[test]
    fn values_in_range_hold_and_others_do_not() {
        let wanted = expectations(
            "delivered = { min = 10, max = 10 }\n\"critical.wait_p99_ms\" = { max = 100 }\n\
             duplicates = { max = 0 }",
        );
        let good = metrics(&[
            ("delivered", 10.0),
            ("critical.wait_p99_ms", 100.0),
            ("duplicates", 0.0),
        ]);
        assert!(wanted.check(&good, None).iter().all(|it| it.held));
        let bad = metrics(&[
            ("delivered", 9.0),
            ("critical.wait_p99_ms", 100.1),
            ("duplicates", 1.0),
        ]);
        assert!(wanted.check(&bad, None).iter().all(|it| !it.held));
        assert!(
            wanted
                .check(&Metrics::new(), None)
                .iter()
                .all(|it| !it.held)
        );
    }

    #[test]
    fn patterns_report_the_worst() {
        let wanted = expectations("\"tenant.small-*.wait_ms\" = { max = 5 }");
        let run = metrics(&[
            ("tenant.small-1.wait_ms", 4.0),
            ("tenant.small-2.wait_ms", 9.0),
            ("tenant.flood.wait_ms", 900.0),
        ]);
        let verdicts = wanted.check(&run, None);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0].metric, "tenant.small-2.wait_ms");
        assert!(!verdicts[0].held);
    }

    #[test]
    fn a_baseline_scales_the_bound_and_must_be_there() {
        let wanted = expectations("\"t.*.ms\" = { baseline_times = 2.5, baseline_plus = 3 }");
        let run = metrics(&[("t.a.ms", 28.0)]);
        let calm = metrics(&[("t.a.ms", 10.0)]);
        assert!(wanted.needs_baseline());
        assert!(wanted.check(&run, Some(&calm))[0].held);
        let slow = metrics(&[("t.a.ms", 28.1)]);
        assert!(!wanted.check(&slow, Some(&calm))[0].held);
        assert!(!wanted.check(&run, None)[0].held);
    }

    #[test]
    fn stars_match_any_run() {
        assert!(matches("a*c", "abbc") && matches("*", "") && matches("a*", "a"));
        assert!(!matches("a*c", "abcd") && !matches("a", "ab") && matches("*-*.x", "n-1.x"));
    }
}
