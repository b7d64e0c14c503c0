//! How an account reaches its server: facts, as an operator wrote them, and what
//! is made of them once.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use outflow_mail::Keyring;
use outflow_mail::address::domain_to_ascii;
use tokio_rustls::TlsConnector;

use crate::client::login::Login;
use crate::client::timeouts::Timeouts;
use crate::client::{ClientSettings, Tls};
use crate::exchangers::Exchangers;
use crate::tls::{self, TlsError};

/// Where connections go.
#[derive(Clone)]
pub enum Target {
    /// To this host: a provider's server, or a relay.
    Host {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
    /// To the servers of each destination.
    Exchangers(Arc<dyn Exchangers>),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, port } => write!(f, "{host}:{port}"),
            Self::Exchangers(_) => f.write_str("Exchangers"),
        }
    }
}

/// How an account reaches its server.
#[derive(Clone, Debug)]
pub struct Relay {
    /// Where connections go.
    pub target: Target,
    /// How they are protected.
    pub tls: Tls,
    /// Who we are to the server.
    pub login: Option<Login>,
    /// What we call ourselves: a domain, or an address in brackets.
    pub helo: String,
    /// The local address of connections.
    pub source_ip: Option<IpAddr>,
    /// Certificates, in PEM, that are trusted besides the usual ones.
    pub ca_file: Option<PathBuf>,
    /// Whether any certificate will do, and a password may go over an open line.
    /// For tests and for servers next door.
    pub insecure: bool,
    /// How mail is signed.
    pub keys: Arc<Keyring>,
    /// Whether CHUNKING is used where it is offered: small messages then take
    /// one round trip.
    pub chunking: bool,
    /// How long each step may take.
    pub timeouts: Timeouts,
}

/// Why a relay cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// What we call ourselves.
    #[error("helo {0:?} is neither a domain nor an address in brackets")]
    Helo(String),
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Relay {
    /// A relay with everything as it usually is.
    pub fn new(host: impl Into<String>, port: u16, tls: Tls, helo: impl Into<String>) -> Self {
        let host = host.into();
        Self::to(Target::Host { host, port }, tls, helo)
    }

    /// The same, to the servers of each destination.
    pub fn to(target: Target, tls: Tls, helo: impl Into<String>) -> Self {
        Self {
            target,
            tls,
            login: None,
            helo: helo.into(),
            source_ip: None,
            ca_file: None,
            insecure: false,
            keys: Arc::new(Keyring::default()),
            chunking: true,
            timeouts: Timeouts::default(),
        }
    }

    /// Checks the facts and reads what they name.
    pub(crate) fn prepare(&self) -> Result<Prepared, RelayError> {
        let helo = helo(&self.helo).ok_or_else(|| RelayError::Helo(self.helo.clone()))?;
        let way = |tls, is_checked| -> Result<Way, TlsError> {
            Ok(Way {
                client: Arc::new(ClientSettings {
                    helo: helo.clone(),
                    tls,
                    login: self.login.clone(),
                    password_in_clear: self.insecure,
                    chunking: self.chunking,
                    timeouts: self.timeouts,
                }),
                connector: match tls {
                    Tls::None => None,
                    _ => Some(tls::connector(is_checked, self.ca_file.as_deref())?),
                },
                is_checked,
            })
        };
        let is_protected = matches!(self.tls, Tls::Starttls | Tls::Implicit);
        // Whoever takes an open line too gains nothing by checking certificates.
        let is_checked = !self.insecure && is_protected;
        let verified = match (&self.target, is_checked) {
            (Target::Host { .. }, _) | (_, true) => None,
            (Target::Exchangers(_), false) if is_protected => Some(way(self.tls, true)?),
            (Target::Exchangers(_), false) => Some(way(Tls::Starttls, true)?),
        };
        let is_open = self.tls == Tls::Opportunistic;
        let in_the_open = is_open.then(|| way(Tls::None, false)).transpose()?;
        Ok(Prepared {
            target: self.target.clone(),
            source_ip: self.source_ip,
            keys: Arc::clone(&self.keys),
            usual: way(self.tls, is_checked)?,
            in_the_open,
            verified,
            timeouts: self.timeouts,
        })
    }
}

fn helo(text: &str) -> Option<String> {
    let literal = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match literal {
        Some(inside) => {
            let address: IpAddr = inside.trim_start_matches("IPv6:").parse().ok()?;
            Some(match address {
                IpAddr::V4(address) => format!("[{address}]"),
                IpAddr::V6(address) => format!("[IPv6:{address}]"),
            })
        }
        None => domain_to_ascii(text),
    }
}

/// A relay whose facts were checked.
pub(crate) struct Prepared {
    pub target: Target,
    pub source_ip: Option<IpAddr>,
    pub keys: Arc<Keyring>,
    usual: Way,
    /// For a second try where TLS is opportunistic and failed.
    in_the_open: Option<Way>,
    /// For servers whose certificate must be verified, where it usually is not.
    verified: Option<Way>,
    pub timeouts: Timeouts,
}

impl Prepared {
    /// How to connect to a server, and how if TLS failed.
    pub fn ways(&self, must_verify: bool) -> (&Way, Option<&Way>) {
        match must_verify {
            true => (self.verified.as_ref().unwrap_or(&self.usual), None),
            false => (&self.usual, self.in_the_open.as_ref()),
        }
    }
}

/// How a connection is made.
pub(crate) struct Way {
    pub client: Arc<ClientSettings>,
    pub connector: Option<TlsConnector>,
    /// Whether certificates are verified.
    pub is_checked: bool,
}
