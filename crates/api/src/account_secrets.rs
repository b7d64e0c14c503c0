//! What keeps accounts from giving secrets away.
//!
//! An administrator's token is for accounts, not for the files or the
//! environment of the server, or for passwords that others set. So files that an
//! account names over the API lie in one directory, variables have one prefix,
//! and whoever has a password sent elsewhere, or otherwise than before, must
//! know it. What the settings file says, and what was set before, holds as it
//! is, as long as it goes where it went.

use std::path::{Component, Path};

use outflow_config::RawAccount;
use serde_json::Value;

use crate::problem::{FieldError, Problem};

/// What the names of environment variables begin with that accounts may name
/// over the API.
const VARIABLE_PREFIX: &str = "OUTFLOW_SECRET_";

/// Files that an account names.
fn files(account: &RawAccount) -> [(&'static str, Option<&String>); 3] {
    let dkim = account.dkim.as_ref();
    [
        ("/password_file", account.password_file.as_ref()),
        ("/ca_file", account.ca_file.as_ref()),
        (
            "/dkim/key_file",
            dkim.and_then(|dkim| dkim.key_file.as_ref()),
        ),
    ]
}

fn is_inside(path: &Path, dir: &Path) -> bool {
    let is_plain = |part: Component<'_>| !matches!(part, Component::ParentDir);
    let is_named = dir.components().next().is_some();
    is_named && path.starts_with(dir) && path.components().all(is_plain)
}

/// Whether somebody may set this account who sent these fields of it.
pub fn check(
    account: &RawAccount,
    before: Option<&RawAccount>,
    sent: &Value,
    secrets_dir: &Path,
) -> Result<(), Problem> {
    let known = before.map(files);
    let known = |at: &str| {
        let mut files = known.iter().flatten();
        files.find_map(|(of, path)| (*of == at).then_some(*path).flatten())
    };
    let is_diverted = before.is_some_and(|before| goes_elsewhere(account, before));
    // Whoever names a variable or file again need not know what is in it.
    let named_again = |field: &str| is_diverted && sent.get(field).is_some_and(|it| !it.is_null());
    let mut errors = Vec::new();
    if let Some(variable) = &account.password_env {
        let was = before.and_then(|before| before.password_env.as_ref());
        let is_known = was == Some(variable) && !named_again("password_env");
        if !is_known && !variable.starts_with(VARIABLE_PREFIX) {
            let detail = format!(
                "must begin with {VARIABLE_PREFIX}, as in {VARIABLE_PREFIX}RELAY: other variables \
                 of the server are named in the settings file only"
            );
            errors.push(FieldError::new("/password_env", detail));
        }
    }
    for (at, path) in files(account) {
        let Some(path) = path else { continue };
        let is_password = at == "/password_file";
        let is_known = known(at) == Some(path) && !(is_password && named_again("password_file"));
        if !is_known && !is_inside(Path::new(path), secrets_dir) {
            let dir = secrets_dir.display();
            let detail = format!("must be a file in {dir} (server.secrets_dir in the settings)");
            errors.push(FieldError::new(at, detail));
        }
    }
    if account.user.is_some() && is_diverted && !sends_secret(sent) {
        let detail = "it would be sent elsewhere, or otherwise than before (host, port, tls, \
                      use_tls, insecure, ca_file): send it again, or the variable or file that \
                      holds it";
        errors.push(FieldError::new("/password", detail));
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Problem::invalid(errors)),
    }
}

/// Whether a password would be sent to somebody else, or less well protected.
fn goes_elsewhere(account: &RawAccount, before: &RawAccount) -> bool {
    let had_login = before.user.is_some();
    let way = |it: &RawAccount| {
        (
            (it.transport.clone(), it.host.clone(), it.port),
            (it.tls.clone(), it.use_tls, it.insecure, it.ca_file.clone()),
        )
    };
    had_login && way(account) != way(before)
}

fn sends_secret(sent: &Value) -> bool {
    let is_placeholder = |value: &Value| {
        let read = RawAccount::read(&serde_json::json!({ "password": value }));
        let password = read.ok().and_then(|account| account.password);
        password.is_none_or(|password| password.is_placeholder())
    };
    let given = |field: &str| sent.get(field).filter(|value| !value.is_null());
    given("password").is_some_and(|value| !is_placeholder(value))
        || given("password_env").is_some()
        || given("password_file").is_some()
}
