//! Which servers take mail for a destination.
//!
//! A relay has one host. Mail that is delivered straight to its destination goes
//! to hosts that DNS names; whoever knows them implements this.
//!
//! A session is opened to a *destination*, which many domains roll up to. They
//! need not have the same servers: a provider may give each customer one of his
//! own, which takes no mail for others. So each message is carried only by a
//! server of its own domain, and a session changes servers if it must.

use std::net::IpAddr;
use std::pin::Pin;

use outflow_core::destination::Destination;
use outflow_core::reply::Reply;

/// One server that takes mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchanger {
    /// Its name, which its certificate should carry.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its addresses; if there are none, its name is looked up.
    pub addresses: Vec<IpAddr>,
    /// How many messages it wants on one connection, if that is known.
    pub messages_max: Option<u32>,
    /// Whether it is only used with TLS and a certificate that is valid for its
    /// name, whatever the account says: its domain demands that (MTA-STS).
    pub must_verify: bool,
}

/// Whether a server takes mail for a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It does not, or the domain does not want it to.
    No,
    /// It does.
    Yes,
    /// It does, over a connection whose certificate was verified.
    IfVerified,
}

/// Why there are no servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nobody takes such mail: this is what each message is told.
    Never(Reply),
    /// It cannot be said now, for this reason.
    NotNow(String),
    /// The domain's own policy leaves none, for this reason: its messages wait,
    /// and those of other domains at the same destination do not.
    Policy(String),
}

/// What is found, later.
pub type Found<'a, T> = Pin<Box<dyn Future<Output = Result<T, Missing>> + Send + 'a>>;

/// Knows the servers of destinations and domains.
pub trait Exchangers: Send + Sync {
    /// Servers to which a session for a destination is opened, the best first.
    /// None if only the domain of a message can tell.
    fn of_destination<'a>(&'a self, destination: &'a Destination) -> Found<'a, Vec<Exchanger>>;

    /// The servers of a domain, the best first.
    fn of_domain<'a>(&'a self, domain: &'a str) -> Found<'a, Vec<Exchanger>>;

    /// Whether a server takes mail for a domain.
    fn takes<'a>(&'a self, host: &'a str, domain: &'a str) -> Found<'a, Takes>;
}
