//! The live table: lanes, what goes out against what is allowed, how much
//! waits and on what. Redrawn in place on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::scenery::PROVIDERS;
use super::witness::Arrivals;

/// How long critical messages took, from the request to the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// How many.
    pub count: usize,
    /// Half took at most this.
    pub p50: Duration,
    /// All but one in a hundred took at most this.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Latency {
    /// Of these.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: usize| {
            let place = (times.len() * share).div_ceil(100).saturating_sub(1);
            times.get(place).copied().unwrap_or_default()
        };
        Self {
            count: times.len(),
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

/// What one look at the server showed.
#[derive(Debug)]
pub struct Look<'a> {
    /// Time since the start.
    pub at: Duration,
    /// `GET /lanes`.
    pub lanes: &'a Value,
    /// What arrived.
    pub arrivals: &'a BTreeMap<String, Arrivals>,
    /// Messages that were accepted.
    pub accepted: usize,
    /// Messages that arrived.
    pub delivered: u64,
    /// How long critical ones took.
    pub critical: Latency,
}

/// Draws the table.
#[derive(Debug)]
pub struct Table {
    is_terminal: bool,
    lines: usize,
    last: Instant,
    counts: BTreeMap<String, u64>,
}

impl Table {
    /// On standard output.
    pub fn new() -> Self {
        Self {
            is_terminal: io::stdout().is_terminal(),
            lines: 0,
            last: Instant::now(),
            counts: BTreeMap::new(),
        }
    }

    /// Something else was printed: the next table stands below it.
    pub fn begin_anew(&mut self) {
        self.lines = 0;
    }

    /// Draws one look.
    pub fn draw(&mut self, look: &Look<'_>) -> io::Result<()> {
        let seconds = self.last.elapsed().as_secs_f64().max(0.001);
        self.last = Instant::now();
        let mut rows = vec![format!(
            "{:<20} {:<15} {:>6} {:>10} {:>7} {:>6} {:>7} {:>7}  {}",
            "lane", "limit", "now/s", "delivered", "crit", "normal", "low", "flying", "waiting on"
        )];
        for provider in PROVIDERS {
            let destination = provider.destination();
            let count = look.arrivals.get(&destination).map_or(0, |it| it.count);
            let before = self.counts.insert(destination.clone(), count);
            let rate = (count - before.unwrap_or(0)) as f64 / seconds;
            rows.push(row(&destination, provider.limit, rate, count, look.lanes));
        }
        rows.push(format!(
            "{:>4} s  accepted {}, delivered {}; one-time passwords: {} in {:?} (median), {:?} \
             (99 %), {:?} (longest)",
            look.at.as_secs(),
            look.accepted,
            look.delivered,
            look.critical.count,
            millis(look.critical.p50),
            millis(look.critical.p99),
            millis(look.critical.max),
        ));
        self.print(&rows)
    }

    fn print(&mut self, rows: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.is_terminal && self.lines > 0 {
            write!(out, "\x1b[{}A", self.lines)?;
        }
        for row in rows {
            match self.is_terminal {
                true => writeln!(out, "\x1b[2K{row}")?,
                false => writeln!(out, "{row}")?,
            }
        }
        self.lines = rows.len();
        out.flush()
    }
}

fn millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn row(destination: &str, limit: &str, rate: f64, count: u64, lanes: &Value) -> String {
    let name = format!("default/{destination}");
    let lanes = lanes["lanes"].as_array();
    let lane = lanes.and_then(|lanes| lanes.iter().find(|lane| lane["lane"] == name.as_str()));
    let number = |pointer: &str| {
        let value = lane.and_then(|lane| lane.pointer(pointer));
        value.and_then(Value::as_u64).unwrap_or(0)
    };
    format!(
        "{name:<20} {limit:<15} {rate:>6.1} {count:>10} {:>7} {:>6} {:>7} {:>7}  {}",
        number("/waiting/critical"),
        number("/waiting/normal"),
        number("/waiting/low"),
        number("/in_flight"),
        lane.map_or(String::new(), waiting_on),
    )
}

/// The first thing that a lane waits for.
fn waiting_on(lane: &Value) -> String {
    let first = lane.pointer("/waiting_on/0");
    let limit = first.and_then(|first| first["limit"].as_str());
    let reason = first.and_then(|first| first["reason"].as_str());
    limit.or(reason).unwrap_or("-").to_owned()
}
