//! What must not be seen: passwords, and where they come from.
//!
//! A secret shows itself as `(hidden)` wherever it is printed, logged or
//! serialized. Whoever needs the text asks for it by a name that stands out.
//! What was shown may be sent back: then `(hidden)` means "as it was".

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

/// What is shown in place of a secret.
pub const HIDDEN: &str = "(hidden)";

/// No secret is longer.
pub const SECRET_BYTES_MAX: usize = 4_096;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself. It belongs into the hands of the far end, or of the
    /// store, and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether this is what was shown of a secret, sent back.
    pub fn is_placeholder(&self) -> bool {
        self.0 == HIDDEN
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(HIDDEN)
    }
}

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// It was given over the API.
    Given(Secret),
    /// An environment variable.
    Env(String),
    /// A file; a newline at its end does not count.
    File(PathBuf),
}

/// Why a secret cannot be had. Never says what it is.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set")]
    NotSet(String),
    /// The file cannot be read.
    #[error("{path} cannot be read: {error}", path = path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Nothing, or far too much.
    #[error("{0} must hold 1 to {SECRET_BYTES_MAX} bytes of text")]
    Length(String),
}

impl SecretSource {
    /// The secret, from wherever it is. `env` looks up a variable.
    pub fn resolve(&self, env: impl Fn(&str) -> Option<String>) -> Result<Secret, SecretError> {
        let (text, origin) = match self {
            Self::Given(secret) => return Ok(secret.clone()),
            Self::Env(name) => {
                let text = env(name).ok_or_else(|| SecretError::NotSet(name.clone()))?;
                (text, name.clone())
            }
            Self::File(path) => {
                let unreadable = |error| SecretError::Unreadable {
                    path: path.clone(),
                    error,
                };
                let mut text = String::new();
                let file = File::open(path).map_err(unreadable)?;
                file.take(SECRET_BYTES_MAX as u64 + 2)
                    .read_to_string(&mut text)
                    .map_err(unreadable)?;
                let line = text.trim_end_matches(['\r', '\n']).to_owned();
                (line, path.display().to_string())
            }
        };
        match text.len() {
            1..=SECRET_BYTES_MAX => Ok(Secret(text)),
            _ => Err(SecretError::Length(origin)),
        }
    }
}

/// A URL without the password in it: `redis://user:(hidden)@host/0`.
pub fn url_without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    // Everything behind a `?` may carry a password as well.
    let (path, query) = path
        .split_once('?')
        .map_or((path, ""), |(path, _)| (path, "?..."));
    match authority.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{scheme}://{user}:{HIDDEN}@{host}{path}{query}")
        }
        None => format!("{scheme}://{authority}{path}{query}"),
    }
}
