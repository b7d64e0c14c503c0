//! From a name to a connection.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use outflow_core::destination::Destination;
use outflow_core::reply::{Reply, Stage};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::exchangers::{Exchanger, Found, Missing};
use crate::relay::{Prepared, Target};

/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;

/// That no connection could be made.
pub(crate) fn unreachable(text: String) -> Reply {
    let (stage, text) = (Stage::Connect, Cow::Owned(text));
    Reply::Network { stage, text }
}

/// The hosts to which a session for a destination is opened, best first. None if
/// each message must say.
pub(crate) async fn hosts(
    relay: &Prepared,
    destination: &Destination,
) -> Result<Vec<Exchanger>, Missing> {
    match &relay.target {
        Target::Host { host, port } => Ok(vec![Exchanger {
            host: host.clone(),
            port: *port,
            addresses: Vec::new(),
            messages_max: None,
            must_verify: false,
        }]),
        Target::Exchangers(exchangers) => {
            found(relay, exchangers.of_destination(destination)).await
        }
    }
}

/// What is found, if it is found in time.
pub(crate) async fn found<T>(relay: &Prepared, find: Found<'_, T>) -> Result<T, Missing> {
    let found = timeout(relay.timeouts.connect, find).await;
    let late = || "timed out looking for the servers".to_owned();
    found.unwrap_or_else(|_| Err(Missing::NotNow(late())))
}

/// The addresses of a host to which we can connect.
pub(crate) async fn addresses(
    relay: &Prepared,
    host: &Exchanger,
) -> Result<Vec<SocketAddr>, Reply> {
    let port = host.port;
    let known = host.addresses.iter().map(|ip| SocketAddr::new(*ip, port));
    let mut found: Vec<SocketAddr> = known.collect();
    if found.is_empty() {
        let limit = relay.timeouts.connect;
        let looked_up = timeout(limit, tokio::net::lookup_host((host.host.as_str(), port)));
        found = match looked_up.await {
            Ok(Ok(found)) => found.collect(),
            Ok(Err(error)) => {
                let text = format!("{} cannot be looked up: {error}", host.host);
                return Err(unreachable(text));
            }
            Err(_) => {
                let text = format!("timed out looking up {}", host.host);
                return Err(unreachable(text));
            }
        };
    }
    if let Some(source) = relay.source_ip {
        found.retain(|address| address.is_ipv4() == source.is_ipv4());
    }
    found.truncate(ADDRESSES_MAX);
    match found.is_empty() {
        true => Err(unreachable(format!(
            "{} has no address that the source address can reach",
            host.host
        ))),
        false => Ok(found),
    }
}

/// A connection to an address.
pub(crate) async fn dial(
    address: SocketAddr,
    source: Option<IpAddr>,
    limit: Duration,
) -> Result<TcpStream, Reply> {
    let failed = |error| unreachable(format!("{address}: {error}"));
    let connect = async {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if let Some(source) = source {
            socket.bind(SocketAddr::new(source, 0))?;
        }
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    match timeout(limit, connect).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => {
            let error: std::io::Error = error;
            Err(failed(error.to_string()))
        }
        Err(_) => Err(failed("timed out".to_owned())),
    }
}
