//! Which servers take mail for a destination.
//!
//! A relay has one host. Mail that is delivered straight to its destination goes
//! to hosts that DNS names; whoever knows them implements this.

use std::net::IpAddr;
use std::pin::Pin;

use outflow_core::destination::Destination;

/// One server that takes mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchanger {
    /// Its name, which its certificate should carry.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its addresses; if there are none, its name is looked up.
    pub addresses: Vec<IpAddr>,
}

/// What is found, later.
pub type Found<'a> = Pin<Box<dyn Future<Output = Result<Vec<Exchanger>, String>> + Send + 'a>>;

/// Knows the servers of destinations.
pub trait Exchangers: Send + Sync {
    /// The servers of a destination, the best first; or why there are none.
    fn find<'a>(&'a self, destination: &'a Destination) -> Found<'a>;
}
