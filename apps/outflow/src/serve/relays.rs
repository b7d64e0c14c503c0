//! From an account's settings to the server that its mail goes through.

use std::env;
use std::sync::Arc;

use outflow_config::account::{Dkim, Mx, Smtp};
use outflow_config::account::{Login as LoginSettings, Tls as TlsSettings};
use outflow_config::secret::SecretError;
use outflow_mail::dkim::DkimError;
use outflow_mail::{DkimKey, Keyring};
use outflow_resolver_dns::Directory;
use outflow_transport_smtp::{Login, Relay, RelayError, Target, Tls};

use super::exchangers::DirectExchangers;

/// Why an account cannot reach its server. Never says a secret.
#[derive(Debug, thiserror::Error)]
pub enum RelayProblem {
    #[error("its password: {0}")]
    Password(#[from] SecretError),
    #[error("its DKIM key: {0}")]
    Dkim(#[from] DkimError),
    #[error(transparent)]
    Relay(#[from] RelayError),
}

/// How an account reaches its server. Reads the files that it names.
pub fn relay(settings: &Smtp) -> Result<Relay, RelayProblem> {
    let target = Target::Host {
        host: settings.host.clone(),
        port: settings.port,
    };
    let helo = settings.helo.clone().unwrap_or_else(machine_name);
    let mut relay = Relay::to(target, tls(settings.tls), helo);
    relay.login = settings.login.as_ref().map(login).transpose()?;
    relay.source_ip = settings.source_ip;
    relay.ca_file = settings.ca_file.clone();
    relay.insecure = settings.insecure;
    relay.keys = Arc::new(keyring(settings.dkim.as_ref())?);
    Ok(relay)
}

/// How an account reaches the servers of each domain. Reads the files that it
/// names.
pub fn direct(settings: &Mx, directory: &Arc<Directory>) -> Result<Relay, RelayProblem> {
    let exchangers = DirectExchangers {
        directory: Arc::clone(directory),
        port: settings.port,
    };
    let target = Target::Exchangers(Arc::new(exchangers));
    let helo = settings.helo.clone().unwrap_or_else(machine_name);
    let mut relay = Relay::to(target, tls(settings.tls), helo);
    relay.source_ip = settings.source_ip;
    relay.keys = Arc::new(keyring(settings.dkim.as_ref())?);
    Ok(relay)
}

/// What the machine calls itself, if that can be said to a server.
pub fn machine_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let is_fit = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
    match is_fit && !name.is_empty() {
        true => name.into_owned(),
        false => "localhost".to_owned(),
    }
}

fn login(settings: &LoginSettings) -> Result<Login, SecretError> {
    let password = settings.password.resolve(|name| env::var(name).ok())?;
    Ok(Login {
        user: settings.user.clone(),
        password: password.expose().to_owned(),
    })
}

fn keyring(settings: Option<&Dkim>) -> Result<Keyring, DkimError> {
    let mut keys = Keyring::default();
    if let Some(dkim) = settings {
        let key = DkimKey::from_file(&dkim.domain, &dkim.selector, &dkim.key_file)?;
        keys.add_for_all(key);
    }
    Ok(keys)
}

const fn tls(settings: TlsSettings) -> Tls {
    match settings {
        TlsSettings::Starttls => Tls::Starttls,
        TlsSettings::Implicit => Tls::Implicit,
        TlsSettings::None => Tls::None,
        TlsSettings::Opportunistic => Tls::Opportunistic,
    }
}
