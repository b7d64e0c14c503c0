//! What came out of a run, in numbers.
//!
//! The same run gives the same bytes: maps are ordered, and every figure is a
//! whole number or has three decimals.

use std::collections::BTreeMap;

use outflow_core::time::Nanos;
use serde::Serialize;

use crate::connections::ConnectionFigures;
use crate::expect::Metrics;
use crate::pressure::PressureFigures;
use crate::series::Series;
use crate::tally::{Figures, Fixed};

/// What came out of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Of which scenario.
    pub scenario: String,
    /// With which seed.
    pub seed: u64,
    /// The hash of the trace: equal for equal runs.
    pub trace: String,
    /// How many things happened.
    pub events: u64,
    /// How long the run lasted.
    pub ended_s: Fixed,
    /// When the last message was settled.
    pub finished_s: Fixed,
    /// All messages.
    pub all: Figures,
    /// What was answered, and what went wrong.
    pub answers: Answers,
    /// By class.
    pub classes: BTreeMap<String, Figures>,
    /// By tenant.
    pub tenants: BTreeMap<String, Figures>,
    /// By limit.
    pub limits: BTreeMap<String, LimitUse>,
    /// What accounts that were asked to wait did to the whole, if any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<PressureFigures>,
    /// How busy connections were, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionFigures>,
    /// The run over time.
    pub series: Series,
}

/// What was answered, and what went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// Refused for now, because of the sender's rate or conduct.
    pub throttled: u64,
    /// Refused for now, for any other reason.
    pub deferred: u64,
    /// Refused for good.
    pub refused: u64,
    /// The connection failed.
    pub failed: u64,
    /// Nobody knows.
    pub uncertain: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Messages that the far end took once more.
    pub duplicates: u64,
    /// Bounces after acceptance.
    pub late_bounces: u64,
    /// Nodes that died.
    pub crashes: u64,
}

/// How a limit was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitUse {
    /// Tokens granted.
    pub granted: u64,
    /// What share was used while there was demand.
    pub utilisation: Option<Fixed>,
    /// Its rate per second in thousandths, from each time on.
    #[serde(skip)]
    pub rates: Vec<(Nanos, u64)>,
}

impl LimitUse {
    /// Its rate per second at `at`.
    pub fn rate_at(&self, at: Nanos) -> f64 {
        let until = self.rates.iter().take_while(|(from, _)| *from <= at);
        until
            .last()
            .map_or(0.0, |(_, milli)| *milli as f64 / 1_000.0)
    }
}

impl Summary {
    /// All figures by name, as expectations name them.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::new();
        let mut group = |prefix: String, figures: &Figures| {
            let each = figures.each().into_iter();
            metrics.extend(each.map(|(name, value)| (format!("{prefix}{name}"), value)));
        };
        group(String::new(), &self.all);
        for (class, figures) in &self.classes {
            group(format!("{class}."), figures);
        }
        for (tenant, figures) in &self.tenants {
            group(format!("tenant.{tenant}."), figures);
        }
        for (key, limit) in &self.limits {
            metrics.insert(format!("granted.{key}"), limit.granted as f64);
            if let Some(share) = limit.utilisation {
                metrics.insert(format!("utilisation.{key}"), share.value());
            }
        }
        if let Some(pressure) = &self.pressure {
            metrics.insert("pressure.episodes".to_owned(), pressure.episodes as f64);
            metrics.insert("pressure.kept".to_owned(), pressure.kept.value());
            let recovered = pressure.recovered.map(Fixed::value);
            let recovered = recovered.map(|share| ("pressure.recovered".to_owned(), share));
            metrics.extend(recovered);
        }
        if let Some(connections) = &self.connections {
            metrics.insert("connections.opened".to_owned(), connections.opened as f64);
            metrics.insert("connections.busy".to_owned(), connections.busy.value());
        }
        let (all, answers) = (&self.all, &self.answers);
        let put_off = answers.throttled + answers.deferred;
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        metrics.extend(
            [
                ("deferred_share", ratio(put_off, all.attempts)),
                ("throttled_share", ratio(answers.throttled, all.attempts)),
                ("delivered_share", ratio(all.delivered, all.accepted)),
                ("attempts_per_message", ratio(all.attempts, all.accepted)),
                ("throttled", answers.throttled as f64),
                ("duplicates", answers.duplicates as f64),
                ("retries", answers.retries as f64),
                ("late_bounces", answers.late_bounces as f64),
                ("crashes", answers.crashes as f64),
                ("uncertain", answers.uncertain as f64),
                ("finished_s", self.finished_s.value()),
                ("ended_s", self.ended_s.value()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        metrics
    }
}

#[cfg(test)]
mod tests;
