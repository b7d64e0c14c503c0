//! Which rates are worth a row of the history: those that changed, those that
//! are gone, and from time to time those that hold on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outflow_core::policy::facet::Facet;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::scope::Scope;
use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::history::RateInForce;

/// A rate that has not changed is written again after so long, so that a
/// report need not look back further.
const AGAIN_AFTER: Nanos = Nanos::from_secs(600);
/// Limits whose rates are followed.
const LIMITS_MAX: usize = 5_000;

/// What was last written of each limit.
#[derive(Debug, Default)]
pub struct Rates {
    written: BTreeMap<Arc<LimitKey>, (Wall, f64)>,
}

impl Rates {
    /// Goes on where the last process was, as far as a history tells: limits
    /// that are gone since then are said to be.
    pub fn recalled(rates: &[RateInForce]) -> Self {
        let known = rates.iter().filter_map(|row| {
            let key: LimitKey = row.limit.parse().ok()?;
            Some((Arc::new(key), (row.at, row.rate?)))
        });
        Self {
            written: known.collect(),
        }
    }

    /// The rows to write at a time, given all limits that there are; `is_busy`
    /// says whether messages flowed to a destination.
    pub fn rows(
        &mut self,
        at: Wall,
        limits: impl Iterator<Item = (Arc<LimitKey>, Option<f64>)>,
        is_busy: impl Fn(&str) -> bool,
    ) -> Vec<RateInForce> {
        let mut rows = Vec::new();
        let mut there = BTreeSet::new();
        for (key, rate) in limits {
            let Some((destination, rate)) = destination_of(&key).zip(rate) else {
                continue;
            };
            let is_due = match self.written.get(&key) {
                None => self.written.len() < LIMITS_MAX,
                Some((_, old)) if *old != rate => true,
                Some((then, _)) => at.since(*then) >= AGAIN_AFTER && is_busy(&destination),
            };
            if is_due {
                self.written.insert(Arc::clone(&key), (at, rate));
                rows.push(row(at, &key, destination, Some(rate)));
            }
            there.insert(key);
        }
        // What is gone holds nobody any more, and makes room.
        self.written.retain(|key, _| {
            let is_there = there.contains(key);
            if !is_there && let Some(destination) = destination_of(key) {
                rows.push(row(at, key, destination, None));
            }
            is_there
        });
        rows
    }
}

fn row(at: Wall, key: &LimitKey, destination: String, rate: Option<f64>) -> RateInForce {
    RateInForce {
        at,
        limit: key.to_string(),
        destination,
        rate,
    }
}

/// The destination that a rate is about, as `isp:google`. Rates of single
/// tenants, campaigns and recipients say nothing about a destination.
fn destination_of(key: &LimitKey) -> Option<String> {
    let about = ScopeSet::DESTINATIONS
        .with(Scope::Account)
        .with(Scope::Ip)
        .with(Scope::Pool);
    let is_rate = key.facet().is_rate() || *key.facet() == Facet::Learnt;
    if !is_rate || !key.scopes().without(about).is_empty() {
        return None;
    }
    let mut parts = key.parts().iter();
    let (scope, name) = parts.find(|(scope, _)| ScopeSet::DESTINATIONS.has(*scope))?;
    Some(format!("{}:{name}", scope.as_str()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outflow_core::policy::key::LimitKey;
    use outflow_core::time::{Nanos, Wall};

    use super::{RateInForce, Rates};

    /// What is written at a time, by limit.
    fn rows(rates: &mut Rates, secs: u64, limits: &[(&str, f64)]) -> Vec<(String, Option<f64>)> {
        let limits = limits.iter().map(|(key, rate)| {
            let key: LimitKey = key.parse().expect("a limit");
            (Arc::new(key), Some(*rate))
        });
        let at = Wall(0) + Nanos::from_secs(secs);
        let rows = rates.rows(at, limits, |destination| destination == "isp:google");
        rows.into_iter().map(|row| (row.limit, row.rate)).collect()
    }

    #[test]
    fn what_went_while_no_process_ran_is_said_to_be_gone() {
        let before = |limit: &str, rate| RateInForce {
            at: Wall(0),
            limit: limit.to_owned(),
            destination: "isp:google".to_owned(),
            rate,
        };
        let mut rates = Rates::recalled(&[
            before("isp:google", Some(40.0)),
            before("account:a/isp:google", Some(5.0)),
            before("account:b/isp:google", None),
        ]);
        let rows = rows(&mut rates, 10, &[("isp:google", 40.0)]);
        assert_eq!(rows, [("account:a/isp:google".to_owned(), None)]);
    }

    #[test]
    fn a_limit_that_is_gone_is_said_to_be_gone_once() {
        let (own, learnt) = ("isp:google", "account:a/isp:google#learnt");
        let mut rates = Rates::default();
        let row = |limit: &str, rate| (limit.to_owned(), rate);
        let first = rows(&mut rates, 0, &[(own, 40.0), (learnt, 5.0)]);
        assert_eq!(first, [row(own, Some(40.0)), row(learnt, Some(5.0))]);
        assert_eq!(rows(&mut rates, 10, &[(own, 40.0), (learnt, 5.0)]), []);
        assert_eq!(rows(&mut rates, 20, &[(own, 40.0)]), [row(learnt, None)]);
        assert_eq!(rows(&mut rates, 30, &[(own, 40.0)]), []);
        let again = rows(&mut rates, 40, &[(own, 40.0), (learnt, 5.0)]);
        assert_eq!(again, [row(learnt, Some(5.0))]);
        let later = rows(&mut rates, 640, &[(own, 40.0), (learnt, 5.0)]);
        assert_eq!(later.len(), 2, "what holds on is said from time to time");
    }
}
