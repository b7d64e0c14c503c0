//! Scenarios: a simulation as data.
//!
//! A scenario says what is sent (traffic), by whom (nodes, accounts), under
//! which policies, to whom (networks), what goes wrong meanwhile (faults), and
//! what must come out (expected ranges). It is read from TOML in two steps: the
//! text into fields, where every unknown key is an error, then the fields
//! against one another, where every error names the place.

pub mod account;
pub mod action;
pub mod faults;
pub mod library;
pub mod limit;
pub mod policy;
pub mod random;
mod random_leased;
pub mod random_store;
pub mod random_world;
pub mod store;

use std::collections::BTreeSet;

use outflow_core::time::{Nanos, Wall};
use serde::Deserialize;

use crate::expect::Expectations;
use crate::network::spec::NetworkSpec;
use crate::traffic::spec::TrafficSpec;
use crate::units::{Moment, Span};
use account::AccountData;
use action::Action;
use faults::Faults;
use policy::{HeadroomData, PolicyData};
use store::StoreData;

/// One simulation as data.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name: that of its file.
    #[serde(skip)]
    pub name: String,
    /// One line that says what it shows.
    pub title: String,
    /// What happens in it and why it matters.
    #[serde(default)]
    pub about: String,
    /// How long traffic arrives.
    pub duration: Span,
    /// How long it may then go on until every message is settled; it stops at
    /// once if not given.
    pub drain: Option<Span>,
    /// What the wall clock reads at the start.
    #[serde(default = "a_monday_morning")]
    pub starts_at: Moment,
    /// How many nodes share the work.
    #[serde(default = "one")]
    pub nodes: u32,
    /// Where the counts of limits live.
    #[serde(default)]
    pub ledger: Ledger,
    /// Which store nodes have.
    #[serde(default)]
    pub store: StoreData,
    /// Whether nodes learn what networks take from what they refuse.
    #[serde(default)]
    pub learn: bool,
    /// What limits keep for the classes above.
    #[serde(default)]
    pub headroom: HeadroomData,
    /// What healthy accounts do while others of their pool are blocked.
    #[serde(default)]
    pub under_pressure: PressureText,
    /// Which limits the chart draws; the busiest one if none.
    #[serde(default)]
    pub chart: Vec<String>,
    /// Who sends.
    #[serde(default, rename = "account")]
    pub accounts: Vec<AccountData>,
    /// What operators wrote.
    #[serde(default, rename = "policy")]
    pub policies: Vec<PolicyData>,
    /// Who receives.
    #[serde(default, rename = "network")]
    pub networks: Vec<NetworkSpec>,
    /// What is sent.
    #[serde(rename = "traffic")]
    pub traffic: Vec<TrafficSpec>,
    /// What operators do meanwhile.
    #[serde(default, rename = "action")]
    pub actions: Vec<Action>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Faults,
    /// What must come out.
    #[serde(default)]
    pub expect: Expectations,
    /// A second run that the first is compared with.
    pub baseline: Option<Baseline>,
    /// What must come out of the same scenario without any fault.
    #[serde(default)]
    pub expect_calm: Expectations,
}

fn one() -> u32 {
    1
}

/// 08:00 UTC on Monday, 2 March 2026.
fn a_monday_morning() -> Moment {
    Moment(Wall(1_772_438_400_000_000_000))
}

/// What healthy accounts do while others of their pool are blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PressureText {
    /// They keep the rate of the minute before.
    #[default]
    Keep,
    /// They take over what the others would have sent, up to their own limits.
    Fill,
}

/// Where the counts of limits live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ledger {
    /// In the one node there is.
    #[default]
    Owned,
    /// In a ledger that nodes lease tokens from.
    Leased,
}

/// The same scenario with something taken away.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Baseline {
    /// The sources that are silent in it.
    pub without: Vec<String>,
    /// The burst of every rate in it.
    pub burst: Option<u32>,
    /// Over how many destinations each source is spread in it.
    pub destinations: Option<u32>,
}

/// Why a text is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// It cannot be read.
    #[error("{name}: {reason}")]
    Unreadable {
        /// Which scenario.
        name: String,
        /// Line, column and what is wrong there.
        reason: String,
    },
    /// It contradicts itself.
    #[error("{name}: {}", problems.join("; "))]
    Unsound {
        /// Which scenario.
        name: String,
        /// Each with its place.
        problems: Vec<String>,
    },
}

impl Scenario {
    /// Reads and checks a scenario.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Self =
            toml::from_str(text).map_err(|error| ScenarioError::Unreadable {
                name: name.to_owned(),
                reason: error.to_string(),
            })?;
        scenario.name = name.to_owned();
        scenario.checked()
    }

    /// This scenario, if nothing in it contradicts itself.
    pub fn checked(self) -> Result<Self, ScenarioError> {
        let problems = self.problems();
        if problems.is_empty() {
            return Ok(self);
        }
        Err(ScenarioError::Unsound {
            name: self.name,
            problems,
        })
    }

    /// What the wall clock reads at the start.
    pub fn wall_at_zero(&self) -> Wall {
        self.starts_at.0
    }

    /// Whether healthy accounts keep their rate while others are blocked.
    pub fn keeps_under_pressure(&self) -> bool {
        self.under_pressure == PressureText::Keep
    }

    /// When the simulation ends at the latest.
    pub fn ends(&self) -> Nanos {
        self.duration.0 + self.drain.unwrap_or_default().0
    }

    /// When faults have ended; never if they go on.
    pub fn healed_at(&self) -> Option<Nanos> {
        let calm = || self.faults == self.faults.calmed();
        let healed = self.faults.heal_at.map(|span| span.0);
        healed.or_else(|| calm().then_some(Nanos::ZERO))
    }

    /// All pools that ever have an account.
    pub fn pools(&self) -> BTreeSet<&str> {
        let later = self.actions.iter().filter_map(|it| it.account.as_ref());
        let accounts = self.accounts.iter().chain(later);
        accounts.map(|account| account.pool.as_str()).collect()
    }

    /// Whether some messages have other accounts than others: there are several
    /// pools, or accounts of one tenant.
    pub fn has_uneven_accounts(&self) -> bool {
        let later = self.actions.iter().filter_map(|it| it.account.as_ref());
        let mut accounts = self.accounts.iter().chain(later);
        self.pools().len() > 1 || accounts.any(|account| account.tenant.is_some())
    }

    /// The run to compare with, if expectations ask for one.
    pub fn baseline(&self) -> Option<Self> {
        let baseline = self.baseline.as_ref()?;
        let mut scenario = self.clone();
        scenario.name = format!("{} (baseline)", self.name);
        scenario.baseline = None;
        scenario.expect = Expectations::default();
        scenario.expect_calm = Expectations::default();
        scenario
            .traffic
            .retain(|source| !baseline.without.contains(&source.name));
        if let Some(destinations) = baseline.destinations {
            for source in &mut scenario.traffic {
                source.destinations = destinations;
            }
        }
        if let Some(burst) = baseline.burst {
            for policy in scenario.policies.iter_mut().filter(|it| it.rate.is_some()) {
                policy.burst = Some(burst);
            }
            for account in scenario.accounts.iter_mut().filter(|it| it.rate.is_some()) {
                account.burst = Some(burst);
            }
        }
        Some(scenario)
    }

    /// The same scenario without faults, if anything is expected of it.
    pub fn calm(&self) -> Option<Self> {
        if self.expect_calm.is_empty() {
            return None;
        }
        let mut scenario = self.clone();
        scenario.name = format!("{} (calm)", self.name);
        scenario.faults = self.faults.calmed();
        scenario.expect = std::mem::take(&mut scenario.expect_calm);
        scenario.baseline = None;
        Some(scenario)
    }

    fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.duration.0 == Nanos::ZERO {
            found.push("duration: must be above 0".to_owned());
        }
        if self.nodes == 0 {
            found.push("nodes: must be at least 1".to_owned());
        }
        if self.nodes > 1 && self.ledger == Ledger::Owned {
            found.push("ledger: several nodes must lease their limits".to_owned());
        }
        if self.accounts.is_empty() {
            found.push("account: there must be one".to_owned());
        }
        if self.networks.is_empty() {
            found.push("network: there must be one".to_owned());
        }
        for account in &self.accounts {
            place(&mut found, "account", &account.name, account.problems());
        }
        for (index, policy) in self.policies.iter().enumerate() {
            place(&mut found, "policy", &index.to_string(), policy.problems());
        }
        for network in &self.networks {
            place(&mut found, "network", &network.name, network.problems());
        }
        for source in &self.traffic {
            place(&mut found, "traffic", &source.name, source.problems());
        }
        for (index, action) in self.actions.iter().enumerate() {
            let problems = action.problems(self);
            place(&mut found, "action", &index.to_string(), problems);
        }
        found.extend(self.faults.problems(self.nodes));
        self.check_names(&mut found);
        self.check_references(&mut found);
        found
    }

    fn check_names(&self, found: &mut Vec<String>) {
        let mut unique = |kind: &str, names: Vec<&str>| {
            let mut seen = BTreeSet::new();
            for name in names {
                if !seen.insert(name) {
                    found.push(format!("{kind} {name:?}: there are two of this name"));
                }
            }
        };
        unique(
            "account",
            self.accounts.iter().map(|it| it.name.as_str()).collect(),
        );
        unique(
            "network",
            self.networks.iter().map(|it| it.name.as_str()).collect(),
        );
        unique(
            "traffic",
            self.traffic.iter().map(|it| it.name.as_str()).collect(),
        );
    }

    fn check_references(&self, found: &mut Vec<String>) {
        for account in &self.accounts {
            if let Some(relay) = &account.relay
                && !self.networks.iter().any(|it| it.name == *relay)
            {
                let name = &account.name;
                found.push(format!("account {name:?}: there is no network {relay:?}"));
            }
        }
        for source in &self.traffic {
            if !self.accounts.iter().any(|it| it.pool == source.pool) {
                found.push(format!(
                    "traffic {:?}: no account is in pool {:?}",
                    source.name, source.pool
                ));
            }
            if self.network_of(&source.destination.0).is_none() {
                found.push(format!(
                    "traffic {:?}: no network stands for {}",
                    source.name, source.destination.0
                ));
            }
        }
        for name in self.baseline.iter().flat_map(|it| &it.without) {
            if !self.traffic.iter().any(|source| source.name == *name) {
                found.push(format!("baseline: there is no traffic {name:?}"));
            }
        }
        if self.baseline.is_none() && self.expect.needs_baseline() {
            found.push("expect: compares with a baseline that is not given".to_owned());
        }
    }

    /// The network that stands for `destination`, by its place in the list.
    pub fn network_of(
        &self,
        destination: &outflow_core::destination::Destination,
    ) -> Option<usize> {
        let named = self
            .networks
            .iter()
            .position(|it| it.destinations.iter().any(|name| name.0 == *destination));
        named.or_else(|| {
            self.networks
                .iter()
                .position(|it| it.destinations.is_empty())
        })
    }
}

fn place(found: &mut Vec<String>, kind: &str, name: &str, problems: Vec<String>) {
    found.extend(
        problems
            .into_iter()
            .map(|problem| format!("{kind} {name:?}: {problem}")),
    );
}

#[cfg(test)]
mod tests;
