//! A policy as data.

use std::collections::BTreeMap;

use outflow_core::class::Class;
use outflow_core::limit::spec::{Headroom, LimitSpec};
use serde::Deserialize;

use super::limit::{LimitData, bucket};
use crate::units::{RateText, Share, Span};

/// What an operator wrote, or changes while the scenario runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyData {
    /// What it governs: `{ isp = "google" }`, `{ tenant = "*" }`.
    #[serde(rename = "match")]
    pub matches: BTreeMap<String, String>,
    /// When it takes effect; from the start if not given.
    pub from: Option<Span>,
    /// When it is taken away again; never if not given.
    pub until: Option<Span>,
    /// How fast.
    pub rate: Option<RateText>,
    /// Up to which rate the controller may go; it may not change `rate` if not
    /// given.
    pub max_rate: Option<RateText>,
    /// How many at once.
    pub burst: Option<u32>,
    /// How many in flight.
    pub concurrency: Option<u32>,
    /// Further limits.
    #[serde(default)]
    pub limits: Vec<LimitData>,
    /// The weight of a tenant's turns.
    pub weight: Option<u32>,
}

impl PolicyData {
    /// A policy about one thing: `PolicyData::about("isp", "google")`.
    pub fn about(scope: &str, name: &str) -> Self {
        Self {
            matches: BTreeMap::from([(scope.to_owned(), name.to_owned())]),
            ..Self::default()
        }
    }

    /// Its limits: rate, concurrency, the others.
    pub fn specs(&self) -> Result<Vec<LimitSpec>, String> {
        let rate = self.rate.map(|rate| bucket(rate, self.burst));
        let concurrency = self
            .concurrency
            .map(|slots| LimitData::Concurrency { slots }.spec());
        rate.into_iter()
            .chain(concurrency)
            .chain(self.limits.iter().map(LimitData::spec))
            .collect()
    }

    /// What in these numbers cannot be meant.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Err(problem) = self.specs() {
            found.push(problem);
        }
        if self.matches.is_empty() {
            found.push("match: names nothing".to_owned());
        }
        if self
            .until
            .is_some_and(|until| until <= self.from.unwrap_or_default())
        {
            found.push("until: is not after its start".to_owned());
        }
        if self.burst.is_some() && self.rate.is_none() {
            found.push("burst: has no rate".to_owned());
        }
        if self.max_rate.is_some() && self.rate.is_none() {
            found.push("max_rate: has no rate to start from".to_owned());
        }
        if self.weight == Some(0) {
            found.push("weight: must be at least 1".to_owned());
        }
        found
    }
}

/// What limits keep for the classes above: `{ critical = 0.2 }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadroomData {
    /// For critical.
    pub critical: Share,
    /// For high and above.
    pub high: Share,
    /// For normal and above.
    pub normal: Share,
}

impl HeadroomData {
    /// The share kept for `class` and those above.
    pub fn share(&self, class: Class) -> f64 {
        match class {
            Class::Critical => self.critical.0,
            Class::High => self.high.0,
            Class::Normal => self.normal.0,
            Class::Low => 0.0,
        }
    }
}

impl From<HeadroomData> for Headroom {
    fn from(data: HeadroomData) -> Self {
        Self(Class::ALL.map(|class| (data.share(class) * 1_000.0).round() as u16))
    }
}
