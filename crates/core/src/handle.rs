//! Handles: small numbers that stand for things the engine keeps in slabs.
//!
//! Events and actions carry handles, not names, so that no string is hashed or
//! compared on the way of a message.

use std::fmt;

pub use crate::schedule::place::PlaceId;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// This handle as a place in a slab.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

handles! {
    /// A flow: messages that face exactly the same limits, in order.
    FlowId;
    /// A lane: pool x destination.
    LaneId;
    /// A pool: accounts that can stand in for one another.
    PoolId;
    /// An account.
    AccountId;
    /// An open session of an account to a destination, within its pool.
    SessionId;
    /// A limit of an account, or of an account at a destination.
    AccountLimitId;
    /// What learns a rate.
    LearnerId;
}

/// A permit in flight. The generation tells a late answer to an old permit
/// from an answer to the permit that took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId {
    /// The place in the slab.
    pub index: u32,
    /// How often that place was used before.
    pub generation: u32,
}

/// The number of an append: the store confirms them in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendNo(pub u64);

/// A session, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionRef {
    /// Whose accounts it belongs to.
    pub pool: PoolId,
    /// Which of that pool's.
    pub session: SessionId,
}

/// A limit, wherever it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitId {
    /// Flows wait at it themselves.
    Place(PlaceId),
    /// It opens and shuts an account, or an account at a destination.
    Account(AccountLimitId),
}
