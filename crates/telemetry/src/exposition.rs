//! Metrics as text that Prometheus reads (format 0.0.4).

use std::fmt::Write;

use crate::declarations::Metric;
use crate::histogram::Reading;

/// The media type of what [`Exposition`] writes.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metrics in the making.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a metric.
    pub fn begin(&mut self, metric: &Metric) {
        let (name, kind) = (metric.name, metric.kind.as_str());
        let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// One value. Labels have the order of the declaration.
    pub fn value(&mut self, metric: &Metric, values: &[&str], value: f64) {
        self.sample(metric.name, "", metric.labels, values, None, value);
    }

    /// One count.
    pub fn count(&mut self, metric: &Metric, values: &[&str], count: u64) {
        self.value(metric, values, count as f64);
    }

    /// One histogram.
    pub fn histogram(&mut self, metric: &Metric, values: &[&str], reading: &Reading<'_>) {
        let (name, labels) = (metric.name, metric.labels);
        let mut total = 0;
        let bounds = reading.bounds.iter().map(|bound| bound.as_secs_f64());
        for (bound, part) in bounds.chain([f64::INFINITY]).zip(&reading.parts) {
            total += part;
            self.sample(name, "_bucket", labels, values, Some(bound), total as f64);
        }
        let sum = reading.sum.as_secs_f64();
        self.sample(name, "_sum", labels, values, None, sum);
        self.sample(name, "_count", labels, values, None, total as f64);
    }

    /// The page.
    pub fn finish(self) -> String {
        self.text
    }

    fn sample(
        &mut self,
        name: &str,
        end: &str,
        labels: &[&str],
        values: &[&str],
        le: Option<f64>,
        value: f64,
    ) {
        debug_assert_eq!(labels.len(), values.len(), "{name}");
        self.text.push_str(name);
        self.text.push_str(end);
        let mut sign = '{';
        for (label, value) in labels.iter().zip(values) {
            self.text.push(sign);
            sign = ',';
            self.text.push_str(label);
            self.text.push_str("=\"");
            self.escape(value);
            self.text.push('"');
        }
        if let Some(le) = le {
            let le = number(le);
            self.put(format_args!("{sign}le=\"{le}\""));
            sign = ',';
        }
        if sign == ',' {
            self.text.push('}');
        }
        self.line(format_args!(" {}", number(value)));
    }

    fn escape(&mut self, value: &str) {
        for letter in value.chars() {
            match letter {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                other => self.text.push(other),
            }
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.text
            .write_fmt(text)
            .expect("a string takes whatever is written");
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        self.put(text);
        self.text.push('\n');
    }
}

fn number(value: f64) -> String {
    if value == f64::INFINITY {
        "+Inf".to_owned()
    } else {
        value.to_string()
    }
}
