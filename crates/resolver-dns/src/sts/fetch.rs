//! A policy from the web server of its domain.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::policy::Policy;
use super::response::ResponseReader;
use crate::lookups::Lookups;
use crate::reach::Reach;

/// How long all of it may take (RFC 8461 suggests a minute; nobody is better
/// off for waiting that long).
const LIMIT: Duration = Duration::from_secs(10);
/// How long one address may take to take the connection.
const CONNECT: Duration = Duration::from_secs(3);
/// Addresses that are tried.
const ADDRESSES_MAX: usize = 4;
/// How many policies are fetched at once.
const FETCHES_MAX: usize = 32;

/// Fetches policies.
pub(super) struct Fetcher {
    connector: TlsConnector,
    port: u16,
    reach: Reach,
    turns: Semaphore,
}

impl Fetcher {
    /// Asks web servers at this port. Their certificates must lead to a root
    /// that browsers trust, or to one of these.
    pub fn new(
        port: u16,
        roots: &[CertificateDer<'static>],
        reach: Reach,
    ) -> Result<Self, rustls::Error> {
        let mut trusted = RootCertStore::empty();
        trusted.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        for root in roots {
            trusted.add(root.clone())?;
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            port,
            reach,
            turns: Semaphore::new(FETCHES_MAX),
        })
    }

    /// The policy of a domain, or why it cannot be had.
    pub async fn fetch(&self, lookups: &Lookups, domain: &str) -> Result<Policy, String> {
        let fetch = async {
            // It is closed only when it is dropped.
            let _turn = self.turns.acquire().await;
            let host = format!("mta-sts.{domain}");
            let addresses = lookups.addresses(&host).await;
            let mut addresses = addresses.map_err(|failure| failure.text)?;
            addresses.retain(|address| self.reach.permits(*address));
            let mut stream = self.connect(&host, addresses).await?;
            let body = get(&mut stream, &host).await?;
            Policy::parse(&body).map_err(|error| error.to_string())
        };
        let late = || Err("fetching the policy timed out".to_owned());
        timeout(LIMIT, fetch).await.unwrap_or_else(|_| late())
    }

    /// The first address that takes a connection is the one that is asked.
    async fn connect(
        &self,
        host: &str,
        addresses: Vec<IpAddr>,
    ) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| "the domain is no name for a certificate".to_owned())?;
        let mut why = "the web server of the policy has no public address".to_owned();
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            let connect = TcpStream::connect(SocketAddr::new(address, self.port));
            match timeout(CONNECT, connect).await {
                Ok(Ok(stream)) => {
                    let handshake = self.connector.connect(name, stream).await;
                    return handshake.map_err(|error| error.to_string());
                }
                Ok(Err(error)) => why = error.to_string(),
                Err(_) => why = "connecting to the web server timed out".to_owned(),
            }
        }
        Err(why)
    }
}

/// The text of a policy.
async fn get(stream: &mut TlsStream<TcpStream>, host: &str) -> Result<Vec<u8>, String> {
    let said = |error: std::io::Error| error.to_string();
    let request = format!(
        "GET /.well-known/mta-sts.txt HTTP/1.1\r\nHost: {host}\r\nAccept: text/plain\r\n\
         User-Agent: outflow\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.map_err(said)?;
    stream.flush().await.map_err(said)?;
    let mut reader = ResponseReader::default();
    let mut buffer = vec![0; 8 << 10];
    loop {
        // A connection that is cut off, and not ended by TLS, is an error here.
        let count = stream.read(&mut buffer).await.map_err(said)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return reader.end().map_err(|error| error.to_string());
        }
        match reader.push(bytes) {
            Ok(Some(body)) => return Ok(body),
            Ok(None) => (),
            Err(error) => return Err(error.to_string()),
        }
    }
}
