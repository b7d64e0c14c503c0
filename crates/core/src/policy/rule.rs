//! Several policies over the same scopes, folded into one rule.
//!
//! The most specific policy speaks first; each field that it leaves open is
//! taken from the next. A rate is inherited with its spacing, since they were
//! written as one.

use super::applied::{Gathered, Learning};
use super::policy::{Policy, RateOrShare, WhenAway};
use super::scope::Scope;
use super::scope_set::ScopeSet;
use super::text::Part;
use crate::limit::spec::{LimitSpec, Rate};
use crate::name::Name;

/// What all policies over the same scopes say together of one thing.
#[derive(Debug)]
pub(super) struct Rule<'a> {
    pub scopes: ScopeSet,
    pub weight: Option<u32>,
    parts: Vec<Part>,
    rate: Option<(RateOrShare, bool)>,
    /// Inherited with the rate, since they were written as one.
    max_rate: Option<Rate>,
    burst: Option<u32>,
    limits: &'a [LimitSpec],
    concurrency: Option<u32>,
    when_away: Option<WhenAway>,
}

impl<'a> Rule<'a> {
    /// A rule about what `parts` name, which says nothing yet.
    pub fn about(scopes: ScopeSet, parts: Vec<Part>) -> Self {
        Self {
            scopes,
            weight: None,
            parts,
            rate: None,
            max_rate: None,
            burst: None,
            limits: &[],
            concurrency: None,
            when_away: None,
        }
    }

    /// Takes from `policy`, which is less specific than those before it, what
    /// they left open.
    pub fn inherit(&mut self, policy: &'a Policy) {
        if self.rate.is_none() {
            self.rate = policy.rate.map(|rate| (rate, policy.spaced));
            self.max_rate = policy.max_rate;
        }
        self.burst = self.burst.or(policy.burst);
        self.concurrency = self.concurrency.or(policy.concurrency);
        self.weight = self.weight.or(policy.weight);
        self.when_away = self.when_away.or(policy.when_away);
        if self.limits.is_empty() {
            self.limits = &policy.limits;
        }
    }

    /// Whether its rate is a share of the account's.
    pub const fn is_share(&self) -> bool {
        matches!(self.rate, Some((RateOrShare::Share { .. }, _)))
    }

    /// Adds all its limits but a share.
    pub fn yield_limits(&self, gathered: &mut Gathered) {
        let when_away = self.away(self.scopes);
        if let Some((RateOrShare::Rate(rate), spaced)) = self.rate {
            let most = self.max_rate.unwrap_or(rate);
            gathered.add(&self.parts, self.bucket(most, spaced), when_away);
            if self.max_rate.is_some() {
                gathered.learn(&self.parts, Learning { start: rate, most });
            }
        }
        for spec in self.limits {
            gathered.add(&self.parts, spec.clone(), when_away);
        }
        if let Some(slots) = self.concurrency {
            gathered.add(&self.parts, LimitSpec::Concurrency { slots }, when_away);
        }
    }

    /// Adds its share of `whole`, the rate of `account`.
    pub fn yield_share(&self, account: &Name, whole: Rate, gathered: &mut Gathered) {
        let Some((RateOrShare::Share { permille }, spaced)) = self.rate else {
            return;
        };
        let mut parts = self.parts.clone();
        if !self.scopes.has(Scope::Account) {
            parts.push((Scope::Account, account.clone()));
            parts.sort();
        }
        let spec = self.bucket(whole.share(permille), spaced);
        gathered.add(&parts, spec, self.away(self.scopes.with(Scope::Account)));
    }

    fn away(&self, scopes: ScopeSet) -> WhenAway {
        self.when_away.unwrap_or(WhenAway::default_for(scopes))
    }

    fn bucket(&self, rate: Rate, spaced: bool) -> LimitSpec {
        if spaced {
            return LimitSpec::LeakyBucket { rate };
        }
        LimitSpec::TokenBucket {
            rate,
            burst: self.burst.unwrap_or(rate.default_burst()),
        }
    }
}

/// The rate of an account with these limits: the slowest of its rates, or of
/// its quotas if it has quotas only.
pub(super) fn rate_of<'s>(specs: impl Iterator<Item = &'s LimitSpec> + Clone) -> Option<Rate> {
    let rates = specs.clone().filter_map(|spec| match spec {
        LimitSpec::TokenBucket { rate, .. } | LimitSpec::LeakyBucket { rate } => Some(*rate),
        _ => None,
    });
    let quotas = specs.filter_map(|spec| match spec {
        LimitSpec::SlidingWindow { count, window } => Some((*count, *window)),
        LimitSpec::CalendarWindow { count, period, .. } => Some((*count, period.length())),
        _ => None,
    });
    slowest(rates).or_else(|| slowest(quotas.map(|(count, per)| Rate { count, per })))
}

fn slowest(rates: impl Iterator<Item = Rate>) -> Option<Rate> {
    let against = |one: &Rate, other: &Rate| u128::from(one.count) * u128::from(other.per.0);
    rates.min_by(|a, b| against(a, b).cmp(&against(b, a)))
}
