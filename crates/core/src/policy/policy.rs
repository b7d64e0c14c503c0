//! What an operator writes.
//!
//! Every field may be left out: what an exact policy does not say, it takes
//! from the less exact ones over the same scopes.

use std::fmt;
use std::str::FromStr;

use super::error::PolicyError;
use super::matcher::{Match, Pattern};
use super::role::{self, Role};
use super::scope::Scope;
use super::scope_set::ScopeSet;
pub use crate::limit::parse::RateOrShare;
use crate::limit::spec::{LimitSpec, Rate};

/// What becomes of a limit while the ledger is away. The strictest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhenAway {
    /// Nothing is sent.
    Closed,
    /// Each node goes on with its share.
    LocalShare,
    /// The limit does not hold.
    Open,
}

impl WhenAway {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Closed, Self::LocalShare, Self::Open];

    /// The word used in settings and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::LocalShare => "local_share",
            Self::Open => "open",
        }
    }

    /// What holds if nothing was written: fairness gives way, caps do not.
    pub const fn default_for(scopes: ScopeSet) -> Self {
        if role::is_fairness(scopes) {
            Self::Open
        } else {
            Self::Closed
        }
    }
}

impl fmt::Display for WhenAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that does not say what to do while the ledger is away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown when_away {0:?}: use closed, open or local_share")]
pub struct UnknownWhenAway(pub String);

impl FromStr for WhenAway {
    type Err = UnknownWhenAway;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|word| word.as_str() == text)
            .ok_or_else(|| UnknownWhenAway(text.to_owned()))
    }
}

/// What an operator wrote about everything that `matches`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What it governs.
    pub matches: Match,
    /// How fast.
    pub rate: Option<RateOrShare>,
    /// Where learning may take the rate: then `rate` is where it begins.
    pub max_rate: Option<Rate>,
    /// How many at once; a tenth of a second's worth if nobody says.
    pub burst: Option<u32>,
    /// Whether `rate` is kept evenly spaced. Goes with the rate.
    pub spaced: bool,
    /// Further limits; an empty list says nothing.
    pub limits: Vec<LimitSpec>,
    /// How many in flight.
    pub concurrency: Option<u32>,
    /// The weight of a tenant's turns.
    pub weight: Option<u32>,
    /// What becomes of its limits while the ledger is away.
    pub when_away: Option<WhenAway>,
    /// Why, in somebody's words.
    pub comment: Option<String>,
}

impl Policy {
    /// A policy that says nothing yet.
    pub const fn new(matches: Match) -> Self {
        Self {
            matches,
            rate: None,
            max_rate: None,
            burst: None,
            spaced: false,
            limits: Vec::new(),
            concurrency: None,
            weight: None,
            when_away: None,
            comment: None,
        }
    }

    /// Whether it can be honoured; the error says what could be.
    pub fn check(&self) -> Result<(), PolicyError> {
        let scopes = self.matches.scopes();
        Role::of(scopes)?;
        if let Some(Pattern::Exact(name)) = self.matches.pattern(Scope::Recipient) {
            return Err(PolicyError::ExactRecipient(name.as_str().to_owned()));
        }
        if self.weight.is_some() && scopes != ScopeSet::of(&[Scope::Tenant]) {
            return Err(PolicyError::Weight(scopes));
        }
        self.check_rate(scopes)?;
        check_count("burst", self.burst)?;
        check_count("concurrency", self.concurrency)?;
        check_count("weight", self.weight)?;
        if scopes.has(Scope::Recipient) && self.counts_in_flight() {
            return Err(PolicyError::RecipientConcurrency);
        }
        self.limits.iter().try_for_each(check_limit)
    }

    fn counts_in_flight(&self) -> bool {
        let is_slots = |spec: &LimitSpec| matches!(spec, LimitSpec::Concurrency { .. });
        self.concurrency.is_some() || self.limits.iter().any(is_slots)
    }

    fn check_rate(&self, scopes: ScopeSet) -> Result<(), PolicyError> {
        if self.spaced && self.rate.is_none() {
            return Err(PolicyError::SpacedNothing);
        }
        if self.spaced && self.burst.is_some() {
            return Err(PolicyError::SpacedBurst);
        }
        match self.rate {
            Some(RateOrShare::Share { permille }) if !(1..=1_000).contains(&permille) => {
                Err(PolicyError::Share { permille })
            }
            Some(RateOrShare::Share { .. }) if !role::can_share(scopes) => {
                Err(PolicyError::ShareOf(scopes))
            }
            Some(RateOrShare::Rate(rate)) => check_count("rate", Some(rate.count)),
            Some(RateOrShare::Share { .. }) | None => Ok(()),
        }
    }
}

const fn check_count(field: &'static str, count: Option<u32>) -> Result<(), PolicyError> {
    match count {
        Some(0) => Err(PolicyError::Zero(field)),
        _ => Ok(()),
    }
}

/// Whether a limit lets anything through at all.
pub fn check_limit(spec: &LimitSpec) -> Result<(), PolicyError> {
    if let LimitSpec::TokenBucket { rate, .. } | LimitSpec::LeakyBucket { rate } = spec {
        check_count("a rate in limits", Some(rate.count))?;
    }
    check_count("a limit", Some(spec.capacity()))
}
