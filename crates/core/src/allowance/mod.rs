//! What a far end says outright of its limits.
//!
//! Most far ends say nothing and refuse. Those that tell how much they take are
//! taken at their word: a rate is kept to from then on, and a quota that is used
//! up stops its account until it starts anew. A quota is never turned into a
//! rate: a thousand an hour may all be sent in its first minute.
//!
//! In `headers`: what HTTP answers say. In `date`: dates as HTTP writes them.

mod date;
mod headers;

pub use headers::{Heard, heard};

use crate::limit::spec::Rate;
use crate::time::Nanos;

/// Nobody is taken at his word for longer without being asked again.
const RESET_MAX: Nanos = Nanos::from_secs(86_400);
/// A count over a window of at most this length is a rate, over a longer one a
/// quota.
const RATE_WINDOW_MAX: Nanos = Nanos::from_secs(60);
/// More a second than this is not kept count of.
const PER_SECOND_MAX: f64 = 100_000.0;
/// A quota of the last 24 hours is never all there again at once: some of it
/// comes back all the time.
const ROLLING_RESET: Nanos = Nanos::from_secs(600);

/// What a far end says that it takes from an account, wherever that sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// So many in so much time.
    pub rate: Option<Rate>,
    /// What is left of a quota.
    pub left: Option<Left>,
}

/// What is left of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// So many more are taken ...
    pub count: u64,
    /// ... until it starts anew.
    pub resets_in: Nanos,
}

impl Allowance {
    /// What Amazon SES says of an account (`GetAccount`): messages a second, and
    /// in 24 hours, and how many of those are sent. It writes -1 for "as many as
    /// you like".
    pub fn of_ses(max_send_rate: f64, max_24_hour_send: f64, sent_last_24_hours: f64) -> Self {
        let is_rate = max_send_rate.is_finite() && max_send_rate > 0.0;
        let is_quota = max_24_hour_send >= 0.0 && sent_last_24_hours >= 0.0;
        let left = (max_24_hour_send - sent_last_24_hours).max(0.0);
        Self {
            rate: is_rate.then(|| Rate::of_per_second(max_send_rate.min(PER_SECOND_MAX))),
            left: (is_quota && left.is_finite()).then_some(Left {
                count: left as u64,
                resets_in: ROLLING_RESET,
            }),
        }
    }

    /// Whether nothing was said.
    pub const fn is_empty(&self) -> bool {
        self.rate.is_none() && self.left.is_none()
    }

    /// So many in a window of this length: a rate if it is short.
    fn note_policy(&mut self, count: u64, window: Nanos) {
        let Ok(count) = u32::try_from(count) else {
            return;
        };
        let is_rate = count > 0 && window > Nanos::ZERO && window <= RATE_WINDOW_MAX;
        let rate = Rate { count, per: window };
        if is_rate && rate.in_a_second() <= PER_SECOND_MAX {
            self.rate = Some(self.rate.map_or(rate, |known| known.slower(rate)));
        }
    }

    /// Of several quotas the one counts that lets least through, for longest.
    fn note_left(&mut self, left: Left) {
        let left = Left {
            resets_in: left.resets_in.min(RESET_MAX),
            ..left
        };
        let order = |it: &Left| (it.count, std::cmp::Reverse(it.resets_in));
        if self.left.is_none_or(|known| order(&left) < order(&known)) {
            self.left = Some(left);
        }
    }
}
