//! What operators do while a scenario runs, as data.
//!
//! An action happens once, at a time, at every node. A pause always says how
//! long it lasts, so that everything accepted can be settled in the end.

use std::collections::BTreeMap;

use outflow_core::policy::matcher::Match;
use serde::Deserialize;

use super::account::AccountData;
use super::policy::HeadroomData;
use super::{PressureText, Scenario};
use crate::units::Span;

/// One thing that an operator does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// When.
    pub at: Span,
    /// Nothing that matches is sent for a while.
    pub pause: Option<PauseAction>,
    /// What matches and waits is withdrawn.
    pub cancel: Option<CancelAction>,
    /// What matches and waits for its time is tried at once.
    pub retry: Option<RetryAction>,
    /// What matches and waits goes to another pool.
    #[serde(rename = "move")]
    pub relocate: Option<MoveAction>,
    /// An account is added, or changed if there is one of this name.
    pub account: Option<AccountData>,
    /// The account of this name is removed.
    pub remove_account: Option<String>,
    /// All nodes are restarted, one after the other.
    pub restart: Option<RestartAction>,
}

/// What a match names: `{ tenant = "acme" }`, `{ account = "a", isp = "b" }`.
pub type MatchData = BTreeMap<String, String>;

/// A pause.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseAction {
    /// What it holds.
    #[serde(rename = "match")]
    pub matches: MatchData,
    /// How long.
    pub lasts: Span,
    /// Whether somebody has to lift it. If not, its end is told with it.
    #[serde(default)]
    pub lifted: bool,
}

/// A withdrawal.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelAction {
    /// All that matches.
    #[serde(rename = "match", default)]
    pub matches: MatchData,
    /// So many single messages, whichever.
    #[serde(default)]
    pub singles: u32,
}

/// A retry of what waits for its time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryAction {
    /// All that matches.
    #[serde(rename = "match")]
    pub matches: MatchData,
}

/// A move to another pool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveAction {
    /// All that matches.
    #[serde(rename = "match")]
    pub matches: MatchData,
    /// To which pool.
    pub pool: String,
}

/// A restart of all nodes, which come back with other settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RestartAction {
    /// How long each node is away.
    pub down: Span,
    /// From one node to the next.
    pub apart: Span,
    /// Whether a node finishes first what is in flight. It is killed if not.
    pub graceful: bool,
    /// What limits keep for the classes above from then on.
    pub headroom: Option<HeadroomData>,
    /// What healthy accounts do from then on while others are blocked.
    pub under_pressure: Option<PressureText>,
    /// How many sessions each lane keeps without traffic from then on.
    pub keep_warm: Option<u32>,
}

/// Reads a match.
pub fn read_match(data: &MatchData) -> Result<Match, String> {
    let pairs = data
        .iter()
        .map(|(scope, name)| (scope.as_str(), name.as_str()));
    Match::from_pairs(pairs).map_err(|error| error.to_string())
}

impl Action {
    /// Nothing, at this time.
    pub fn at(at: Span) -> Self {
        Self {
            at,
            pause: None,
            cancel: None,
            retry: None,
            relocate: None,
            account: None,
            remove_account: None,
            restart: None,
        }
    }

    fn count(&self) -> usize {
        [
            self.pause.is_some(),
            self.cancel.is_some(),
            self.retry.is_some(),
            self.relocate.is_some(),
            self.account.is_some(),
            self.remove_account.is_some(),
            self.restart.is_some(),
        ]
        .into_iter()
        .filter(|is_some| *is_some)
        .count()
    }

    /// What in it cannot be meant.
    pub fn problems(&self, scenario: &Scenario) -> Vec<String> {
        let mut found = Vec::new();
        if self.count() != 1 {
            found.push(
                "must be one of pause, cancel, retry, move, account, remove_account and restart"
                    .to_owned(),
            );
        }
        let matches = [
            self.pause.as_ref().map(|it| &it.matches),
            self.cancel
                .as_ref()
                .map(|it| &it.matches)
                .filter(|it| !it.is_empty()),
            self.retry.as_ref().map(|it| &it.matches),
            self.relocate.as_ref().map(|it| &it.matches),
        ];
        for matches in matches.into_iter().flatten() {
            found.extend(read_match(matches).err().map(|it| format!("match: {it}")));
        }
        if let Some(cancel) = &self.cancel
            && cancel.matches.is_empty()
            && cancel.singles == 0
        {
            found.push("cancel: names nothing".to_owned());
        }
        let known = |account: &AccountData| account.names();
        let later = scenario.actions.iter().filter_map(|it| it.account.as_ref());
        let mut accounts = scenario.accounts.iter().chain(later);
        if let Some(name) = &self.remove_account
            && !accounts.any(|account| known(account).contains(name))
        {
            found.push(format!("remove_account: there is no account {name:?}"));
        }
        if let Some(relocate) = &self.relocate
            && !scenario.pools().contains(relocate.pool.as_str())
        {
            let pool = &relocate.pool;
            found.push(format!("move: no account is in pool {pool:?}"));
        }
        if let Some(account) = &self.account {
            found.extend(account.problems());
        }
        found
    }
}
