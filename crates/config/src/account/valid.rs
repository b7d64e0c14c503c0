//! An account that can be used.
//!
//! What does not belong to its transport is refused rather than ignored: a
//! `host` on a sandbox means that somebody believes mail is going out.

use outflow_core::account::{AccountSpec, SessionKind, Sessions};
use outflow_core::limit::spec::Rate;
use outflow_core::name::Name;
use outflow_core::time::Nanos;

use super::limits;
use super::raw::RawAccount;
use super::transport::{self, Kind, TransportSettings};
use crate::figure;
use crate::problem::{Invalid, Problems};

/// Request slots of a sandbox, if nobody says.
const SANDBOX_SLOTS: u32 = 256;
/// Connections to the servers of all domains, if nobody says.
const MX_CONNECTIONS: u32 = 100;

/// An account that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// What the engine decides by.
    pub spec: AccountSpec,
    /// How it reaches the far end.
    pub transport: TransportSettings,
}

impl Account {
    /// Whether what it takes never leaves this machine.
    pub const fn is_sandbox(&self) -> bool {
        matches!(self.transport, TransportSettings::Sandbox(_))
    }
}

impl RawAccount {
    /// The account that this describes, or all that is wrong with it.
    pub fn validate(&self) -> Result<Account, Invalid> {
        let mut problems = Problems::default();
        // Its numbers and texts may have been set by code: they are held
        // against the table here, whoever wrote them.
        let raw = Self::read_what_fits(self.stored(), &mut problems);
        let kind = Kind::of(&raw);
        transport::refuse_foreign(&raw, kind, &mut problems);
        let account = Account {
            spec: spec(&raw, kind, &mut problems),
            transport: TransportSettings::of(&raw, kind, &mut problems),
        };
        problems.or(account)
    }
}

fn spec(raw: &RawAccount, kind: Kind, problems: &mut Problems) -> AccountSpec {
    if raw.id.is_none() {
        problems.add("/id", "an account needs a name: write id");
    }
    let name = |text: &Option<String>| text.as_deref().map(Name::from);
    AccountSpec {
        id: name(&raw.id).unwrap_or_else(|| Name::from("")),
        pool: name(&raw.pool).unwrap_or_else(|| Name::from("default")),
        // Policies match an address however it was written.
        ip: name(&raw.ip).or_else(|| {
            match transport::address(&raw.source_ip) {
                Some(address) => Some(Name::from(address.to_string())),
                // Receivers see an address all the same: the machine's own.
                None => (kind == Kind::Mx).then(|| Name::from("default")),
            }
        }),
        brand: name(&raw.brand),
        tenant: name(&raw.tenant),
        sessions: sessions(raw, kind, problems),
        limits: limits::of(raw, problems),
    }
}

fn sessions(raw: &RawAccount, kind: Kind, problems: &mut Problems) -> Sessions {
    let usual = Sessions::default();
    if kind == Kind::Sandbox {
        return Sessions::slots(raw.max_connections.unwrap_or(SANDBOX_SLOTS));
    }
    let max_connections = raw.max_connections.unwrap_or(match kind {
        Kind::Mx => MX_CONNECTIONS,
        _ => usual.max_connections,
    });
    let per_destination = match (raw.max_connections_per_destination, kind) {
        (Some(most), _) if most > max_connections => {
            problems.add(
                "/max_connections_per_destination",
                format!("{most} to one destination, but {max_connections} in all"),
            );
            max_connections
        }
        (Some(most), _) => most,
        // All connections of a relay go to the same host.
        (None, Kind::Smtp) => max_connections,
        (None, _) => usual.per_destination.min(max_connections),
    };
    Sessions {
        kind: match kind {
            // Whatever a relay is handed, it takes over the same connection.
            Kind::Smtp => SessionKind::RelayConnections,
            _ => SessionKind::Connections,
        },
        max_connections,
        per_destination,
        messages_per_session: raw
            .max_messages_per_connection
            .unwrap_or(usual.messages_per_session),
        connect_rate: connect_rate(raw),
        idle_timeout: idle_timeout(raw).unwrap_or(usual.idle_timeout),
    }
}

fn idle_timeout(raw: &RawAccount) -> Option<Nanos> {
    raw.idle_timeout.as_deref().and_then(figure::span)
}

fn connect_rate(raw: &RawAccount) -> Option<Rate> {
    let written = raw.connect_rate.as_ref()?;
    Rate::parse(&written.text()).ok()
}
