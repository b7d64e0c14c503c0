//! Who takes the tokens of a limit, by the scopes of its key.
//!
//! A flow waits at limits that are the same whichever account sends it. Limits
//! of accounts, and of accounts at a destination, are behind the gate of the
//! pool, which matches accounts with lanes and does not look into flows: what
//! the message decides (tenant, campaign, class, sending domain, recipient)
//! cannot be in a product with what the choice of an account decides.

use super::error::PolicyError;
use super::scope::Scope;
use super::scope_set::ScopeSet;

/// Who takes the tokens of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A flow, whichever account sends it.
    Flow,
    /// An account, whatever it sends.
    Account,
    /// An account at a destination.
    Pair,
    /// The message at the head of a flow, for its recipient.
    Recipient,
}

const SENDER: ScopeSet = ScopeSet::of(&[Scope::Account, Scope::Ip, Scope::Brand]);

const SENT: ScopeSet = ScopeSet::of(&[
    Scope::SenderDomain,
    Scope::Tenant,
    Scope::Campaign,
    Scope::Class,
    Scope::Recipient,
]);

impl Role {
    /// Who can honour a limit over `scopes`.
    pub const fn of(scopes: ScopeSet) -> Result<Self, PolicyError> {
        let sender = scopes.and(SENDER);
        let sent = scopes.and(SENT);
        if !sender.is_empty() && !sent.is_empty() {
            return Err(PolicyError::NotTogether { sender, sent });
        }
        Ok(if scopes.has(Scope::Recipient) {
            Self::Recipient
        } else if sender.is_empty() {
            Self::Flow
        } else if scopes.and(ScopeSet::DESTINATIONS).is_empty() {
            Self::Account
        } else {
            Self::Pair
        })
    }
}

/// Whether a limit over `scopes` can be a share of the account's rate.
pub const fn can_share(scopes: ScopeSet) -> bool {
    scopes.and(SENT).is_empty() && !scopes.and(ScopeSet::DESTINATIONS).is_empty()
}

/// Whether a limit over `scopes` only keeps tenants from crowding each other
/// out. As soon as a destination or an account is part of it, it also guards
/// against a block, and must hold when the ledger is away.
pub const fn is_fairness(scopes: ScopeSet) -> bool {
    let fair = ScopeSet::of(&[Scope::Tenant, Scope::Campaign]);
    let beside = ScopeSet::of(&[Scope::Class]);
    !scopes.and(fair).is_empty() && scopes.without(fair).without(beside).is_empty()
}
