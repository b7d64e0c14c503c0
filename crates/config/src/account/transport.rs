//! How an account reaches the far end.

use std::net::IpAddr;
use std::path::PathBuf;

use super::raw::RawAccount;
use super::sandbox::Sandbox;
use crate::problem::Problems;
use crate::secret::SecretSource;

/// The transports.
pub const TRANSPORTS: &[&str] = &["smtp", "mx", "sandbox"];
/// How connections are protected.
pub const TLS: &[&str] = &["starttls", "implicit", "none", "opportunistic"];

/// Which transport an account has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A provider's server, or a relay.
    Smtp,
    /// The servers of each recipient's domain.
    Mx,
    /// Nowhere.
    Sandbox,
}

impl Kind {
    /// A relay, unless another is named.
    pub fn of(raw: &RawAccount) -> Self {
        match raw.transport.as_deref() {
            Some("mx") => Self::Mx,
            Some("sandbox") => Self::Sandbox,
            _ => Self::Smtp,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Mx => "mx",
            Self::Sandbox => "sandbox",
        }
    }
}

/// How an account reaches the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportSettings {
    /// A provider's server, or a relay.
    Smtp(Smtp),
    /// The servers of each recipient's domain.
    Mx(Mx),
    /// It does not: messages are taken, kept for a while and shown.
    Sandbox(Sandbox),
}

/// How a connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// STARTTLS, required and verified.
    Starttls,
    /// TLS from the first byte, verified.
    Implicit,
    /// Not at all.
    None,
    /// STARTTLS where it is offered, not verified.
    Opportunistic,
}

/// A provider's server, or a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smtp {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How connections to it are protected.
    pub tls: Tls,
    /// Who we are to it.
    pub login: Option<Login>,
    /// The local address of connections.
    pub source_ip: Option<IpAddr>,
    /// What we call ourselves.
    pub helo: Option<String>,
    /// Certificates that are trusted besides the usual ones.
    pub ca_file: Option<PathBuf>,
    /// Whether any certificate will do, and an open line for the password.
    pub insecure: bool,
    /// How mail is signed.
    pub dkim: Option<Dkim>,
}

/// The servers of each recipient's domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mx {
    /// Their port.
    pub port: u16,
    /// How connections to them are protected.
    pub tls: Tls,
    /// The local address of connections.
    pub source_ip: Option<IpAddr>,
    /// What we call ourselves.
    pub helo: Option<String>,
    /// How mail is signed.
    pub dkim: Option<Dkim>,
}

/// Who we are to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// Where the password comes from.
    pub password: SecretSource,
}

/// How mail is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dkim {
    /// The domain that vouches.
    pub domain: String,
    /// Which of its keys.
    pub selector: String,
    /// The private key.
    pub key_file: PathBuf,
}

impl TransportSettings {
    pub(super) fn of(raw: &RawAccount, kind: Kind, problems: &mut Problems) -> Self {
        match kind {
            Kind::Sandbox => Self::Sandbox(Sandbox::of(raw.sandbox.as_ref(), problems)),
            Kind::Mx => Self::Mx(Mx {
                port: raw.port.unwrap_or(25),
                tls: tls(raw, problems).unwrap_or(Tls::Opportunistic),
                source_ip: address(&raw.source_ip),
                helo: raw.helo.clone(),
                dkim: dkim(raw, problems),
            }),
            Kind::Smtp => Self::Smtp(smtp(raw, problems)),
        }
    }
}

fn smtp(raw: &RawAccount, problems: &mut Problems) -> Smtp {
    if raw.host.is_none() {
        problems.add(
            "/host",
            "smtp needs the host of the provider's server; to try things out, write \
             transport = \"sandbox\"",
        );
    }
    let tls = tls(raw, problems).unwrap_or(match raw.port {
        Some(465) => Tls::Implicit,
        _ => Tls::Starttls,
    });
    let login = login(raw, problems);
    let insecure = raw.insecure.unwrap_or(false);
    if login.is_some() && !insecure && matches!(tls, Tls::None | Tls::Opportunistic) {
        problems.add(
            "/tls",
            "a password is only sent over a connection that is protected for certain: use \
             starttls or implicit (or write insecure = true)",
        );
    }
    Smtp {
        host: raw.host.clone().unwrap_or_default(),
        port: raw.port.unwrap_or(match tls {
            Tls::Implicit => 465,
            Tls::Starttls | Tls::None | Tls::Opportunistic => 587,
        }),
        tls,
        login,
        source_ip: address(&raw.source_ip),
        helo: raw.helo.clone(),
        ca_file: raw.ca_file.as_ref().map(PathBuf::from),
        insecure,
        dkim: dkim(raw, problems),
    }
}

/// `tls`, or what `use_tls` says: true is TLS from the first byte on port 465
/// and STARTTLS on others; false is STARTTLS, never an open line.
fn tls(raw: &RawAccount, problems: &mut Problems) -> Option<Tls> {
    if raw.tls.is_some() && raw.use_tls.is_some() {
        problems.add("/use_tls", "tls says it already: leave out one of the two");
    }
    Some(match (raw.tls.as_deref(), raw.use_tls) {
        (Some("starttls"), _) => Tls::Starttls,
        (Some("implicit"), _) => Tls::Implicit,
        (Some("none"), _) => Tls::None,
        (Some("opportunistic"), _) => Tls::Opportunistic,
        (_, Some(true)) if matches!(raw.port, None | Some(465)) => Tls::Implicit,
        (_, Some(_)) => Tls::Starttls,
        (_, None) => return None,
    })
}

fn login(raw: &RawAccount, problems: &mut Problems) -> Option<Login> {
    let given = raw.password.clone().map(SecretSource::Given);
    let env = raw.password_env.clone().map(SecretSource::Env);
    let file = raw.password_file.as_ref();
    let file = file.map(|path| SecretSource::File(PathBuf::from(path)));
    if raw.password.as_ref().is_some_and(|it| it.is_placeholder()) {
        problems.add("/password", "write the password itself, or leave it out");
    }
    let mut sources = [given, env, file].into_iter().flatten();
    let password = sources.next();
    if sources.next().is_some() {
        problems.add(
            "/password_env",
            "write one of password, password_env and password_file",
        );
    }
    match (raw.user.clone(), password) {
        (Some(user), Some(password)) => Some(Login { user, password }),
        (Some(_), None) => {
            problems.add(
                "/password_env",
                "a user needs a password: write password_env or password_file",
            );
            None
        }
        (None, Some(_)) => {
            problems.add("/user", "a password needs a user");
            None
        }
        (None, None) => None,
    }
}

fn dkim(raw: &RawAccount, problems: &mut Problems) -> Option<Dkim> {
    let dkim = raw.dkim.as_ref()?;
    let mut needed = |field: &str, value: &Option<String>| {
        if value.is_none() {
            problems.add(
                format!("/dkim/{field}"),
                "a signature needs domain, selector and key_file",
            );
        }
        value.clone().unwrap_or_default()
    };
    Some(Dkim {
        domain: needed("domain", &dkim.domain),
        selector: needed("selector", &dkim.selector),
        key_file: PathBuf::from(needed("key_file", &dkim.key_file)),
    })
}

pub(super) fn address(text: &Option<String>) -> Option<IpAddr> {
    text.as_deref().and_then(|text| text.parse().ok())
}

/// Refuses fields that mean nothing to this transport.
pub(super) fn refuse_foreign(raw: &RawAccount, kind: Kind, problems: &mut Problems) {
    let of_relays = [
        ("host", raw.host.is_some()),
        ("user", raw.user.is_some()),
        ("password", raw.password.is_some()),
        ("password_env", raw.password_env.is_some()),
        ("password_file", raw.password_file.is_some()),
        ("ca_file", raw.ca_file.is_some()),
        ("insecure", raw.insecure.is_some()),
    ];
    let of_connections = [
        ("port", raw.port.is_some()),
        ("tls", raw.tls.is_some()),
        ("use_tls", raw.use_tls.is_some()),
        ("source_ip", raw.source_ip.is_some()),
        ("helo", raw.helo.is_some()),
        ("dkim", raw.dkim.is_some()),
        ("connect_rate", raw.connect_rate.is_some()),
        ("idle_timeout", raw.idle_timeout.is_some()),
        (
            "max_messages_per_connection",
            raw.max_messages_per_connection.is_some(),
        ),
        (
            "max_connections_per_destination",
            raw.max_connections_per_destination.is_some(),
        ),
    ];
    let of_sandboxes = [("sandbox", raw.sandbox.is_some())];
    let foreign: Vec<_> = match kind {
        Kind::Smtp => of_sandboxes.to_vec(),
        Kind::Mx => [&of_sandboxes[..], &of_relays[..]].concat(),
        Kind::Sandbox => [&of_relays[..], &of_connections[..]].concat(),
    };
    for (field, _) in foreign.into_iter().filter(|(_, is_set)| *is_set) {
        problems.add(
            format!("/{field}"),
            format!(
                "means nothing to transport = {:?}: leave it out",
                kind.as_str()
            ),
        );
    }
}
