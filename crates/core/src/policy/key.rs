//! What a limit is called.
//!
//! A key names the thing limited, never its numbers: a key that contained its
//! rate would get a fresh, full burst at each change. It is also the same
//! whichever policy, exact or `*`, yields the limit, so that writing an
//! exception for one destination goes on counting where the rule was.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::aliases;
use super::facet::{Facet, UnknownFacet};
use super::scope::Scope;
use super::scope_set::ScopeSet;
use super::text::{self, ANY, Part, TextError};
use crate::destination::Destination;
use crate::message::Recipient;
use crate::name::Name;

/// The name of a limit: `isp:google`, `account:ses-1/isp:google#day`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitKey {
    parts: Vec<Part>,
    facet: Facet,
}

/// Why a text is not the name of a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The parts cannot be read.
    #[error(transparent)]
    Parts(#[from] TextError),
    /// What stands behind the `#` cannot be read.
    #[error(transparent)]
    Facet(#[from] UnknownFacet),
}

impl LimitKey {
    /// The key of these parts: put in order, their names made canonical. Of a
    /// scope that occurs twice the first in order stays.
    pub fn new(parts: impl IntoIterator<Item = Part>, facet: Facet) -> Self {
        let mut parts: Vec<Part> = parts
            .into_iter()
            .map(|(scope, name)| (scope, aliases::canonical(scope, &name)))
            .collect();
        parts.sort();
        parts.dedup_by_key(|(scope, _)| *scope);
        Self { parts, facet }
    }

    /// The key of the rate of one thing.
    pub fn of(scope: Scope, name: impl Into<Name>) -> Self {
        Self::new([(scope, name.into())], Facet::Rate)
    }

    /// How this key compares to [`LimitKey::of`] one thing, whose name is
    /// canonical.
    pub fn cmp_one(&self, scope: Scope, name: &Name) -> Ordering {
        let Some((of, it)) = self.parts.first() else {
            return Ordering::Less;
        };
        let first = of.cmp(&scope).then_with(|| it.cmp(name));
        first
            .then_with(|| self.parts.len().cmp(&1))
            .then_with(|| self.facet.cmp(&Facet::Rate))
    }

    /// What is limited, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Which of several limits on it this is.
    pub const fn facet(&self) -> &Facet {
        &self.facet
    }

    /// The scopes of its parts.
    pub fn scopes(&self) -> ScopeSet {
        self.parts.iter().map(|(scope, _)| *scope).collect()
    }

    /// The name of its part of this scope.
    pub fn name(&self, scope: Scope) -> Option<&Name> {
        let part = self.parts.iter().find(|(of, _)| *of == scope);
        part.map(|(_, name)| name)
    }

    /// The destination that it names, if it names one.
    pub fn destination(&self) -> Option<Destination> {
        self.parts.iter().find_map(|(scope, name)| {
            let kind = scope.destination_kind()?;
            Some(Destination::new(kind, name.clone()))
        })
    }

    /// Whether it still lacks its recipient.
    pub fn is_template(&self) -> bool {
        self.name(Scope::Recipient)
            .is_some_and(|name| name.as_str() == ANY)
    }

    /// This key, completed for one recipient.
    pub fn for_recipient(&self, recipient: Recipient) -> Self {
        let mut key = self.clone();
        for (scope, name) in &mut key.parts {
            if *scope == Scope::Recipient {
                *name = Name::from(format!("{:016x}", recipient.0));
            }
        }
        key
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.iter();
        text::write_parts(f, parts.map(|(scope, name)| (*scope, name.as_str())))?;
        match &self.facet {
            Facet::Rate => Ok(()),
            facet => write!(f, "#{facet}"),
        }
    }
}

impl fmt::Debug for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LimitKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (parts, facet) = match text.split_once('#') {
            Some((parts, facet)) => (parts, facet.parse()?),
            None => (text, Facet::Rate),
        };
        Ok(Self {
            parts: text::read_parts(parts)?,
            facet,
        })
    }
}
