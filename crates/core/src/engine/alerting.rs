//! Refusals that a person must mend, told once and not with every message.

use std::collections::BTreeMap;

use super::Engine;
use super::action::{Action, Alert, Refusal};
use super::learn::Refused;
use crate::name::Name;
use crate::outcome::Outcome;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::reply::Reply;
use crate::time::{Mono, Nanos, Now};

/// Told again after this.
const TOLD_AGAIN: Nanos = Nanos::from_secs(15 * 60);
/// Things that are remembered as told. Beyond that nothing is news: who is told
/// of so many things has enough to mend.
const TOLD_MAX: usize = 16_384;

/// What people were told lately: by which rule, of what.
#[derive(Debug, Default)]
pub(super) struct Alerted {
    told: BTreeMap<(Name, LimitKey), Mono>,
}

impl Alerted {
    /// Whether it is news; from now on it is none for a while.
    fn is_news(&mut self, now: Mono, rule: &Name, about: &LimitKey) -> bool {
        let is_old = |at: &Mono| now.since(*at) >= TOLD_AGAIN;
        let key = (rule.clone(), about.clone());
        if self.told.get(&key).is_some_and(|at| !is_old(at)) {
            return false;
        }
        if self.told.len() >= TOLD_MAX {
            self.told.retain(|_, at| !is_old(at));
        }
        if self.told.len() >= TOLD_MAX {
            return false;
        }
        self.told.insert(key, now);
        true
    }
}

impl Engine {
    /// Tells people of a reply, if its rule says that they are to know.
    pub(super) fn alert(&mut self, now: &Now, refused: &Refused, reply: &Reply, outcome: &Outcome) {
        let Some(account) = self.counter.desk.account(refused.account) else {
            return;
        };
        let account = account.spec.id.clone();
        let parts = self.parts_of(refused, outcome.scope);
        let parts = parts.unwrap_or_else(|| vec![(Scope::Account, account.clone())]);
        let about = LimitKey::new(parts, Facet::Rate);
        if !self.alerted.is_news(now.mono, &outcome.rule, &about) {
            return;
        }
        let held = outcome.stops_for().or(outcome.retry_after);
        let refusal = Refusal {
            about,
            account,
            class: outcome.class,
            rule: outcome.rule.clone(),
            until: held.map(|lasts| now.wall + lasts),
            reply: reply.clone(),
        };
        let alert = Alert::Refused(Box::new(refusal));
        self.counter.actions.push(Action::Alert { alert });
    }
}
