//! What an engine is told once, and the sizes it shows.

use super::admission::FlowCaps;
use crate::breaker::BreakerSettings;
use crate::pool::PoolSettings;
use crate::retry::schedule::{OnUncertain, RetrySchedules};
use crate::time::{Mono, Nanos};

/// What an engine is told once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long and how often to try.
    pub retry: RetrySchedules,
    /// What becomes of a message whose answer was lost.
    pub on_uncertain: OnUncertain,
    /// Retries per thousand first attempts, and how many a minute always.
    pub retry_budget: (u32, u32),
    /// A delivery without an answer for this long is uncertain.
    pub delivery_deadline: Nanos,
    /// Whether limits are leased from a ledger.
    pub leased: bool,
    /// Whether rates are learnt where something was refused, though no policy
    /// says so.
    pub learns: bool,
    /// How many flows submissions may open.
    pub flow_caps: FlowCaps,
    /// How pools keep their sessions.
    pub pool: PoolSettings,
    /// When accounts that fail are left alone.
    pub breaker: BreakerSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry: RetrySchedules::default(),
            on_uncertain: OnUncertain::default(),
            retry_budget: (200, 10),
            delivery_deadline: Nanos::from_secs(600),
            leased: false,
            learns: true,
            flow_caps: FlowCaps::default(),
            pool: PoolSettings::default(),
            breaker: BreakerSettings::default(),
        }
    }
}

/// Sizes that bound memory, for metrics and checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Flows known.
    pub flows: usize,
    /// Tenants that have flows.
    pub tenants: usize,
    /// Lanes known.
    pub lanes: usize,
    /// Tenants at places where flows may wait, by class.
    pub nodes: usize,
    /// Retry budgets.
    pub budgets: usize,
    /// Heads held.
    pub heads: u64,
    /// Limits that are counted: of flows, accounts and recipients.
    pub limits: usize,
    /// Sessions, open or opening.
    pub sessions: u64,
    /// Deliveries in flight.
    pub in_flight: usize,
    /// Appends not yet known to be durable.
    pub unconfirmed: usize,
    /// When sending was last taken up again: at the start, or once the store
    /// took records again.
    pub opened_at: Mono,
    /// Looks at flows so far.
    pub visits: u64,
    /// Deliveries so far.
    pub sends: u64,
}
