//! Where Redis is, and how it is used.

use std::fmt;
use std::time::Duration;

use outflow_core::ledger::Settings as Leasing;
use redis::{ConnectionInfo, IntoConnectionInfo};

/// Servers that one URL may name.
const SERVERS_MAX: usize = 64;
/// The longest prefix of keys.
const PREFIX_MAX: usize = 64;

/// Why settings cannot be used. Never says the URL itself: it may hold a
/// password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Not the URL of a Redis server.
    #[error(
        "the URL of the ledger cannot be read ({0}); write `redis://host:6379`, \
         `rediss://user:password@host:6379/0`, or several hosts: `redis://a:6379,b:6379`"
    )]
    Url(&'static str),
    /// A prefix that would break the names of keys.
    #[error(
        "the prefix of the ledger's keys must have 1 to {PREFIX_MAX} letters, digits, \
         `-`, `_`, `.` or `:`"
    )]
    Prefix,
    /// A time-out that is no time, or too long.
    #[error("the time-out of the ledger must be from 5 ms to 10 s")]
    Timeout,
}

/// Where Redis is, and how it is used.
#[derive(Clone)]
pub struct RedisSettings {
    pub(crate) servers: Vec<ConnectionInfo>,
    pub(crate) is_cluster: bool,
    pub(crate) prefix: String,
    pub(crate) timeout: Duration,
    pub(crate) leasing: Leasing,
    pub(crate) authority: Option<Vec<u8>>,
    pub(crate) reporter: Option<String>,
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(address).collect();
        f.debug_struct("RedisSettings")
            .field("servers", &servers)
            .field("is_cluster", &self.is_cluster)
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Where a server is, without what is secret.
pub(crate) fn address(server: &ConnectionInfo) -> String {
    server.addr().to_string()
}

impl RedisSettings {
    /// The servers that a URL names. Of several, the one that is the master is
    /// used.
    pub fn new(url: &str) -> Result<Self, SettingsError> {
        let mut servers = Vec::new();
        for url in split(url)? {
            let server = url.as_str().into_connection_info();
            // The error of the parser may repeat what it read.
            servers.push(server.map_err(|_| SettingsError::Url("host, port or database"))?);
        }
        Ok(Self {
            servers,
            is_cluster: false,
            prefix: "outflow".to_owned(),
            timeout: Duration::from_millis(100),
            leasing: Leasing::default(),
            authority: None,
            reporter: None,
        })
    }

    /// Uses Redis Cluster; the servers are where its nodes are asked for.
    #[must_use]
    pub fn cluster(mut self, is_cluster: bool) -> Self {
        self.is_cluster = is_cluster;
        self
    }

    /// What the names of all keys begin with.
    pub fn prefix(mut self, prefix: &str) -> Result<Self, SettingsError> {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.:".contains(it);
        if prefix.is_empty() || prefix.len() > PREFIX_MAX || !prefix.chars().all(is_plain) {
            return Err(SettingsError::Prefix);
        }
        prefix.clone_into(&mut self.prefix);
        Ok(self)
    }

    /// A server that does not answer in this time is away.
    pub fn timeout(mut self, timeout: Duration) -> Result<Self, SettingsError> {
        if timeout < Duration::from_millis(5) || timeout > Duration::from_secs(10) {
            return Err(SettingsError::Timeout);
        }
        self.timeout = timeout;
        Ok(self)
    }

    /// Trusts the servers that this authority vouches for, given as PEM, instead
    /// of the usual ones.
    #[must_use]
    pub fn authority(mut self, pem: Vec<u8>) -> Self {
        self.authority = Some(pem);
        self
    }

    /// Under which name the node reports what it debited to a ledger that lost
    /// its counts: the same after each restart, so that nothing is reported
    /// twice, and no other node's. By default a name of this process.
    #[must_use]
    pub fn reporter(mut self, name: &str) -> Self {
        self.reporter = Some(name.to_owned());
        self
    }

    /// How leases are sized.
    #[must_use]
    pub fn leasing(mut self, leasing: Leasing) -> Self {
        self.leasing = leasing;
        self
    }
}

/// The URLs of all hosts that one names.
fn split(url: &str) -> Result<Vec<String>, SettingsError> {
    let (scheme, rest) = url
        .split_once("://")
        .ok_or(SettingsError::Url("it has no `redis://`"))?;
    if !matches!(scheme, "redis" | "rediss") {
        return Ok(vec![url.to_owned()]);
    }
    let end = rest.rfind('@').map_or(0, |at| at + 1);
    let (user, rest) = rest.split_at(end);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (hosts, path) = rest.split_at(end);
    let urls: Vec<String> = hosts
        .split(',')
        .map(|host| format!("{scheme}://{user}{}{path}", host.trim()))
        .collect();
    match urls.len() {
        0..=SERVERS_MAX => Ok(urls),
        _ => Err(SettingsError::Url("it names too many hosts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_hosts_share_user_password_and_database() {
        let settings = RedisSettings::new("redis://me:s3cret@a:6379,b:6380/2").unwrap();
        let servers: Vec<String> = settings.servers.iter().map(address).collect();
        assert_eq!(servers, ["a:6379", "b:6380"]);
        for server in &settings.servers {
            let redis = server.redis_settings();
            assert_eq!(redis.username(), Some("me"));
            assert_eq!(redis.password(), Some("s3cret"));
            assert_eq!(redis.db(), 2);
        }
    }

    #[test]
    fn a_password_shows_nowhere() {
        let settings = RedisSettings::new("rediss://me:s3cret@a:6379").unwrap();
        assert!(!format!("{settings:?}").contains("s3cret"));
        for broken in ["redis://me:s3cret@a:port", "me:s3cret@a", "redis://s3cret@"] {
            let Err(error) = RedisSettings::new(broken) else {
                continue;
            };
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn sizes_are_bounded() {
        let settings = RedisSettings::new("redis://a").unwrap();
        assert!(settings.clone().prefix("a{b}").is_err());
        assert!(settings.clone().prefix("").is_err());
        assert!(settings.clone().timeout(Duration::ZERO).is_err());
        assert!(settings.prefix("staging:outflow").is_ok());
    }
}
