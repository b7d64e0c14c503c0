//! `outflow lanes`: depth, what they wait on, how old the oldest is; pause and
//! resume. How they are watched is in [`super::watch`].

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::client::segment;
use super::failure::Failure;
use super::limits::Limits;
use super::message::WaitingOn;
use super::pauses;
use super::plain::{count, counted, plain};
use super::session::{Output, Session, print};
use super::table::{Column, Table};
use super::watch;
use super::when::{self, Direction};

/// What is shown of what a lane waits on.
const REASONS_MAX: usize = 2;

/// What to show or do.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Draw again each second, until interrupted.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What to do with a lane.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Pause a lane.
    Pause(Pause),
    /// Lift all pauses of exactly this lane.
    Resume(Resume),
}

/// Which lane, and for how long.
#[derive(Debug, Args)]
pub struct Pause {
    /// POOL/KIND:NAME, as `default/isp:google`.
    lane: String,
    /// Why, for those who wonder.
    #[arg(long)]
    reason: Option<String>,
    /// Until when: `2h`, `2026-01-31T12:00:00Z`. Without it, until it is
    /// resumed.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Which lane.
#[derive(Debug, Args)]
pub struct Resume {
    /// POOL/KIND:NAME, as `default/isp:google`.
    lane: String,
    #[command(flatten)]
    output: Output,
}

/// Counts by class.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ByClass {
    pub critical: u64,
    pub high: u64,
    pub normal: u64,
    pub low: u64,
}

impl ByClass {
    /// All together.
    pub const fn total(&self) -> u64 {
        self.critical + self.high + self.normal + self.low
    }

    /// `0/2/17/0`.
    pub fn text(&self) -> String {
        let Self {
            critical,
            high,
            normal,
            low,
        } = *self;
        let all = [critical, high, normal, low].map(count);
        all.join("/")
    }
}

/// A lane.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Lane {
    pub lane: String,
    pub waiting: ByClass,
    pub in_flight: u64,
    pub sessions: u64,
    pub sent: u64,
    pub waiting_on: Vec<WaitingOn>,
    pub paused: bool,
    pub broken: u64,
    pub oldest_age_s: Option<f64>,
}

/// All lanes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Lanes {
    /// In no order.
    pub lanes: Vec<Lane>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resumed {
    lifted: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments, session: &Session) -> Result<(), Failure> {
    match &arguments.command {
        Some(Command::Pause(arguments)) => pause(arguments, session),
        Some(Command::Resume(arguments)) => resume(arguments, session),
        None if arguments.watch => watch::run(arguments.output, session),
        None => {
            let answer = session.get("/lanes")?;
            if arguments.output.json {
                return session.print_json(&answer);
            }
            let lanes: Lanes = answer.read()?;
            let allowed = allowed(&lanes, session)?;
            print(&table(&lanes, &allowed, None, session.now()))
        }
    }
}

fn pause(arguments: &Pause, session: &Session) -> Result<(), Failure> {
    let until = arguments.until.as_deref();
    let until = until.map(|until| when::read(until, session.now(), Direction::Ahead));
    let body = json!({
        "reason": arguments.reason,
        "until": until.transpose().map_err(Failure::WrongUse)?,
    });
    let path = format!("/lanes/{}/pause", segment(&arguments.lane));
    let answer = session.post(&path, &body)?;
    session.show(&answer, arguments.output, pauses::paused)
}

fn resume(arguments: &Resume, session: &Session) -> Result<(), Failure> {
    let path = format!("/lanes/{}/resume", segment(&arguments.lane));
    let answer = session.post(&path, &json!({}))?;
    session.show(&answer, arguments.output, |Resumed { lifted }, _| {
        let lane = plain(&arguments.lane);
        match lifted {
            0 => format!(
                "Lane {lane} was not paused by itself. `outflow pauses list` shows what is.\n"
            ),
            _ => format!(
                "{} of lane {lane} lifted.\n",
                counted(lifted, "pause", "pauses")
            ),
        }
    })
}

/// What the limits that lanes wait on allow, by key.
pub fn allowed(lanes: &Lanes, session: &Session) -> Result<BTreeMap<String, String>, Failure> {
    let mut reasons = lanes.lanes.iter().flat_map(|lane| &lane.waiting_on);
    if !reasons.any(|on| on.limit.is_some()) {
        return Ok(BTreeMap::new());
    }
    let all: Limits = session.read("/limits")?;
    let limits = all.limits.into_iter();
    Ok(limits.map(|limit| (limit.key, limit.limit)).collect())
}

/// Lanes, the deepest first. `rates` has messages per second since the last
/// look.
pub fn table(
    lanes: &Lanes,
    allowed: &BTreeMap<String, String>,
    rates: Option<&BTreeMap<String, f64>>,
    now: Timestamp,
) -> String {
    let mut columns = vec![
        Column::Text("lane"),
        Column::Number("waiting"),
        Column::Text("critical/high/normal/low"),
        Column::Number("in flight"),
        Column::Number("sessions"),
        Column::Number("sent"),
    ];
    columns.extend(rates.map(|_| Column::Number("rate")));
    columns.extend([Column::Number("oldest"), Column::Text("waits on")]);
    let mut table = Table::new(columns);
    let mut sorted: Vec<&Lane> = lanes.lanes.iter().collect();
    sorted.sort_by_key(|lane| (std::cmp::Reverse(lane.waiting.total()), &lane.lane));
    for lane in sorted {
        let mut cells = vec![
            lane.lane.clone(),
            count(lane.waiting.total()),
            lane.waiting.text(),
            count(lane.in_flight),
            count(lane.sessions),
            count(lane.sent),
        ];
        cells.extend(rates.map(|rates| match rates.get(&lane.lane) {
            Some(rate) => format!("{rate:.1}/s"),
            None => "-".to_owned(),
        }));
        let oldest = lane
            .oldest_age_s
            .map(|age| when::length(age.max(0.0) as u64));
        cells.extend([
            oldest.unwrap_or("-".to_owned()),
            waits_on(lane, allowed, now),
        ]);
        table.row(cells);
    }
    table.text("No lane has messages, sessions or a pause.")
}

fn waits_on(lane: &Lane, allowed: &BTreeMap<String, String>, now: Timestamp) -> String {
    let mut parts: Vec<String> = lane
        .paused
        .then(|| "PAUSED".to_owned())
        .into_iter()
        .collect();
    if lane.broken > 0 {
        parts.push(format!("{} broken", lane.broken));
    }
    let reasons = lane.waiting_on.iter().filter(|on| on.reason != "paused");
    let reasons: Vec<String> = reasons
        .map(|on| {
            let spec = on.limit.as_ref().and_then(|key| allowed.get(key));
            match spec {
                Some(spec) => format!("{} ({spec})", on.short(now)),
                None => on.short(now),
            }
        })
        .collect();
    let more = reasons.len().saturating_sub(REASONS_MAX);
    parts.extend(reasons.into_iter().take(REASONS_MAX));
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    parts.join(", ")
}
