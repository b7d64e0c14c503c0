//! What an account is, before it does anything.
//!
//! An account is one set of credentials or one sending IP at a provider. Its
//! own limits are the hard caps that the provider sets; what operators add on
//! top are policies. Whether it is blocked or broken is not said here: that is
//! learnt while running.

use crate::limit::spec::{LimitSpec, Rate};
use crate::name::Name;
use crate::time::Nanos;

/// One account as an operator wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSpec {
    /// Its name.
    pub id: Name,
    /// The pool in which it stands in for others.
    pub pool: Name,
    /// The address it sends from.
    pub ip: Option<Name>,
    /// The registered brand it sends for.
    pub brand: Option<Name>,
    /// The only tenant it serves; all if none.
    pub tenant: Option<Name>,
    /// How it opens and keeps sessions.
    pub sessions: Sessions,
    /// The caps of its provider.
    pub limits: Vec<LimitSpec>,
}

impl AccountSpec {
    /// An account of the default pool, without limits of its own.
    pub fn new(id: impl Into<Name>) -> Self {
        Self {
            id: id.into(),
            pool: Name::from("default"),
            ip: None,
            brand: None,
            tenant: None,
            sessions: Sessions::default(),
            limits: Vec::new(),
        }
    }

    /// Whether it may send for `tenant`.
    pub fn serves(&self, tenant: &Name) -> bool {
        self.tenant.as_ref().is_none_or(|only| only == tenant)
    }

    /// What a policy or a pause can match of it.
    pub fn facts(&self) -> AccountFacts<'_> {
        AccountFacts {
            id: &self.id,
            pool: &self.pool,
            ip: self.ip.as_ref(),
            brand: self.brand.as_ref(),
        }
    }
}

/// What a policy or a pause can match of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountFacts<'a> {
    /// Its name.
    pub id: &'a Name,
    /// Its pool.
    pub pool: &'a Name,
    /// The address it sends from.
    pub ip: Option<&'a Name>,
    /// The registered brand it sends for.
    pub brand: Option<&'a Name>,
}

/// What a session of an account is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionKind {
    /// A connection to one destination, which takes time to open and may fail
    /// to.
    #[default]
    Connections,
    /// A connection to a relay, which carries messages for any destination.
    RelayConnections,
    /// A request slot of an HTTP-like transport, which opens at once.
    Slots,
}

/// How an account opens and keeps sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// Connections or slots.
    pub kind: SessionKind,
    /// How many may be open at once.
    pub max_connections: u32,
    /// How many of them to one destination.
    pub per_destination: u32,
    /// How many messages one carries before it is closed.
    pub messages_per_session: u32,
    /// How fast new ones may be opened.
    pub connect_rate: Option<Rate>,
    /// How long one is kept without work.
    pub idle_timeout: Nanos,
}

impl Sessions {
    /// At most `count` request slots, all of which one destination may use.
    pub const fn slots(count: u32) -> Self {
        Self {
            kind: SessionKind::Slots,
            max_connections: count,
            per_destination: count,
            messages_per_session: u32::MAX,
            connect_rate: None,
            idle_timeout: Nanos::MAX,
        }
    }
}

/// Connections in numbers that the large mailbox providers put up with.
impl Default for Sessions {
    fn default() -> Self {
        Self {
            kind: SessionKind::Connections,
            max_connections: 8,
            per_destination: 5,
            messages_per_session: 100,
            connect_rate: None,
            idle_timeout: Nanos::from_secs(30),
        }
    }
}
