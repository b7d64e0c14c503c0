//! An account as data.

use outflow_core::limit::spec::LimitSpec;
use serde::Deserialize;

use super::limit::{LimitData, bucket};
use crate::units::{RateText, Span};

/// One account, or several of a kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountData {
    /// Its name; `NAME-1`, `NAME-2`, ... if there are several.
    pub name: String,
    /// How many of this kind there are.
    #[serde(default = "one")]
    pub count: u32,
    /// The pool in which it stands in for others.
    #[serde(default = "default_pool")]
    pub pool: String,
    /// The address it sends from.
    pub ip: Option<String>,
    /// The registered brand it sends for.
    pub brand: Option<String>,
    /// The only tenant it serves.
    pub tenant: Option<String>,
    /// The rate its provider allows.
    pub rate: Option<RateText>,
    /// How many at once.
    pub burst: Option<u32>,
    /// Further caps of its provider.
    #[serde(default)]
    pub limits: Vec<LimitData>,
    /// Whether sessions are connections or request slots.
    #[serde(default)]
    pub sessions: SessionText,
    /// The network to which its connections lead, whatever they carry; those of
    /// each destination if not given.
    pub relay: Option<String>,
    /// How many may be open at once.
    pub connections: Option<u32>,
    /// How many of them to one destination; all if not given.
    pub per_destination: Option<u32>,
    /// How many messages one carries.
    pub messages_per_session: Option<u32>,
    /// How fast new ones may be opened.
    pub connect_rate: Option<RateText>,
    /// How long one is kept without work.
    pub idle_timeout: Option<Span>,
    /// The day of its warm-up on which the scenario starts, from 1; warm if
    /// not given.
    pub warmup_day: Option<u32>,
}

fn one() -> u32 {
    1
}

fn default_pool() -> String {
    "default".to_owned()
}

/// What a session of an account is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionText {
    /// A connection, which takes time to open and may fail to.
    #[default]
    Connections,
    /// A request slot, which opens at once.
    Slots,
}

impl AccountData {
    /// An account without limits.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            count: 1,
            pool: default_pool(),
            ip: None,
            brand: None,
            tenant: None,
            rate: None,
            burst: None,
            limits: Vec::new(),
            sessions: SessionText::Slots,
            relay: None,
            connections: None,
            per_destination: None,
            messages_per_session: None,
            connect_rate: None,
            idle_timeout: None,
            warmup_day: None,
        }
    }

    /// The names of all accounts of this kind.
    pub fn names(&self) -> Vec<String> {
        match self.count {
            0 | 1 => vec![self.name.clone()],
            count => (1..=count).map(|n| format!("{}-{n}", self.name)).collect(),
        }
    }

    /// Its limits, the rate first.
    pub fn specs(&self) -> Result<Vec<LimitSpec>, String> {
        let rate = self.rate.map(|rate| bucket(rate, self.burst));
        rate.into_iter()
            .chain(self.limits.iter().map(LimitData::spec))
            .collect()
    }

    /// What in these numbers cannot be meant.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Err(problem) = self.specs() {
            found.push(problem);
        }
        if self.burst.is_some() && self.rate.is_none() {
            found.push("burst: has no rate".to_owned());
        }
        if self.relay.is_some() && self.sessions == SessionText::Slots {
            found.push("relay: request slots are no connections".to_owned());
        }
        for (what, number) in [
            ("count", Some(self.count)),
            ("connections", self.connections),
            ("per_destination", self.per_destination),
            ("messages_per_session", self.messages_per_session),
        ] {
            if number == Some(0) {
                found.push(format!("{what}: must be at least 1"));
            }
        }
        found
    }
}
