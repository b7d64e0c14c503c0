//! Why accounts cannot open sessions, shown where people ask what a message
//! waits on. The engine only learns that a session did not open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_core::engine::explain::{Explanation, Obstacle};
use outflow_core::engine::standing::Standing;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_ports::intake::Then;
use outflow_ports::query::{
    Depth, Filter, LaneView, LimitView, LiveMessage, Page, Query, TallyView,
};

/// Pairs of account and destination that are remembered.
const PAIRS_MAX: usize = 10_000;

/// What is known of accounts.
#[derive(Debug, Default)]
struct Known {
    /// By destination, as people write it, and account: what was said last.
    pairs: BTreeMap<(String, Name), Arc<str>>,
    /// Which pool an account is of.
    pools: BTreeMap<Name, Name>,
}

/// The last failure of each account at each destination, until it succeeds.
/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Troubles(Arc<Mutex<Known>>);

impl Troubles {
    /// A session opened, or could not, for this reason.
    pub fn note(&self, account: &Name, destination: String, why: Option<String>) {
        let pairs = &mut self.lock().pairs;
        let pair = (destination, account.clone());
        match why {
            None => drop(pairs.remove(&pair)),
            Some(why) => {
                pairs.insert(pair, why.into());
                if pairs.len() > PAIRS_MAX {
                    pairs.pop_first();
                }
            }
        }
    }

    /// An account is new or has changed, and is of this pool.
    pub fn put(&self, account: &Name, pool: &Name) {
        self.remove(account);
        self.lock().pools.insert(account.clone(), pool.clone());
    }

    /// An account is gone.
    pub fn remove(&self, account: &Name) {
        let mut known = self.lock();
        known.pairs.retain(|(_, of), _| of != account);
        known.pools.remove(account);
    }

    /// Where no account of a pool has a session, says why.
    fn explain(&self, pool: &Name, destination: &str, obstacles: &mut Vec<Obstacle>) {
        let Some(at) = obstacles
            .iter()
            .position(|obstacle| *obstacle == Obstacle::NoAccountReady)
        else {
            return;
        };
        let first = (destination.to_owned(), Name::from(""));
        let known = self.lock();
        let of_destination = known
            .pairs
            .range(first..)
            .take_while(|((of, _), _)| of == destination)
            .filter(|((_, account), _)| known.pools.get(account) == Some(pool));
        let found = of_destination.map(|((_, account), why)| Obstacle::NoSession {
            account: account.clone(),
            why: Arc::clone(why),
        });
        let found: Vec<Obstacle> = found.collect();
        if !found.is_empty() {
            obstacles.splice(at..=at, found);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node's answers, and why its accounts cannot open sessions.
#[derive(Debug)]
pub struct Troubled<Q> {
    /// Who knows the rest.
    pub node: Q,
    /// Why sessions do not open.
    pub troubles: Troubles,
}

impl<Q: Query> Query for Troubled<Q> {
    fn message(&self, seq: Seq, then: Then<Option<LiveMessage>>) {
        self.node.message(seq, then);
    }

    fn explain(&self, seq: Seq, then: Then<Option<(LiveMessage, Explanation)>>) {
        let troubles = self.troubles.clone();
        let then: Then<Option<(LiveMessage, Explanation)>> = Box::new(move |mut answer| {
            if let Some((live, explanation)) = &mut answer {
                let destination = live.key.destination.to_string();
                troubles.explain(&live.key.pool, &destination, &mut explanation.waiting_on);
            }
            then(answer);
        });
        self.node.explain(seq, then);
    }

    fn messages(&self, filter: Filter, from: Seq, max: usize, then: Then<Page<LiveMessage>>) {
        self.node.messages(filter, from, max, then);
    }

    fn lanes(&self, then: Then<Vec<LaneView>>) {
        let troubles = self.troubles.clone();
        let then: Then<Vec<LaneView>> = Box::new(move |mut lanes| {
            for lane in &mut lanes {
                // `POOL/KIND:NAME`, and a pool has no slash.
                let destination = lane.name.split_once('/');
                let destination = destination.map_or("", |(_, destination)| destination);
                troubles.explain(&lane.pool, destination, &mut lane.waiting_on);
            }
            then(lanes);
        });
        self.node.lanes(then);
    }

    fn limits(&self, then: Then<Vec<LimitView>>) {
        self.node.limits(then);
    }

    fn standings(&self, then: Then<Vec<Standing>>) {
        self.node.standings(then);
    }

    fn tallies(&self, then: Then<Vec<TallyView>>) {
        self.node.tallies(then);
    }

    fn depth(&self, then: Then<Depth>) {
        self.node.depth(then);
    }

    fn flows_of(&self, tenant: Name, then: Then<(u64, u64)>) {
        self.node.flows_of(tenant, then);
    }
}

#[cfg(test)]
mod tests {
    use outflow_core::engine::explain::Obstacle;
    use outflow_core::name::Name;

    use super::Troubles;

    #[test]
    fn a_failure_is_told_until_a_session_opens() {
        let troubles = Troubles::default();
        let told = || {
            let mut obstacles = vec![Obstacle::Unresolved, Obstacle::NoAccountReady];
            troubles.explain(&Name::from("mail"), "isp:google", &mut obstacles);
            obstacles
        };
        let (a, b, other) = (Name::from("a"), Name::from("b"), Name::from("c"));
        for account in [&a, &b] {
            troubles.put(account, &Name::from("mail"));
        }
        troubles.put(&other, &Name::from("other"));
        let note = |account, destination: &str, why: Option<&str>| {
            troubles.note(account, destination.to_owned(), why.map(str::to_owned));
        };
        note(&a, "isp:yahoo", Some("421 later"));
        note(&other, "isp:google", Some("421 later"));
        assert_eq!(told(), [Obstacle::Unresolved, Obstacle::NoAccountReady]);
        note(&a, "isp:google", Some("535 who are you"));
        note(&b, "isp:google", Some("refused"));
        let of = |account: &Name, why: &str| Obstacle::NoSession {
            account: account.clone(),
            why: why.into(),
        };
        let both = [of(&a, "535 who are you"), of(&b, "refused")];
        assert_eq!(told()[1..], both);
        note(&a, "isp:google", None);
        assert_eq!(told()[1..], both[1..]);
        troubles.remove(&b);
        assert_eq!(told(), [Obstacle::Unresolved, Obstacle::NoAccountReady]);
    }
}
