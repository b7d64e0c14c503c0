//! Who judges us at the far end.
//!
//! A destination is not a domain: thousands of domains roll up to the provider
//! that hosts them and share its limits. Until a domain is resolved, its
//! messages wait in a lane of their own.

use std::fmt;

use crate::name::Name;

/// What kind of network a destination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DestinationKind {
    /// A mailbox provider: `isp:google`.
    Isp,
    /// A mobile carrier: `carrier:us-att`.
    Carrier,
    /// A push service: `push:apns`.
    Push,
    /// Any other host: `host:api.example.com`.
    Host,
    /// A domain whose destination is not known yet.
    Unresolved,
}

impl DestinationKind {
    /// The word before the colon.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Isp => "isp",
            Self::Carrier => "carrier",
            Self::Push => "push",
            Self::Host => "host",
            Self::Unresolved => "domain",
        }
    }
}

/// One destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// What it is.
    pub kind: DestinationKind,
    /// Which one.
    pub name: Name,
}

impl Destination {
    /// A destination of the given kind.
    pub fn new(kind: DestinationKind, name: impl Into<Name>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }

    /// A mailbox provider.
    pub fn isp(name: impl Into<Name>) -> Self {
        Self::new(DestinationKind::Isp, name)
    }

    /// The waiting room of a domain that nobody has resolved yet.
    pub fn unresolved(domain: impl Into<Name>) -> Self {
        Self::new(DestinationKind::Unresolved, domain)
    }

    /// Whether messages to it can be sent at all.
    pub fn is_resolved(&self) -> bool {
        self.kind != DestinationKind::Unresolved
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.name)
    }
}
