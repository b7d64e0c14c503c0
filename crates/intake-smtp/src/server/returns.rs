//! Addresses that reports return to: the only ones that are taken without a
//! token.

use std::fmt;
use std::sync::Arc;

/// Knows our own return addresses.
#[derive(Clone)]
pub struct Returns {
    domain: String,
    is_ours: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl fmt::Debug for Returns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Returns({})", self.domain)
    }
}

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// A return address that we made.
    Ours,
    /// At the same domain, but none of ours.
    Forged,
    /// Somewhere else.
    Elsewhere,
}

impl Returns {
    /// Return addresses at this domain, which `is_ours` knows again. It is asked
    /// by anybody, so it must be quick and tell nothing by its time.
    pub fn at(domain: &str, is_ours: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self {
            domain: domain.to_ascii_lowercase(),
            is_ours: Arc::new(is_ours),
        }
    }

    /// What an address is.
    pub fn look(&self, address: &str) -> Returned {
        let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
        match domain.eq_ignore_ascii_case(&self.domain) {
            true if (self.is_ours)(address) => Returned::Ours,
            true => Returned::Forged,
            false => Returned::Elsewhere,
        }
    }
}
