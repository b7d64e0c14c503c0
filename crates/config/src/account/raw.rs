//! The fields of an account, as they are written in the file and over the API.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sandbox::RawSandbox;
use crate::check;
use crate::keys;
use crate::problem::{Invalid, Problems};
use crate::secret::Secret;
use crate::written::Written;

/// An account as it is written. Serializing it hides its password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawAccount {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brand: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_tls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dkim: Option<RawDkim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections_per_destination: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_messages_per_connection: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_rate: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<Written>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_per_minute: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_per_hour: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_per_day: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<RawSandbox>,
}

/// How an account signs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawDkim {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}

impl RawAccount {
    /// The account that takes everything when none is configured.
    pub fn default_sandbox() -> Self {
        Self {
            id: Some("sandbox".to_owned()),
            transport: Some("sandbox".to_owned()),
            ..Self::default()
        }
    }

    /// Reads an account from JSON. All that does not fit is told, each with a
    /// pointer; what an account as a whole lacks is for `validate` to say.
    pub fn read(value: &Value) -> Result<Self, Invalid> {
        let mut problems = Problems::default();
        let raw = Self::read_what_fits(value.clone(), &mut problems);
        problems.or(raw)
    }

    pub(super) fn read_what_fits(mut value: Value, problems: &mut Problems) -> Self {
        check::table(&mut value, keys::ACCOUNT, "", problems);
        serde_json::from_value(value).unwrap_or_else(|error| {
            problems.add("", error.to_string());
            Self::default()
        })
    }

    /// As JSON for people: without its password.
    pub fn shown(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// As JSON for the store alone: with its password.
    pub fn stored(&self) -> Value {
        let mut value = self.shown();
        if let (Some(fields), Some(password)) = (value.as_object_mut(), &self.password) {
            fields.insert("password".to_owned(), password.expose().into());
        }
        value
    }

    /// Takes the password over from what the account was before, if what came
    /// is only what was shown of it.
    pub fn keep_secrets(&mut self, before: &Self) {
        if self.password.as_ref().is_some_and(Secret::is_placeholder) {
            self.password = before.password.clone();
        }
    }
}
