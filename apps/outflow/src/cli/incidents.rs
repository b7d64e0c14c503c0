//! `outflow incidents`: what went wrong at destinations, and what was done.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::client::{query, segment};
use super::failure::Failure;
use super::plain::plain;
use super::session::{Output, Session};
use super::table::{Column, Table};
use super::when;

/// Which incidents, or what to do with one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Only those in one of these states: `open,mitigating,recovering,closed`.
    #[arg(long, value_name = "STATES")]
    state: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What to do with an incident.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show one: what the rules said, and each step.
    Show(Which),
    /// Close one: what is in force because of it goes, at once.
    Close(Which),
}

/// Which incident.
#[derive(Debug, Args)]
pub struct Which {
    /// Its number.
    id: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Incidents {
    incidents: Vec<Incident>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Incident {
    id: String,
    destination: String,
    state: String,
    summary: String,
    opened_at: String,
    closed_at: Option<String>,
    rate_permille: u16,
    paused: bool,
    detoured: bool,
    cooldown_until: Option<String>,
    next_step_at: Option<String>,
    evidence: Vec<Evidence>,
    accounts: Vec<AtAccount>,
    replies: Vec<Heard>,
    lines: Vec<Line>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Evidence {
    rule: String,
    part: u64,
    whole: u64,
    window: String,
    since: String,
    last: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AtAccount {
    account: String,
    part: u64,
    whole: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Heard {
    text: String,
    count: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    at: String,
    to: String,
    rate_permille_to: u16,
    why: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments, session: &Session) -> Result<(), Failure> {
    match &arguments.command {
        None => {
            let asked = query([
                ("state", arguments.state.clone()),
                ("limit", Some(arguments.limit.to_string())),
            ]);
            let answer = session.get(&format!("/incidents{asked}"))?;
            session.show(&answer, arguments.output, |all: Incidents, now| {
                table(&all, now)
            })
        }
        Some(Command::Show(Which { id, output })) => {
            let answer = session.get(&format!("/incidents/{}", segment(id)))?;
            session.show(&answer, *output, |incident: Incident, now| {
                incident.text(now)
            })
        }
        Some(Command::Close(Which { id, output })) => {
            let path = format!("/incidents/{}/close", segment(id));
            let answer = session.post(&path, &Value::Null)?;
            session.show(&answer, *output, |incident: Incident, now| {
                incident.text(now)
            })
        }
    }
}

fn percent(permille: u16) -> String {
    format!("{}%", permille / 10)
}

fn table(all: &Incidents, now: Timestamp) -> String {
    let mut table = Table::new([
        Column::Text("id"),
        Column::Text("destination"),
        Column::Text("state"),
        Column::Text("opened"),
        Column::Number("rate"),
        Column::Text("next step"),
        Column::Text("said"),
    ]);
    for incident in &all.incidents {
        let next = incident
            .next_step_at
            .as_ref()
            .or(incident.cooldown_until.as_ref());
        let next = next.map(|at| when::both(at, now)).unwrap_or_default();
        let said = incident.evidence.iter().map(Evidence::text);
        table.row([
            incident.id.clone(),
            incident.destination.clone(),
            incident.state.clone(),
            when::both(&incident.opened_at, now),
            percent(incident.rate_permille),
            next,
            said.collect::<Vec<_>>().join("; "),
        ]);
    }
    table.text("No incidents.")
}

impl Evidence {
    fn text(&self) -> String {
        let Self {
            rule,
            part,
            whole,
            window,
            ..
        } = self;
        format!("{rule}: {part} of {whole} in {window}")
    }
}

impl Incident {
    fn text(&self, now: Timestamp) -> String {
        let mut out = plain(&format!("Incident {}: {}.", self.id, self.summary));
        out.push('\n');
        out.push_str(&format!("Opened {}", when::both(&self.opened_at, now)));
        if let Some(at) = &self.closed_at {
            out.push_str(&format!(", closed {}", when::both(at, now)));
        }
        out.push_str(".\n");
        for (is_so, what) in [
            (self.paused, "Classes that can wait are paused."),
            (
                self.detoured,
                "A share of critical messages goes another way.",
            ),
        ] {
            if is_so {
                out.push_str(&format!("{what}\n"));
            }
        }
        for evidence in &self.evidence {
            let (since, last) = (
                when::both(&evidence.since, now),
                when::both(&evidence.last, now),
            );
            let line = format!("{}, since {since}, last {last}", evidence.text());
            out.push_str(&format!("{}\n", plain(&line)));
        }
        for AtAccount {
            account,
            part,
            whole,
        } in &self.accounts
        {
            out.push_str(&plain(&format!("Account {account}: {part} of {whole}.")));
            out.push('\n');
        }
        for Heard { text, count } in &self.replies {
            out.push_str(&plain(&format!("Heard {count} times: {text}")));
            out.push('\n');
        }
        let mut table = Table::new([
            Column::Text("when"),
            Column::Text("state"),
            Column::Number("rate"),
            Column::Text("because"),
        ]);
        for line in &self.lines {
            table.row([
                when::both(&line.at, now),
                line.to.clone(),
                percent(line.rate_permille_to),
                line.why.clone(),
            ]);
        }
        out.push_str(&table.text("Nothing was done."));
        out
    }
}
