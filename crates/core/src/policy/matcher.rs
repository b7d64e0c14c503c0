//! What a policy, a pause or a bulk operation governs.
//!
//! A match names for each of its scopes one thing, or with `*` each of them.
//! All its terms must agree; a term about something that is not known (the
//! campaign of a message without one, the account of a flow) never does. So a
//! match over accounts and flows governs pairs of them and neither alone.

use std::fmt;
use std::str::FromStr;

use super::facts::Facts;
use super::scope::Scope;
use super::scope_set::ScopeSet;
use super::text::{self, ANY, Part, TextError};
use crate::account::AccountFacts;
use crate::class::{Class, UnknownClass};
use crate::flow::FlowKey;
use crate::name::Name;

/// One thing of a scope, or each of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// The one of this name, which is canonical.
    Exact(Name),
    /// Each of them: `*`.
    Any,
}

impl Pattern {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Exact(name) => name.as_str(),
            Self::Any => ANY,
        }
    }
}

/// What a policy, a pause or a bulk operation governs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// In the order of scopes, each at most once, never empty.
    terms: Vec<(Scope, Pattern)>,
}

/// Why something cannot be matched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// A term cannot be read.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A class that is not one of the four.
    #[error(transparent)]
    Class(#[from] UnknownClass),
    /// A destination without its kind.
    #[error("a destination is written KIND:NAME, as in isp:google, not {0:?}")]
    Destination(String),
    /// Everything and something.
    #[error("global is everything and stands alone: leave it out beside {0}")]
    GlobalAlone(ScopeSet),
    /// Nothing is at two destinations.
    #[error("{0} matches nothing: a message has one destination")]
    SeveralDestinations(ScopeSet),
    /// A lane names its pool.
    #[error("a lane already names its pool: leave pool out, or write pool and a destination")]
    PoolOfLane,
}

impl Match {
    /// Reads pairs such as `("isp", "google")`, `("ip", "*")` and
    /// `("destination", "isp:google")`. Several make a product.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, MatchError> {
        let parts = pairs.into_iter().map(|(word, name)| match word {
            "destination" => destination(name),
            _ => Ok(text::part(word.parse().map_err(TextError::from)?, name)?),
        });
        let parts: Vec<Part> = parts.collect::<Result<_, MatchError>>()?;
        Self::from_parts(text::in_order(parts)?)
    }

    /// Everything.
    pub fn everything() -> Self {
        Self {
            terms: vec![(Scope::Global, Pattern::Any)],
        }
    }

    fn from_parts(parts: Vec<Part>) -> Result<Self, MatchError> {
        if parts.is_empty() {
            return Err(TextError::Empty.into());
        }
        let terms = parts.into_iter().map(|(scope, name)| match name.as_str() {
            ANY => (scope, Pattern::Any),
            _ => (scope, Pattern::Exact(name)),
        });
        let matched = Self {
            terms: terms.collect(),
        };
        matched.check()?;
        Ok(matched)
    }

    fn check(&self) -> Result<(), MatchError> {
        let scopes = self.scopes();
        let global = ScopeSet::of(&[Scope::Global]);
        if scopes.has(Scope::Global) && scopes != global {
            return Err(MatchError::GlobalAlone(scopes.without(global)));
        }
        let destinations = scopes.and(ScopeSet::DESTINATIONS);
        if destinations.len() > 1 {
            return Err(MatchError::SeveralDestinations(destinations));
        }
        if scopes.has(Scope::Lane) && scopes.has(Scope::Pool) {
            return Err(MatchError::PoolOfLane);
        }
        if let Some(Pattern::Exact(name)) = self.pattern(Scope::Class) {
            name.as_str().parse::<Class>()?;
        }
        Ok(())
    }

    /// The match over `parts` that is exact in `exact` and `*` elsewhere.
    pub(super) fn over(parts: &[Part], exact: ScopeSet) -> Self {
        let terms = parts.iter().map(|(scope, name)| {
            let pattern = match exact.has(*scope) {
                true => Pattern::Exact(name.clone()),
                false => Pattern::Any,
            };
            (*scope, pattern)
        });
        Self {
            terms: terms.collect(),
        }
    }

    /// Its terms, in the order of scopes.
    pub fn terms(&self) -> &[(Scope, Pattern)] {
        &self.terms
    }

    /// The scopes of its terms.
    pub fn scopes(&self) -> ScopeSet {
        self.terms.iter().map(|(scope, _)| *scope).collect()
    }

    /// The scopes for which it names one thing.
    pub fn exact(&self) -> ScopeSet {
        let exact = self.terms.iter();
        exact
            .filter(|(_, pattern)| *pattern != Pattern::Any)
            .map(|(scope, _)| *scope)
            .collect()
    }

    /// What it says of `scope`.
    pub fn pattern(&self, scope: Scope) -> Option<&Pattern> {
        let term = self.terms.iter().find(|(of, _)| *of == scope);
        term.map(|(_, pattern)| pattern)
    }

    /// Whether it governs all of this flow, whichever account sends it.
    pub fn matches_flow(&self, flow: &FlowKey) -> bool {
        self.agrees(&Facts {
            flow: Some(flow),
            ..Facts::default()
        })
    }

    /// Whether it governs all of this account, whatever it sends.
    pub fn matches_account(&self, account: &AccountFacts<'_>) -> bool {
        self.agrees(&Facts {
            account: Some(*account),
            ..Facts::default()
        })
    }

    /// Whether it governs what this account sends of this flow.
    pub fn matches_pair(&self, account: &AccountFacts<'_>, flow: &FlowKey) -> bool {
        self.agrees(&Facts {
            flow: Some(flow),
            account: Some(*account),
            worker: None,
        })
    }

    fn agrees(&self, facts: &Facts<'_>) -> bool {
        self.terms.iter().all(|(scope, pattern)| match pattern {
            Pattern::Any => facts.knows(*scope),
            Pattern::Exact(name) => facts.is(*scope, name.as_str()),
        })
    }
}

/// Reads `isp:google`.
fn destination(name: &str) -> Result<Part, MatchError> {
    let wrong = || MatchError::Destination(name.to_owned());
    let (kind, host) = name.split_once(':').ok_or_else(wrong)?;
    let scope: Scope = kind.parse().map_err(TextError::from)?;
    if scope == Scope::Lane || !ScopeSet::DESTINATIONS.has(scope) {
        return Err(wrong());
    }
    Ok(text::part(scope, host)?)
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.terms.iter();
        text::write_parts(f, terms.map(|(scope, pattern)| (*scope, pattern.as_str())))
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Match {
    type Err = MatchError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_parts(text::read_parts(text)?)
    }
}
