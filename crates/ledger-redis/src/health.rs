//! Whether Redis is there: the breaker, and what people are shown of it.
//!
//! One failure is enough. While Redis is away nobody asks it but a single probe,
//! so an outage costs nobody a time-out.

use std::time::Instant;

/// What a ledger over Redis did so far, and how it is.
#[derive(Clone, Debug, Default)]
pub struct LedgerStatus {
    /// Since when Redis has been away, if it is.
    pub away_since: Option<Instant>,
    /// How often it went away.
    pub times_away: u64,
    /// What went wrong last. Holds no secrets.
    pub last_error: Option<String>,
    /// The server in use.
    pub server: Option<String>,
    /// Pipelines sent and answered.
    pub round_trips: u64,
    /// Requests for tokens.
    pub requests: u64,
    /// Leases granted.
    pub leases: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Tokens that came back.
    pub given_back: u64,
    /// How many of the 64 parts of the limits failed a moment ago, in a cluster
    /// whose other servers are there.
    pub parts_away: u32,
    /// Whether the server may evict keys to save memory: then it forgets counts,
    /// and limits can be exceeded. Set `maxmemory-policy noeviction`.
    pub may_evict: bool,
    /// The version of the fleet's policies that was seen last.
    pub policies_version: u64,
}

/// In which state the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// For the first time: who asks waits.
    Connecting,
    /// Connected, for the nth time.
    Up(u64),
    /// Not there: who asks is told so at once.
    Away,
}

/// The longest error that is kept.
const ERROR_MAX: usize = 300;

/// The breaker.
#[derive(Debug)]
pub(crate) struct Health {
    pub phase: Phase,
    connections: u64,
    pub status: LedgerStatus,
}

impl Health {
    pub fn new() -> Self {
        Self {
            phase: Phase::Connecting,
            connections: 0,
            status: LedgerStatus::default(),
        }
    }

    /// Connected.
    pub fn connected(&mut self, server: String, may_evict: bool) -> Phase {
        self.connections += 1;
        self.phase = Phase::Up(self.connections);
        self.status.away_since = None;
        self.status.server = Some(server);
        self.status.may_evict = may_evict;
        self.phase
    }

    /// Something failed. Whether that is news: what the last connection says
    /// does not count against the next.
    pub fn failed(&mut self, of: Phase, now: Instant, error: &str) -> bool {
        if self.phase != of && !matches!(self.phase, Phase::Connecting) {
            return false;
        }
        self.note(error);
        if self.phase == Phase::Away {
            return false;
        }
        self.phase = Phase::Away;
        self.status.away_since = Some(now);
        self.status.times_away += 1;
        self.status.server = None;
        true
    }

    /// Keeps what went wrong.
    pub fn note(&mut self, error: &str) {
        self.status.last_error = Some(error.chars().take(ERROR_MAX).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_opens_and_a_connection_closes() {
        let (mut health, now) = (Health::new(), Instant::now());
        let first = health.connected("a:1".to_owned(), false);
        assert!(health.failed(first, now, "gone"));
        assert!(!health.failed(first, now, "gone"), "it is known");
        assert_eq!(health.status.away_since, Some(now));
        let second = health.connected("b:1".to_owned(), false);
        assert_ne!(first, second);
        assert!(
            !health.failed(first, now, "late"),
            "the old connection is no news"
        );
        assert_eq!(health.phase, second);
        assert_eq!(health.status.times_away, 1);
    }

    #[test]
    fn a_first_attempt_that_fails_is_away() {
        let (mut health, now) = (Health::new(), Instant::now());
        assert!(health.failed(Phase::Connecting, now, "refused"));
        assert_eq!(health.phase, Phase::Away);
    }
}
