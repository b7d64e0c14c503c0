//! What a pool is told of its accounts and of how sessions are to be kept.

pub use crate::account::SessionKind;
use crate::class::Class;
use crate::pressure::UnderPressure;
use crate::time::Nanos;

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassMask(u8);

impl ClassMask {
    /// No class.
    pub const NONE: Self = Self(0);
    /// Every class.
    pub const ALL: Self = Self(0b1111);

    /// One class.
    pub const fn of(class: Class) -> Self {
        Self(1 << class as u8)
    }

    /// A class and all that are more urgent.
    pub const fn down_to(class: Class) -> Self {
        Self((2 << class as u8) - 1)
    }

    /// These classes and `class`.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    /// The classes in either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The classes in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The classes of this set that are not in the other.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The classes in exactly one of both sets.
    #[must_use]
    pub const fn differing(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// Whether `class` is in it.
    pub const fn contains(self, class: Class) -> bool {
        self.0 >> class as u8 & 1 == 1
    }

    /// Whether no class is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How many sessions an account may have, and what they carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionCaps {
    /// Connections, to destinations or to a relay, or request slots.
    pub kind: SessionKind,
    /// The most sessions at once.
    pub max_connections: u32,
    /// The most sessions to one destination, or that carry for it, at once.
    pub per_destination: u32,
    /// After so many messages a connection is closed; at least 1.
    pub messages_per_session: u32,
    /// A connection without work for this long is closed.
    pub idle_timeout: Nanos,
    /// What the account's limits let through, in thousandths of a message a
    /// second: a hint for how many sessions it needs.
    pub rate_milli: u64,
}

impl SessionCaps {
    /// The connections that are bound to a destination.
    pub(super) fn bound(&self) -> u64 {
        match self.kind {
            SessionKind::Connections => u64::from(self.max_connections),
            SessionKind::RelayConnections | SessionKind::Slots => 0,
        }
    }

    /// The sessions, bound to no lane, that one lane could have.
    pub(super) fn slots(&self) -> u64 {
        match self.kind {
            SessionKind::Connections => 0,
            SessionKind::RelayConnections | SessionKind::Slots => {
                u64::from(self.max_connections.min(self.per_destination))
            }
        }
    }
}

impl Default for SessionCaps {
    fn default() -> Self {
        Self {
            kind: SessionKind::Connections,
            max_connections: 20,
            per_destination: 20,
            messages_per_session: 100,
            idle_timeout: Nanos::from_secs(30),
            rate_milli: 10_000,
        }
    }
}

/// Which account an arriving message takes when several could.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// The least recently used: accounts are used evenly.
    #[default]
    Even,
    /// The most recently used: at low load few sessions are kept open.
    Warm,
}

/// How a pool keeps its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// An opening without an answer for this long has failed.
    pub connect_deadline: Nanos,
    /// What connecting is thought to take until it was measured.
    pub connect_hint: Nanos,
    /// What a reply is thought to take until it was measured.
    pub reply_hint: Nanos,
    /// The wait after a first failed connect; it doubles with each.
    pub backoff_first: Nanos,
    /// The longest wait after a failed connect.
    pub backoff_max: Nanos,
    /// How many sessions each lane keeps without traffic.
    pub keep_warm: u32,
    /// How long a lane that has no message keeps a connection to its
    /// destination against lanes that have one.
    pub keep_idle: Nanos,
    /// Which account an arriving message takes.
    pub prefer: Prefer,
    /// What healthy accounts do while others are blocked.
    pub under_pressure: UnderPressure,
    /// Whether the number of requests at once is found out for accounts of
    /// which no limit says it.
    pub adapt_concurrency: bool,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            connect_deadline: Nanos::from_secs(60),
            connect_hint: Nanos::from_millis(200),
            reply_hint: Nanos::from_millis(100),
            backoff_first: Nanos::from_secs(1),
            backoff_max: Nanos::from_secs(60),
            keep_warm: 0,
            keep_idle: Nanos::ZERO,
            prefer: Prefer::Even,
            under_pressure: UnderPressure::Keep,
            adapt_concurrency: false,
        }
    }
}
