//! Sets of scopes: the shape of a key or of a match.

use std::fmt;

use super::scope::Scope;

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeSet(u32);

impl ScopeSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    /// The scopes that say where a message goes: it has one at most.
    pub const DESTINATIONS: Self = Self::of(&[
        Scope::Isp,
        Scope::Carrier,
        Scope::Push,
        Scope::Host,
        Scope::Lane,
    ]);

    /// The set of `scopes`.
    pub const fn of(scopes: &[Scope]) -> Self {
        let mut bits = 0;
        let mut rest = scopes;
        while let [first, tail @ ..] = rest {
            bits |= 1 << (*first as u8);
            rest = tail;
        }
        Self(bits)
    }

    /// This set with one more scope.
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | 1 << (scope as u8))
    }

    /// Whether `scope` is in it.
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & 1 << (scope as u8) != 0
    }

    /// What is in both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in this set and not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many scopes are in it.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Its scopes, in the order of the parts of a key.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }

    /// A number that is higher the earlier the scopes stand in a key.
    pub(super) const fn seniority(self) -> u32 {
        self.0.reverse_bits()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// Prints a product: `account x isp`.
impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, scope) in self.iter().enumerate() {
            let sign = if i == 0 { "" } else { " x " };
            write!(f, "{sign}{scope}")?;
        }
        Ok(())
    }
}
