//! Limits in force for accounts that send straight to providers, beside what
//! those providers are known to take.

use outflow_config::Account;
use outflow_config::policy::built_in::built_in;
use outflow_config::policy::text;
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::policy::applied::Applied;
use outflow_core::policy::matcher::Pattern;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::scope::Scope;
use outflow_core::policy::set::Policies;
use outflow_doctor::subject::{Figures, Pace};

use super::live::Live;

const DAY_NS: u128 = 86_400_000_000_000;

/// The pace of each account at each provider of which something is known.
pub fn of<'a>(
    accounts: impl Iterator<Item = &'a Account>,
    policies: &Policies,
    live: &Live,
) -> Vec<Pace> {
    let known: Vec<(String, Figures)> = built_in()
        .iter()
        .filter_map(|raw| raw.validate().ok())
        .filter_map(|policy| Some((provider(&policy)?, published(&policy))))
        .collect();
    let mut paces = Vec::new();
    // Providers count by address: who sends from none of ours is paced by others.
    for account in accounts.filter(|account| account.spec.ip.is_some() && !account.is_sandbox()) {
        for (provider, known) in &known {
            paces.push(Pace {
                provider: provider.clone(),
                account: account.spec.id.as_str().to_owned(),
                ours: in_force(account, provider, policies),
                known: known.clone(),
                has_traffic: live.traffic_to(&format!("/isp:{provider}")),
            });
        }
    }
    paces
}

fn provider(policy: &Policy) -> Option<String> {
    match policy.matches.pattern(Scope::Isp)? {
        Pattern::Exact(name) => Some(name.as_str().to_owned()),
        Pattern::Any => None,
    }
}

fn published(policy: &Policy) -> Figures {
    let rate = match policy.rate {
        Some(RateOrShare::Rate(rate)) => Some(rate),
        _ => None,
    };
    Figures {
        per_day: rate.map(per_day),
        rate: rate.map(text::rate),
        connections: policy.concurrency,
    }
}

/// What the engine would hold an account to.
fn in_force(account: &Account, provider: &str, policies: &Policies) -> Figures {
    let spec = &account.spec;
    let mut flow = FlowKey::to(Destination::isp(provider));
    flow.pool = spec.pool.clone();
    let of_all = |applied: &Applied| {
        // What holds for one tenant or campaign does not hold for all together.
        let few = [
            Scope::Tenant,
            Scope::Campaign,
            Scope::Class,
            Scope::SenderDomain,
        ];
        few.iter().all(|scope| applied.key.name(*scope).is_none())
    };
    let limits = policies.for_flow(&flow).into_iter();
    let limits = limits.chain(policies.for_pair(spec, &flow));
    let limits = limits.chain(policies.for_account(spec));
    let (mut rate, mut connections) = (None::<Rate>, spec.sessions.per_destination);
    for applied in limits.filter(of_all) {
        if let LimitSpec::Concurrency { slots } = applied.spec {
            connections = connections.min(slots);
        }
        if let Some(own) = applied.spec.shape().rate {
            rate = Some(rate.map_or(own, |other| other.slower(own)));
        }
    }
    Figures {
        per_day: rate.map(per_day),
        rate: rate.map(text::rate),
        connections: Some(connections),
    }
}

fn per_day(rate: Rate) -> u64 {
    let a_day = u128::from(rate.count) * DAY_NS / u128::from(rate.per.0.max(1));
    u64::try_from(a_day).unwrap_or(u64::MAX)
}
