//! Where learning begins, and what it never exceeds.
//!
//! What is learnt beside policies stands beside what holds anyway: it begins at
//! what was lately sent, and may climb to the slowest of the other rates. When
//! those change, so does this: else a refusal during a mitigation would keep the
//! mitigated rate for good.

use super::Engine;
use crate::destination::Destination;
use crate::flow::FlowKey;
use crate::limit::spec::{LimitSpec, Rate};
use crate::name::Name;
use crate::policy::applied::Learning;
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::tally::Counter;
use crate::time::Now;

/// What is learnt of something that nothing else limits never exceeds this.
pub(super) const MOST: Rate = Rate::per_second(100_000);
/// The slowest rate at which learning begins.
const SLOWEST_START: f64 = 1.0 / 60.0;

impl Engine {
    /// Where the learning of what `key` names begins and ends.
    pub(super) fn learning(&self, now: &Now, key: &LimitKey) -> Learning {
        let most = self.most_of(key).unwrap_or(MOST);
        // Each of the things it names sent at least as much as all of them
        // together. One that is not counted says nothing.
        let sent = key.parts().iter().filter_map(|(scope, name)| {
            let tally = self.tally(&LimitKey::of(*scope, name.clone()))?;
            Some(tally.lately(now.mono, Counter::Attempts))
        });
        let least = sent.reduce(f64::min);
        let start = least.map_or(most, |sent| Rate::of_per_second(sent.max(SLOWEST_START)));
        Learning {
            start: start.slower(most),
            most,
        }
    }

    /// Brings the bounds of what is learnt of an account up to date.
    pub(super) fn bound_account(&mut self, name: &Name) {
        let first = LimitKey::of(Scope::Account, name.clone());
        let learnt = self.counter.policies.learnt_from(&first);
        let of_account = learnt.take_while(|(key, _)| key.name(Scope::Account) == Some(name));
        let keys: Vec<LimitKey> = of_account.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.bound(&key);
        }
    }

    /// The same of at most `max` things from one on. Where to go on, if there
    /// are more.
    pub(super) fn bound_some(&mut self, from: &LimitKey, max: usize) -> Option<LimitKey> {
        let learnt = self.counter.policies.learnt_from(from);
        let mut keys: Vec<LimitKey> = learnt.map(|(key, _)| key.clone()).take(max + 1).collect();
        let next = (keys.len() > max).then(|| keys.pop()).flatten();
        for key in keys {
            self.bound(&key);
        }
        next
    }

    fn bound(&mut self, key: &LimitKey) {
        let policies = &self.counter.policies;
        if let Some(learning) = policies.learning_of(key)
            && let Some(most) = self.most_of(key)
            && most != learning.most
        {
            let learning = Learning { most, ..learning };
            self.counter.policies.learn(key.clone(), learning);
        }
    }

    /// The slowest of the rates that hold for what `key` names anyway.
    pub(super) fn most_of(&self, key: &LimitKey) -> Option<Rate> {
        let to = key.destination();
        let to = to.unwrap_or_else(|| Destination::unresolved(Name::from("")));
        let mut facts = FlowKey::to(to);
        facts.sender_domain = key.name(Scope::SenderDomain).cloned();
        if let Some(tenant) = key.name(Scope::Tenant) {
            facts.tenant = tenant.clone();
        }
        let desk = &self.counter.desk;
        let policies = &self.counter.policies;
        let mut applied = Vec::new();
        if let Some(name) = key.name(Scope::Account) {
            // One that is not there yet is asked about when it comes.
            let account = desk.account(desk.find_account(name)?)?;
            facts.pool = account.spec.pool.clone();
            applied.extend(policies.for_account(&account.spec));
            applied.extend(policies.for_pair(&account.spec, &facts));
        }
        applied.extend(policies.for_flow(&facts));
        let others = applied.iter().filter(|applied| applied.learning.is_none());
        let rates = others.filter_map(|applied| match applied.spec {
            LimitSpec::TokenBucket { rate, .. } | LimitSpec::LeakyBucket { rate } => Some(rate),
            _ => None,
        });
        Some(rates.fold(MOST, Rate::slower))
    }
}
