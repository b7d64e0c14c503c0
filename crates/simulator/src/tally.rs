//! What became of a set of messages: all, those of a class, those of a tenant.

use outflow_core::message::State;
use outflow_core::time::Nanos;
use serde::{Serialize, Serializer};

use crate::histogram::Histogram;

/// A number with three decimals, kept as thousandths so that two runs agree to
/// the digit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixed(pub u64);

impl Fixed {
    /// A time in milliseconds.
    pub fn millis(time: Nanos) -> Self {
        Self(time.0 / 1_000)
    }

    /// A time in seconds.
    pub fn secs(time: Nanos) -> Self {
        Self(time.0 / 1_000_000)
    }

    /// `part` of `whole`; nothing of nothing is nothing.
    pub fn ratio(part: u64, whole: u64) -> Self {
        let thousandths = u128::from(part) * 1_000 / u128::from(whole.max(1));
        Self(u64::try_from(thousandths).unwrap_or(u64::MAX))
    }

    /// As a floating-point number.
    pub fn value(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

impl Serialize for Fixed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.value())
    }
}

/// Counts while a run goes on.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    accepted: u64,
    delivered: u64,
    bounced: u64,
    expired: u64,
    cancelled: u64,
    suppressed: u64,
    dead: u64,
    attempts: u64,
    waits: Histogram,
}

impl Tally {
    /// One more was accepted.
    pub fn accepted(&mut self) {
        self.accepted += 1;
    }

    /// One was handed to a transport; for the first time after `wait`.
    pub fn dispatched(&mut self, wait: Option<Nanos>) {
        self.attempts += 1;
        if let Some(wait) = wait {
            self.waits.add(wait);
        }
    }

    /// One ended.
    pub fn settled(&mut self, state: State) {
        let count = match state {
            State::Delivered => &mut self.delivered,
            State::Bounced => &mut self.bounced,
            State::Expired => &mut self.expired,
            State::Cancelled => &mut self.cancelled,
            State::Suppressed => &mut self.suppressed,
            State::Dead => &mut self.dead,
            State::Queued | State::Sending | State::Deferred | State::Spilled => return,
        };
        *count += 1;
    }

    /// The figures of it.
    pub fn figures(&self) -> Figures {
        let wait = |permille| self.waits.percentile(permille).map(Fixed::millis);
        let ended = self.delivered
            + self.bounced
            + self.expired
            + self.cancelled
            + self.suppressed
            + self.dead;
        Figures {
            accepted: self.accepted,
            delivered: self.delivered,
            bounced: self.bounced,
            expired: self.expired,
            cancelled: self.cancelled,
            suppressed: self.suppressed,
            dead: self.dead,
            unfinished: self.accepted.saturating_sub(ended),
            attempts: self.attempts,
            wait_p50_ms: wait(500),
            wait_p90_ms: wait(900),
            wait_p99_ms: wait(990),
            wait_max_ms: (self.waits.total() > 0).then(|| Fixed::millis(self.waits.max())),
        }
    }
}

/// What became of a set of messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Accepted by us.
    pub accepted: u64,
    /// Accepted by the far end.
    pub delivered: u64,
    /// Refused for good.
    pub bounced: u64,
    /// No longer useful.
    pub expired: u64,
    /// Withdrawn.
    pub cancelled: u64,
    /// Not to be sent.
    pub suppressed: u64,
    /// Given up.
    pub dead: u64,
    /// Not at an end when the run was.
    pub unfinished: u64,
    /// Times that one was handed to a transport.
    pub attempts: u64,
    /// From acceptance or due time to the first attempt: the median.
    pub wait_p50_ms: Option<Fixed>,
    /// What one in ten exceeds.
    pub wait_p90_ms: Option<Fixed>,
    /// What one in a hundred exceeds.
    pub wait_p99_ms: Option<Fixed>,
    /// The longest.
    pub wait_max_ms: Option<Fixed>,
}

impl Figures {
    /// All figures by name.
    pub fn each(&self) -> Vec<(&'static str, f64)> {
        let counts = [
            ("accepted", self.accepted),
            ("delivered", self.delivered),
            ("bounced", self.bounced),
            ("expired", self.expired),
            ("cancelled", self.cancelled),
            ("suppressed", self.suppressed),
            ("dead", self.dead),
            ("unfinished", self.unfinished),
            ("attempts", self.attempts),
        ];
        let waits = [
            ("wait_p50_ms", self.wait_p50_ms),
            ("wait_p90_ms", self.wait_p90_ms),
            ("wait_p99_ms", self.wait_p99_ms),
            ("wait_max_ms", self.wait_max_ms),
        ];
        counts
            .into_iter()
            .map(|(name, count)| (name, count as f64))
            .chain(
                waits
                    .into_iter()
                    .filter_map(|(name, wait)| Some((name, wait?.value()))),
            )
            .collect()
    }
}
