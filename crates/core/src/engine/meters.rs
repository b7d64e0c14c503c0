//! What limits made wait, for metrics. Asking changes nothing.

use super::Engine;
use crate::class::Class;
use crate::name::Name;
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::policy::scope_set::ScopeSet;
use crate::schedule::waits::{PlaceWaits, Waits};

/// What the limits of one account hold up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountMeter {
    /// Which account.
    pub account: Name,
    /// How often its limits made a message wait: each head that stood at a gate
    /// of its pool when they shut for its class, or came to one before they
    /// opened again, once for each time they shut. Limits of the account at one
    /// destination only, and waits that the far end asked for, do not count.
    pub held: u64,
    /// Messages that are ready and wait for an account of its pool, in flows
    /// of classes for which its limits are shut now.
    pub waiting: u64,
}

impl Engine {
    /// How long heads waited so far, by the scopes of the limits they waited
    /// at. `account` is the wait at a gate: for an account whose limits are
    /// open and that has a session. `recipient` has counts only: those who are
    /// refused there step aside.
    pub fn limit_waits(&self) -> impl Iterator<Item = (ScopeSet, Waits)> {
        let recipient = Waits {
            came: self.counter.recipients.refused,
            ..Waits::default()
        };
        self.schedule
            .waits()
            .map(|(scopes, waits)| (scopes, *waits))
            .chain([(ScopeSet::of(&[Scope::Recipient]), recipient)])
    }

    /// How long heads waited at one limit so far; none if flows do not wait
    /// there.
    pub fn waits_at(&self, key: &LimitKey) -> Option<PlaceWaits> {
        Some(self.schedule.waits_at(self.limits.find(key)?))
    }

    /// What the limits of each account hold up. Looks at every flow: for use
    /// every few seconds.
    pub fn account_meters(&self) -> Vec<AccountMeter> {
        let desk = &self.counter.desk;
        let mut meters: Vec<AccountMeter> = Vec::new();
        let mut shut = Vec::new();
        for (id, account) in desk.accounts() {
            let (classes, held) = desk.holdups(id);
            shut.push((account.pool, classes));
            meters.push(AccountMeter {
                account: account.spec.id.clone(),
                held,
                waiting: 0,
            });
        }
        let waiting = self.waiting_at_gates();
        for (meter, (pool, classes)) in meters.iter_mut().zip(shut) {
            let of_pool = waiting.get(pool.index()).copied().unwrap_or_default();
            meter.waiting = Class::ALL
                .into_iter()
                .zip(of_pool)
                .filter(|(class, _)| classes.contains(*class))
                .map(|(_, waiting)| waiting)
                .sum();
        }
        meters
    }

    /// Messages of flows that stand at a gate, by pool and class.
    fn waiting_at_gates(&self) -> Vec<[u64; Class::COUNT]> {
        let mut waiting: Vec<[u64; Class::COUNT]> = Vec::new();
        for (id, flow) in self.counter.flows.range(0) {
            let Some(lane) = flow.lane.map(|lane| self.counter.desk.lane(lane)) else {
                continue;
            };
            if self.schedule.place_of(id) != Some(lane.gate) {
                continue;
            }
            if waiting.len() <= lane.pool.index() {
                waiting.resize(lane.pool.index() + 1, Default::default());
            }
            let of_pool = waiting.get_mut(lane.pool.index());
            if let Some(count) = of_pool.and_then(|it| it.get_mut(flow.key.class.index())) {
                *count += flow.waiting();
            }
        }
        waiting
    }
}
