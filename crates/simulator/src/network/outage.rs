//! The calendar of outages.

use outflow_core::time::Nanos;
use serde::Deserialize;

use crate::units::Span;

/// One outage, or one that recurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// When it begins, after the start of the simulation.
    pub at: Span,
    /// How long it lasts.
    pub lasts: Span,
    /// From one beginning to the next, if it recurs.
    pub every: Option<Span>,
    /// What it looks like from outside.
    #[serde(default)]
    pub kind: OutageKind,
}

impl OutageSpec {
    /// Whether it ends before it begins again.
    pub fn is_sound(&self) -> bool {
        self.every.is_none_or(|every| every > self.lasts)
    }

    fn covers(&self, now: Nanos) -> bool {
        let Some(since) = now.0.checked_sub(self.at.0.0) else {
            return false;
        };
        let since = match self.every {
            Some(every) => since % every.0.0.max(1),
            None => since,
        };
        since < self.lasts.0.0
    }
}

/// What an outage looks like from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutageKind {
    /// Connections are refused, open ones are reset.
    #[default]
    Refuse,
    /// Nothing answers.
    Timeout,
    /// Everything is answered with a temporary failure.
    Fail,
    /// Messages are read and never answered.
    Hang,
}

/// All outages of a network.
#[derive(Clone, Debug)]
pub struct Outages(Vec<OutageSpec>);

impl Outages {
    /// A calendar of these.
    pub fn new(specs: Vec<OutageSpec>) -> Self {
        Self(specs)
    }

    /// The outage that is on at `now`.
    pub fn at(&self, now: Nanos) -> Option<OutageKind> {
        self.0
            .iter()
            .find(|spec| spec.covers(now))
            .map(|spec| spec.kind)
    }
}
