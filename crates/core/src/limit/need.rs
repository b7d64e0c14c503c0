//! Amounts of tokens.
//!
//! Costs are whole tokens. Floors and reserves are shares of a burst and need
//! not be whole, so what must be there before a token is taken is counted in
//! thousandths.

use std::ops::Add;

/// An amount of tokens that must be available, in thousandths of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need(pub u64);

impl Need {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Whole tokens.
    pub const fn whole(tokens: u32) -> Self {
        Self(tokens as u64 * 1_000)
    }

    /// What is left of this amount after `other`, at least nothing.
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The least number of whole tokens that covers this amount.
    pub const fn ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }
}

impl Add for Need {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
