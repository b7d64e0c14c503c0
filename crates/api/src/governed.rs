//! What a policy governs now, so that a typing error shows: `isp/gogle` governs
//! nothing.

use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::scope::Scope;
use outflow_core::policy::scope_set::ScopeSet;
use outflow_ports::query::Filter;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ask::ask;
use crate::problem::Problem;
use crate::state::ApiState;

const SAMPLES_MAX: usize = 10;
/// Live messages that are looked at for flows.
const LOOKS: usize = 200;

/// Scopes that an account has.
const SENDER: ScopeSet = ScopeSet::of(&[Scope::Account, Scope::Ip, Scope::Brand, Scope::Pool]);
/// Scopes that a lane has.
const LANE: ScopeSet = ScopeSet::of(&[
    Scope::Global,
    Scope::Pool,
    Scope::Isp,
    Scope::Carrier,
    Scope::Push,
    Scope::Host,
    Scope::Lane,
]);
/// Scopes of which nothing is known here.
const UNKNOWN: ScopeSet = ScopeSet::of(&[Scope::Worker, Scope::Recipient]);

/// What a policy governs now.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Governed {
    /// Accounts that it speaks of.
    accounts: usize,
    /// Lanes that it speaks of.
    lanes: usize,
    /// Flows that it speaks of, among the first live messages that match.
    flows: usize,
    /// Some of their names.
    samples: Vec<String>,
}

impl Governed {
    fn add(&mut self, name: String) {
        if self.samples.len() < SAMPLES_MAX && !self.samples.contains(&name) {
            self.samples.push(name);
        }
    }
}

/// The part of a match over these scopes; none if it has no such terms.
fn part(matches: &Match, scopes: ScopeSet) -> Option<Match> {
    let terms = matches.terms().iter();
    let terms = terms.filter(|(scope, _)| scopes.has(*scope));
    Match::from_pairs(terms.map(|(scope, pattern)| (scope.as_str(), pattern.as_str()))).ok()
}

/// What `matches` governs now.
pub async fn by(state: &ApiState, matches: &Match) -> Result<Governed, Problem> {
    let mut governed = Governed::default();
    let scopes = matches.scopes().without(UNKNOWN);
    if let Some(part) = part(matches, SENDER) {
        for (id, entry) in &state.book.snapshot().accounts {
            if part.matches_account(&entry.account.spec.facts()) {
                governed.accounts += 1;
                governed.add(format!("account:{id}"));
            }
        }
    }
    let sender_only = ScopeSet::of(&[Scope::Account, Scope::Ip, Scope::Brand]);
    let flow_scopes = scopes.without(sender_only);
    if flow_scopes.without(LANE).is_empty() {
        if let Some(part) = part(matches, LANE) {
            lanes(state, &part, &mut governed).await?;
        }
    } else if let Some(part) = part(matches, flow_scopes) {
        flows(state, part, &mut governed).await?;
    }
    Ok(governed)
}

async fn lanes(state: &ApiState, part: &Match, governed: &mut Governed) -> Result<(), Problem> {
    for lane in ask(|then| state.query.lanes(then)).await? {
        let Some(key) = key_of(&lane.name) else {
            continue;
        };
        if part.matches_flow(&key) {
            governed.lanes += 1;
            governed.add(format!("lane:{}", lane.name));
        }
    }
    Ok(())
}

async fn flows(state: &ApiState, part: Match, governed: &mut Governed) -> Result<(), Problem> {
    let filter = Filter {
        states: Vec::new(),
        matches: Some(part),
    };
    let page = ask(|then| state.query.messages(filter, Seq(0), LOOKS, then)).await?;
    let mut keys: Vec<&FlowKey> = page.items.iter().map(|live| &*live.key).collect();
    keys.sort();
    keys.dedup();
    governed.flows = keys.len();
    for key in keys {
        let tenant = &key.tenant;
        governed.add(format!("{}/{} of {tenant}", key.pool, key.destination));
    }
    Ok(())
}

/// A flow of the lane `POOL/KIND:NAME`.
fn key_of(lane: &str) -> Option<FlowKey> {
    let (pool, destination) = lane.rsplit_once('/')?;
    let (kind, name) = destination.split_once(':')?;
    let kinds = [
        DestinationKind::Isp,
        DestinationKind::Carrier,
        DestinationKind::Push,
        DestinationKind::Host,
        DestinationKind::Unresolved,
    ];
    let kind = kinds.into_iter().find(|known| known.as_str() == kind)?;
    let mut key = FlowKey::to(Destination::new(kind, name));
    key.pool = pool.into();
    Some(key)
}
