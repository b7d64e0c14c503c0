//! When breakers open, and for how long.

use crate::time::Nanos;

/// The numbers of all breakers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Whether there are any.
    pub enabled: bool,
    /// So many failures one after the other open one, ...
    pub failures: u32,
    /// ... if they are at least so many thousandths of the replies of the last
    /// twelve seconds.
    pub share_permille: u32,
    /// How long it is open the first time; twice as long each further time.
    pub open_for: Nanos,
    /// How long it is open at most.
    pub open_max: Nanos,
    /// Refusals above so many thousandths of the replies of a minute stop an
    /// account at a destination, ...
    pub refusals_permille: u32,
    /// ... if there were at least so many replies.
    pub refusals_least: u32,
    /// How long it then stops.
    pub stop_for: Nanos,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            failures: 10,
            share_permille: 500,
            open_for: Nanos::from_secs(10),
            open_max: Nanos::from_secs(120),
            refusals_permille: 200,
            refusals_least: 20,
            stop_for: Nanos::from_secs(30),
        }
    }
}
