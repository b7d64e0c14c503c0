//! `outflow dead-letters`: what was given up. Reviews are in
//! [`super::reviews`].

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Deserialize;

use super::client::{query, segment};
use super::failure::Failure;
use super::message::{self, Message};
use super::messages;
use super::plain::count;
use super::reviews;
use super::selection::Selection;
use super::session::{Output, Session};
use super::table::{Column, Table};
use super::when::{self, Direction};
use super::words;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List dead letters, newest first.
    List(List),
    /// Show a dead letter and what happened to it.
    Show(Show),
    /// Make a review: select dead letters, count them, look at some. Nothing
    /// is done yet.
    Review(reviews::Make),
    /// List reviews, or show how far one is.
    Reviews(reviews::Look),
    /// Approve a review: its dead letters re-enter as new messages, at a pace.
    Replay(reviews::Replay),
    /// Discard the dead letters of a review, for good.
    Discard(reviews::Discard),
}

/// When they were given up.
#[derive(Debug, Default, Args)]
pub struct Times {
    /// Given up at this time or later: `2h`, `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Given up before this time.
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
}

impl Times {
    /// Both in RFC 3339.
    pub fn read(&self, now: Timestamp) -> Result<[Option<String>; 2], Failure> {
        let read = |text: &Option<String>| {
            let text = text.as_deref();
            text.map(|text| when::read(text, now, Direction::Back))
                .transpose()
                .map_err(Failure::WrongUse)
        };
        Ok([read(&self.since)?, read(&self.before)?])
    }
}

/// Which dead letters.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    times: Times,
    /// Count them by cause instead.
    #[arg(long)]
    causes: bool,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Go on where the last page ended.
    #[arg(long)]
    cursor: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// Which dead letter.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id.
    id: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    dead_letters: Vec<Message>,
    next_cursor: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Causes {
    causes: Vec<Cause>,
}

/// How many have one cause.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Cause {
    cause: String,
    error_class: String,
    status: Option<u16>,
    destination: String,
    count: u64,
}

/// Runs the command.
pub fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::List(arguments) => list(arguments, session),
        Command::Show(Show { id, output }) => {
            messages::show(&format!("/messages/{}", segment(id)), *output, session)
        }
        Command::Review(arguments) => reviews::make(arguments, session),
        Command::Reviews(arguments) => reviews::look(arguments, session),
        Command::Replay(arguments) => reviews::replay(arguments, session),
        Command::Discard(arguments) => reviews::discard(arguments, session),
    }
}

fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let [since, before] = arguments.times.read(session.now())?;
    let selection = arguments.selection.query();
    let own = [("since", since), ("before", before)];
    if arguments.causes {
        let asked = query(selection.chain(own));
        let answer = session.get(&format!("/dead-letters/causes{asked}"))?;
        return session.show(&answer, arguments.output, |all: Causes, _| {
            causes(&all.causes)
        });
    }
    let page = [
        ("cursor", arguments.cursor.map(|cursor| cursor.to_string())),
        ("limit", Some(arguments.limit.to_string())),
    ];
    let asked = query(selection.chain(own).chain(page));
    let answer = session.get(&format!("/dead-letters{asked}"))?;
    session.show(&answer, arguments.output, |page: Page, now| {
        let mut out = message::table(&page.dead_letters, "No dead letters.", now);
        if let Some(cursor) = page.next_cursor {
            out.push_str(&format!("There may be more: add --cursor {cursor}.\n"));
        }
        out
    })
}

/// How many have each cause.
pub fn causes(all: &[Cause]) -> String {
    let mut table = Table::new([
        Column::Number("messages"),
        Column::Text("given up because"),
        Column::Text("last answer"),
        Column::Number("status"),
        Column::Text("destination"),
    ]);
    for cause in all {
        let status = cause.status.map(|status| status.to_string());
        table.row([
            count(cause.count),
            words::cause(&cause.cause).to_owned(),
            cause.error_class.clone(),
            status.unwrap_or("-".to_owned()),
            cause.destination.clone(),
        ]);
    }
    table.text("No dead letters.")
}
