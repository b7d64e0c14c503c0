//! One look at a server: whether it offers TLS, and with which certificate. No
//! mail is sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outflow_core::reply::Reply;
use tokio::time::timeout;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use crate::client::timeouts::Timeouts;
use crate::client::{Client, ClientSettings, Output, Tls};
use crate::connect::dial;
use crate::tls::connector;
use crate::wire::{Moved, Wire};

/// What was seen of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Whether it offers STARTTLS.
    pub offers_tls: bool,
    /// Why TLS could not be begun.
    pub handshake_error: Option<String>,
    /// Its certificate, in DER.
    pub certificate: Option<Vec<u8>>,
    /// Why browsers would not trust it for the name of the server.
    pub distrust: Option<String>,
}

/// Connects, says EHLO and begins TLS if that is offered, all within `limit`.
pub async fn probe(
    host: &str,
    address: SocketAddr,
    helo: &str,
    limit: Duration,
) -> Result<Probed, String> {
    let looked = timeout(limit, look(host, address, helo, limit)).await;
    looked.unwrap_or_else(|_| Err(format!("{address} does not answer in time")))
}

async fn look(
    host: &str,
    address: SocketAddr,
    helo: &str,
    limit: Duration,
) -> Result<Probed, String> {
    let stream = dial(address, None, limit)
        .await
        .map_err(|reply| text(&reply))?;
    let settings = ClientSettings {
        helo: helo.to_owned(),
        tls: Tls::Opportunistic,
        login: None,
        password_in_clear: false,
        chunking: false,
        timeouts: Timeouts::all(limit),
    };
    let (mut client, mut wire) = (Client::new(Arc::new(settings)), Wire::new(stream));
    loop {
        while let Some(output) = client.next_output() {
            match output {
                Output::Write(bytes) => wire.push(bytes),
                Output::StartTls => return Ok(protected(host, &mut wire).await),
                Output::Ready => {
                    let offers_tls = client.offers().starttls;
                    return Ok(Probed {
                        offers_tls,
                        handshake_error: offers_tls.then(|| "it refuses to begin".to_owned()),
                        ..Probed::default()
                    });
                }
                Output::Failed(reply) => return Err(text(&reply)),
                Output::Replied { .. } | Output::Close => {
                    return Err("the server closed the connection".to_owned());
                }
            }
        }
        match wire.moved().await {
            Moved::Wrote { all: true } => client.on_written(),
            Moved::Wrote { all: false } => {}
            Moved::Read(bytes) => client.on_bytes(&bytes),
            Moved::Closed(why) => client.on_closed(&why),
        }
    }
}

/// The handshake takes any certificate: what is wrong with it is to be told.
async fn protected(host: &str, wire: &mut Wire) -> Probed {
    let mut probed = Probed {
        offers_tls: true,
        ..Probed::default()
    };
    let begun = match connector(false, None) {
        Ok(connector) => wire.protect(&connector, host).await,
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = begun {
        probed.handshake_error = Some(why);
        return probed;
    }
    let chain = wire.certificates();
    probed.certificate = chain.first().map(|first| first.to_vec());
    probed.distrust = trust(host, chain).err();
    probed
}

fn trust(host: &str, chain: &[CertificateDer<'_>]) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| error.to_string())?;
    let (first, rest) = chain.split_first().ok_or("it has none")?;
    let name = ServerName::try_from(host).map_err(|_| format!("{host} is no name for one"))?;
    let verified = verifier.verify_server_cert(first, rest, &name, &[], UnixTime::now());
    verified.map(|_| ()).map_err(|error| error.to_string())
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Said { code, text, .. } => format!("it answered {code} {text}"),
        Reply::Network { text, .. } | Reply::Damaged { text } => text.to_string(),
        Reply::Uncertain => "it did not answer".to_owned(),
    }
}
