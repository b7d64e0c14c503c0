//! What is so now: depths, limits, accounts. The server asks the node for it
//! when somebody asks for metrics, and nobody keeps it.

use outflow_core::class::Class;
use outflow_core::engine::meters::AccountMeter;
use outflow_core::message::{Channel, State};
use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::schedule::waits::Waits;
use outflow_core::time::Nanos;

/// Messages of one kind in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// How they travel.
    pub channel: Channel,
    /// How urgent they are.
    pub class: Class,
    /// Queued, sending or deferred.
    pub state: State,
    /// How many there are.
    pub messages: u64,
}

/// A limit as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitNow {
    /// Its key.
    pub key: String,
    /// What it would admit at once.
    pub tokens: u64,
    /// Messages per second, if it has a rate.
    pub rate: Option<f64>,
}

/// The throttle: what was counted since the start, and what is so now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleNow {
    /// Requests that were granted, refused, or made no sense.
    pub results: [u64; 3],
    /// Requests that had to wait.
    pub waited: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// Limits that are kept now.
    pub keys: u64,
    /// Permits that are held now.
    pub permits: u64,
}

/// What is so now.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Messages that are not done with.
    pub queue: Vec<Depth>,
    /// How long the oldest message that is ready has waited, by class.
    pub oldest_age: [Option<Nanos>; Class::COUNT],
    /// Deliveries without an answer yet.
    pub in_flight: u64,
    /// Sessions, open or opening.
    pub sessions: u64,
    /// All limits; those that matter most come first, since labels are bounded.
    pub limits: Vec<LimitNow>,
    /// What the limits of accounts hold up: `Engine::account_meters`.
    pub accounts: Vec<AccountMeter>,
    /// How the breakers of each lane stand: 0 closed, 1 half open, 2 open.
    pub breakers: Vec<(String, u8)>,
    /// How long heads waited: `Engine::limit_waits`.
    pub waits: Vec<(ScopeSet, Waits)>,
    /// What the throttle was asked.
    pub throttle: ThrottleNow,
    /// Recipients on the suppression list that are in force.
    pub suppressed: u64,
    /// Entries of it that are held.
    pub suppressions_held: u64,
    /// Bounces that were let go.
    pub suppressions_let_go: u64,
    /// Lines that the server's log, the log of attempts and that of grants
    /// dropped.
    pub lines_dropped: [u64; 3],
}
