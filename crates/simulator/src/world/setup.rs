//! From the data of a scenario to what an engine takes.

use std::collections::BTreeMap;

use outflow_core::account::{AccountSpec, SessionKind, Sessions};
use outflow_core::limit::spec::{Headroom, LimitSpec};
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare, WhenAway};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

use super::clock::NodeClock;
use super::ledger::{SimLedger, link_faults};
use super::player::Player;
use super::stores;
use crate::memory::ledger::MemoryLedger;
use crate::random::Random;
use crate::scenario::Scenario;
use crate::scenario::account::{AccountData, SessionText};
use crate::scenario::policy::{HeadroomData, PolicyData};

/// The accounts of a scenario.
pub fn accounts(scenario: &Scenario) -> Result<Vec<AccountSpec>, String> {
    let mut specs = Vec::new();
    for data in &scenario.accounts {
        for name in data.names() {
            specs.push(account(data, &name)?);
        }
    }
    Ok(specs)
}

pub fn account(data: &AccountData, name: &str) -> Result<AccountSpec, String> {
    let defaults = Sessions::default();
    let max_connections = data.connections.unwrap_or(defaults.max_connections);
    let named = |text: &Option<String>| text.as_deref().map(Name::from);
    Ok(AccountSpec {
        id: Name::from(name),
        pool: Name::from(data.pool.as_str()),
        ip: named(&data.ip),
        brand: named(&data.brand),
        tenant: named(&data.tenant),
        sessions: Sessions {
            kind: match (data.sessions, &data.relay) {
                (SessionText::Connections, None) => SessionKind::Connections,
                (SessionText::Connections, Some(_)) => SessionKind::RelayConnections,
                (SessionText::Slots, _) => SessionKind::Slots,
            },
            max_connections,
            per_destination: data.per_destination.unwrap_or(max_connections),
            messages_per_session: data
                .messages_per_session
                .unwrap_or(defaults.messages_per_session),
            connect_rate: data.connect_rate.map(|rate| rate.rate),
            idle_timeout: data
                .idle_timeout
                .map_or(defaults.idle_timeout, |span| span.0),
        },
        limits: data.specs()?,
    })
}

/// The networks to which accounts connect whatever they send.
pub fn relays(scenario: &Scenario) -> BTreeMap<Name, usize> {
    let relays = scenario.accounts.iter().filter_map(|data| {
        let relay = data.relay.as_ref()?;
        let network = scenario.networks.iter().position(|it| it.name == *relay)?;
        Some(data.names().into_iter().map(move |name| (name, network)))
    });
    let named = relays.flatten();
    named.map(|(name, no)| (Name::from(name), no)).collect()
}

/// The policies of a scenario that are in force at `at`.
pub fn policies(scenario: &Scenario, at: Nanos) -> Result<Policies, String> {
    let mut policies = Policies::default();
    policies.set_headroom(Headroom::from(headroom(scenario, at)));
    for data in &scenario.policies {
        let begun = data.from.is_none_or(|from| from.0 <= at);
        if begun && data.until.is_none_or(|until| until.0 > at) {
            let policy = policy(data)?;
            policies.insert(policy).map_err(|error| error.to_string())?;
        }
    }
    Ok(policies)
}

/// What limits keep for higher classes: as it was set at the last restart.
fn headroom(scenario: &Scenario, at: Nanos) -> HeadroomData {
    let restarts = scenario.actions.iter().filter(|it| it.at.0 <= at);
    let set = restarts.filter_map(|it| Some((it.at, it.restart.as_ref()?.headroom?)));
    set.max_by_key(|(at, _)| *at)
        .map_or(scenario.headroom, |(_, headroom)| headroom)
}

fn policy(data: &PolicyData) -> Result<Policy, String> {
    let pairs = data
        .matches
        .iter()
        .map(|(scope, name)| (scope.as_str(), name.as_str()));
    let matches = Match::from_pairs(pairs).map_err(|error| error.to_string())?;
    let mut policy = Policy::new(matches);
    policy.weight = data.weight;
    // A limit that is open while its ledger is away promises nothing then, and
    // an answer that gets lost is such a time: nobody could judge it.
    policy.when_away = Some(WhenAway::Closed);
    for spec in data.specs()? {
        match spec {
            LimitSpec::TokenBucket { rate, burst } if policy.rate.is_none() => {
                policy.rate = Some(RateOrShare::Rate(rate));
                policy.burst = Some(burst);
                policy.max_rate = data.max_rate.map(|most| most.rate);
            }
            LimitSpec::Concurrency { slots } if policy.concurrency.is_none() => {
                policy.concurrency = Some(slots);
            }
            other => policy.limits.push(other),
        }
    }
    Ok(policy)
}

/// The times at which policies change.
pub fn changes(scenario: &Scenario) -> Vec<Nanos> {
    let mut times: Vec<Nanos> = scenario
        .policies
        .iter()
        .flat_map(|data| [data.from, data.until])
        .flatten()
        .map(|from| from.0)
        .collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// The nodes of a scenario, none of them running yet.
pub fn players(scenario: &Scenario, seed: u64, ledger: Option<&MemoryLedger>) -> Vec<Player> {
    (0..scenario.nodes.max(1))
        .map(|node| {
            let wall = scenario.wall_at_zero();
            let clock = NodeClock::new(node, wall, &scenario.faults.clocks);
            let store = stores::store(scenario, node, seed, &clock);
            let random = Random::named(seed, "node", u64::from(node));
            let ledger = ledger.map_or_else(SimLedger::default, |ledger| {
                SimLedger::linked(ledger, link_faults(scenario, node, seed))
            });
            Player::new(clock, store, ledger, random)
        })
        .collect()
}
