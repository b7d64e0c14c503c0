//! What an operator sets.

use std::net::SocketAddr;
use std::time::Duration;

/// How commands are taken.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 is a free one.
    pub listen: SocketAddr,
    /// Connections at once.
    pub connections_max: usize,
    /// Connections at once from one address; for IPv6, from one /64.
    pub connections_per_address_max: usize,
    /// How long a client may be silent.
    pub idle: Duration,
    /// How long a client may take to show a token.
    pub login: Duration,
    /// How long commands that wait may finish when the server shuts down.
    pub grace: Duration,
}

impl Settings {
    /// The usual settings, listening here.
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            listen,
            connections_max: 10_000,
            connections_per_address_max: 5_000,
            idle: Duration::from_secs(600),
            login: Duration::from_secs(30),
            grace: Duration::from_secs(5),
        }
    }
}
