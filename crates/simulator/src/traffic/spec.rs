//! A source of traffic as data.

use outflow_core::message::Channel;
use serde::Deserialize;

use super::pattern::Pattern;
use crate::random::Random;
use crate::units::{ClassText, DestinationText, Share, Span};

/// Who sends what, to whom, how often.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Its name in the scenario, and its tenant's unless one is given.
    pub name: String,
    /// How urgent it is.
    #[serde(default)]
    pub class: ClassText,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Over how many tenants it is spread, numbered `NAME-1`, `NAME-2`, ...
    #[serde(default = "one")]
    pub tenants: u32,
    /// What it belongs to.
    pub campaign: Option<String>,
    /// Where it goes.
    pub destination: DestinationText,
    /// Over how many destinations it is spread: `NAME-1`, `NAME-2`, ... of the
    /// same kind if there are several.
    #[serde(default = "one")]
    pub destinations: u32,
    /// Over how many domains it is spread, all of which resolve to
    /// `destination`; none if it is addressed there directly.
    #[serde(default)]
    pub domains: u32,
    /// How long each of those takes to resolve.
    #[serde(default)]
    pub dns: Span,
    /// Which accounts may send it.
    #[serde(default = "default_pool")]
    pub pool: String,
    /// The domain it is sent from.
    pub sender_domain: Option<String>,
    /// How it travels.
    #[serde(default)]
    pub channel: ChannelText,
    /// What each message costs.
    #[serde(default)]
    pub cost: Cost,
    /// How long after its due time a message is of use.
    pub expires: Option<Span>,
    /// How long after its arrival it is due.
    #[serde(default)]
    pub not_before: Span,
    /// Over how many recipients it is spread; each message its own if 0.
    #[serde(default)]
    pub recipients: u64,
    /// When the source starts.
    #[serde(default)]
    pub starts: Span,
    /// When it ends; with the scenario if never.
    pub ends: Option<Span>,
    /// When messages arrive.
    pub arrive: Pattern,
}

fn one() -> u32 {
    1
}

fn default_pool() -> String {
    "default".to_owned()
}

impl TrafficSpec {
    /// What in these numbers cannot be meant.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.tenants == 0 {
            found.push("tenants: must be at least 1".to_owned());
        }
        if self.destinations == 0 {
            found.push("destinations: must be at least 1".to_owned());
        }
        if self.destinations > 1 && self.domains > 0 {
            found.push("destinations: its domains resolve to one".to_owned());
        }
        if self.ends.is_some_and(|ends| ends <= self.starts) {
            found.push("ends: is not after its start".to_owned());
        }
        if self.domains == 0 && self.dns != Span::default() {
            found.push("dns: there are no domains to resolve".to_owned());
        }
        if let Some(problem) = self.cost.problem() {
            found.push(format!("cost: {problem}"));
        }
        if let Some(problem) = self.arrive.problem() {
            found.push(format!("arrive: {problem}"));
        }
        found
    }
}

/// How a message travels, by its word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelText {
    /// Mail.
    #[default]
    Email,
    /// Text messages.
    Sms,
    /// Push notifications.
    Push,
}

impl From<ChannelText> for Channel {
    fn from(text: ChannelText) -> Self {
        match text {
            ChannelText::Email => Self::Email,
            ChannelText::Sms => Self::Sms,
            ChannelText::Push => Self::Push,
        }
    }
}

/// What messages cost.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Cost {
    /// All the same.
    Fixed(u32),
    /// Some this, some that: `[[1, 0.9], [5, 0.1]]`.
    Mixed(Vec<(u32, Share)>),
}

impl Default for Cost {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl Cost {
    /// What the next message costs.
    pub fn draw(&self, random: &mut Random) -> u32 {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Mixed(costs) => {
                let mut drawn = random.unit() * costs.iter().map(|(_, share)| share.0).sum::<f64>();
                costs
                    .iter()
                    .find(|(_, share)| {
                        drawn -= share.0;
                        drawn < 0.0
                    })
                    .or(costs.last())
                    .map_or(1, |(cost, _)| *cost)
            }
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let sound = match self {
            Self::Fixed(cost) => *cost > 0,
            Self::Mixed(costs) => !costs.is_empty() && costs.iter().all(|(cost, _)| *cost > 0),
        };
        (!sound).then_some("must be at least 1")
    }
}
