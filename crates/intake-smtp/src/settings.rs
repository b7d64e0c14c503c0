//! What an operator sets.

use std::net::SocketAddr;
use std::time::Duration;

use crate::server::Rules;

/// How messages are taken in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 is a free one.
    pub listen: SocketAddr,
    /// What the server calls itself, and what one connection may do.
    pub rules: Rules,
    /// Whether tokens may come over an open line from other machines, because
    /// something in front of this server protects it.
    pub insecure: bool,
    /// Connections at once.
    pub connections_max: usize,
    /// Connections at once from one address; for IPv6, from one /64.
    pub connections_per_address_max: usize,
    /// Bytes of messages that are coming in, over all connections. Beyond it new
    /// ones are refused; beyond twice as much those that are coming in as well.
    pub held_bytes_max: usize,
    /// How long messages are refused before their data, after the node said that
    /// it takes none for now.
    pub busy: Duration,
    /// How long a client may take from one command to the next.
    pub idle: Duration,
    /// How long the data of one message may take.
    pub data: Duration,
    /// How long a failed login is left waiting for its answer.
    pub login_delay: Duration,
    /// How long messages that are coming in may finish when the server shuts
    /// down.
    pub grace: Duration,
}

impl Settings {
    /// The usual settings, listening here.
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            listen,
            rules: Rules::default(),
            insecure: false,
            connections_max: 1_000,
            connections_per_address_max: 200,
            held_bytes_max: 256 << 20,
            busy: Duration::from_secs(1),
            idle: Duration::from_secs(300),
            data: Duration::from_secs(600),
            login_delay: Duration::from_secs(2),
            grace: Duration::from_secs(30),
        }
    }
}
