//! Why a policy is refused.
//!
//! A policy that could not be honoured is refused when it is written, with
//! what would be possible instead. It is never taken and then ignored.

use super::scope_set::ScopeSet;

/// Why a policy is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A product that nobody can honour.
    #[error(
        "{sender} x {sent} cannot be limited together: an account is chosen for a pool and \
         a destination, whoever's message it sends. account, ip and brand combine with each \
         other, with pool, worker, and one of isp, carrier, push, host or lane; {sent} \
         combines with all but account, ip and brand"
    )]
    NotTogether {
        /// The scopes that the choice of an account decides.
        sender: ScopeSet,
        /// The scopes that the message decides.
        sent: ScopeSet,
    },
    /// Recipients are known as numbers only.
    #[error("a policy governs each recipient alike: write recipient = \"*\", not {0:?}")]
    ExactRecipient(String),
    /// Slots per recipient.
    #[error(
        "what is in flight to one recipient cannot be limited: limit how many in a time \
         instead, as in limits = [\"1/s spaced\"]"
    )]
    RecipientConcurrency,
    /// A number that would let nothing through.
    #[error("{0} must be at least 1: to stop sending, pause")]
    Zero(&'static str),
    /// A share outside of what a share can be.
    #[error("a share must be above 0% and at most 100%, not {}.{}%", .permille / 10, .permille % 10)]
    Share {
        /// The share, in thousandths.
        permille: u16,
    },
    /// A share that has no account to be a share of.
    #[error(
        "a share of the account's rate belongs to a destination: match one of isp, carrier, \
         push, host or lane, alone or with account, ip, brand, pool or worker, not {0}"
    )]
    ShareOf(ScopeSet),
    /// Spacing without a rate.
    #[error("spaced says how a rate is kept: write a rate beside it")]
    SpacedNothing,
    /// Spacing with a burst.
    #[error("a spaced rate has no burst: leave out one of the two")]
    SpacedBurst,
    /// A weight of something that has no turns.
    #[error("weight shares turns between tenants: match tenant alone, not {0}")]
    Weight(ScopeSet),
}
