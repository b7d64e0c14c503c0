//! Who may submit, and what.

use outflow_core::class::Class;
use outflow_core::name::Name;

/// Knows tokens. The application asks its tokens of the API.
pub trait Doorkeeper: Send + Sync {
    /// What `token` opens; none if it is not known, or not for submitting. It
    /// is asked again for each message, so a token that was withdrawn opens
    /// nothing, and must not wait: it is called from the executor.
    fn admit(&self, token: &str) -> Option<Pass>;
}

/// What a token opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// What people call the token.
    pub name: String,
    /// For whom its connections count.
    pub party: String,
    /// The only tenant it speaks for; overrides what a message says.
    pub tenant: Option<Name>,
    /// The only classes it may submit; all if empty.
    pub classes: Vec<Class>,
    /// The only pools it may submit to; all if empty.
    pub pools: Vec<String>,
    /// The only domains it may send from, in lower case and ASCII; all if empty.
    pub from_domains: Vec<String>,
}

impl Pass {
    /// Whether messages of this class may be submitted.
    pub fn may_class(&self, class: Class) -> bool {
        self.classes.is_empty() || self.classes.contains(&class)
    }

    /// Whether messages may be submitted to this pool.
    pub fn may_pool(&self, pool: &str) -> bool {
        self.pools.is_empty() || self.pools.iter().any(|own| own == pool)
    }

    /// Whether messages may be sent from this domain.
    pub fn may_send_from(&self, domain: &str) -> bool {
        self.from_domains.is_empty() || self.from_domains.iter().any(|own| own == domain)
    }
}
