//! From the data of a scenario to what an engine takes.

use outflow_core::account::{AccountSpec, SessionKind, Sessions};
use outflow_core::limit::spec::{Headroom, LimitSpec};
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

use crate::scenario::Scenario;
use crate::scenario::account::{AccountData, SessionText};
use crate::scenario::policy::PolicyData;

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

fn account(data: &AccountData, name: &str) -> Result<AccountSpec, String> {
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
            kind: match data.sessions {
                SessionText::Connections => SessionKind::Connections,
                SessionText::Slots => SessionKind::Slots,
            },
            max_connections,
            per_destination: data.per_destination.unwrap_or(max_connections),
            messages_per_session: data
                .messages_per_session
                .unwrap_or(defaults.messages_per_session),
            connect_rate: data.connect_rate.map(|rate| rate.0),
            idle_timeout: data.idle_timeout.map_or(defaults.idle_timeout, |span| span.0),
        },
        limits: data.specs()?,
    })
}

/// The policies of a scenario that are in force at `at`.
pub fn policies(scenario: &Scenario, at: Nanos) -> Result<Policies, String> {
    let mut policies = Policies::default();
    policies.set_headroom(Headroom::from(scenario.headroom));
    for data in &scenario.policies {
        if data.from.is_none_or(|from| from.0 <= at) {
            let policy = policy(data)?;
            policies.insert(policy).map_err(|error| error.to_string())?;
        }
    }
    Ok(policies)
}

fn policy(data: &PolicyData) -> Result<Policy, String> {
    let pairs = data.matches.iter().map(|(scope, name)| (scope.as_str(), name.as_str()));
    let matches = Match::from_pairs(pairs).map_err(|error| error.to_string())?;
    let mut policy = Policy::new(matches);
    policy.weight = data.weight;
    for spec in data.specs()? {
        match spec {
            LimitSpec::TokenBucket { rate, burst } if policy.rate.is_none() => {
                policy.rate = Some(RateOrShare::Rate(rate));
                policy.burst = Some(burst);
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
    let mut times: Vec<Nanos> =
        scenario.policies.iter().filter_map(|data| data.from).map(|from| from.0).collect();
    times.sort_unstable();
    times.dedup();
    times
}
