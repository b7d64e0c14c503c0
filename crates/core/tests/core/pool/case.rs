//! What a simulation of a pool is about, and what it found.

use outflow_core::entropy::Entropy;
use outflow_core::pool::{SessionCaps, SessionKind};

/// How much arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// More waits everywhere than can be sent.
    Saturated,
    /// One lane has more than can be sent; the others 1 % of what can be sent,
    /// together.
    Hot,
    /// So much per cent of what the accounts can send, evenly over the lanes.
    Percent(u64),
}

/// One simulated pool.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub accounts: u32,
    pub lanes: u32,
    /// What each account may send, in thousandths a second, and at once.
    pub rate_milli: u64,
    pub burst: u64,
    /// The same for each account x lane.
    pub product: Option<(u64, u64)>,
    pub caps: SessionCaps,
    pub connect_ms: (u64, u64),
    pub reply_ms: (u64, u64),
    pub load: Load,
    pub connects_fail_percent: u64,
    pub blocked_percent: u64,
    /// Random holds, closes, removals and late events.
    pub chaos: bool,
    pub warm_up_s: u64,
    pub measured_s: u64,
}

impl Case {
    pub fn new(accounts: u32, lanes: u32, load: Load) -> Self {
        Self {
            accounts,
            lanes,
            rate_milli: 10_000,
            burst: 5,
            product: None,
            caps: SessionCaps {
                kind: SessionKind::Connections,
                max_connections: 20,
                per_destination: 20,
                messages_per_session: 100,
                idle_timeout: outflow_core::time::Nanos::from_secs(30),
                rate_milli: 10_000,
            },
            connect_ms: (50, 500),
            reply_ms: (50, 300),
            load,
            connects_fail_percent: 0,
            blocked_percent: 0,
            chaos: false,
            warm_up_s: 10,
            measured_s: 40,
        }
    }

    /// Another rate for each account.
    pub fn rate(mut self, per_second: u64, burst: u64) -> Self {
        self.rate_milli = per_second * 1_000;
        self.caps.rate_milli = self.rate_milli;
        self.burst = burst;
        self
    }

    /// Other caps for each account.
    pub fn sessions(mut self, max_connections: u32, messages_per_session: u32) -> Self {
        self.caps.max_connections = max_connections;
        self.caps.per_destination = max_connections;
        self.caps.messages_per_session = messages_per_session;
        self
    }

    /// What can be sent in a second, in thousandths.
    pub fn capacity_milli(&self) -> u64 {
        let accounts = self.rate_milli * u64::from(self.accounts);
        let products = self.product.map_or(u64::MAX, |(rate_milli, _)| {
            rate_milli * u64::from(self.accounts) * u64::from(self.lanes)
        });
        accounts.min(products)
    }
}

/// What a simulation found in its measured time.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    pub sent: u64,
    /// Sent of what could have been sent.
    pub of_possible: f64,
    /// The least and the most used account, of the mean.
    pub accounts: (f64, f64),
    /// The worst lane: of the mean if saturated, else of what it was given.
    pub worst_lane: f64,
    pub searches_per_send: f64,
    pub looks_per_send: f64,
    pub openings_per_1000: f64,
    pub taken_per_1000: f64,
    pub critical_p99_ms: u64,
    /// All sends, in order, as one number.
    pub trace: u64,
    pub drained: bool,
}

/// A small pool drawn from a seed.
pub fn random_case(seed: u64) -> Case {
    let mut entropy = Entropy(seed);
    let mut draw = |low, high| entropy.between(low, high);
    let load = match draw(0, 3) {
        0 => Load::Saturated,
        1 => Load::Hot,
        _ => Load::Percent(draw(20, 95)),
    };
    let accounts = draw(1, 6) as u32;
    let lanes = draw(1, if seed.is_multiple_of(10) { 80 } else { 8 }) as u32;
    let mut case = Case::new(accounts, lanes, load)
        .rate(draw(1, 40), draw(1, 8))
        .sessions(draw(1, 6) as u32, draw(1, 30) as u32);
    case.caps.per_destination = draw(1, u64::from(case.caps.max_connections)) as u32;
    case.caps.kind = match draw(0, 5) {
        0 => SessionKind::Slots,
        1 | 2 => SessionKind::RelayConnections,
        _ => SessionKind::Connections,
    };
    if draw(0, 2) == 0 {
        case.product = Some((draw(200, 5_000), draw(1, 4)));
    }
    case.connects_fail_percent = if draw(0, 2) == 0 { draw(1, 60) } else { 0 };
    case.blocked_percent = if draw(0, 2) == 0 { draw(1, 50) } else { 0 };
    case.chaos = draw(0, 1) == 0;
    case.warm_up_s = 1;
    case.measured_s = draw(2, 12);
    case
}
