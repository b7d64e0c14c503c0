//! `outflow audit`: who changed what, newest first.

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::client::query;
use super::failure::Failure;
use super::plain::shortened;
use super::session::{Output, Session};
use super::table::{Column, Table};
use super::when::{self, Direction};

/// What is shown of a change.
const DETAIL_CHARS_MAX: usize = 120;

/// Which entries.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Not older than this: `2h`, `2026-01-31`, `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Go on where the last page ended.
    #[arg(long)]
    cursor: Option<u64>,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    entries: Vec<Entry>,
    next_cursor: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    at: String,
    actor: String,
    action: String,
    target: String,
    detail: Value,
}

/// Shows them.
pub fn run(arguments: &Arguments, session: &Session) -> Result<(), Failure> {
    let since = arguments.since.as_deref();
    let since = since.map(|since| when::read(since, session.now(), Direction::Back));
    let asked = query([
        ("since", since.transpose().map_err(Failure::WrongUse)?),
        ("cursor", arguments.cursor.map(|cursor| cursor.to_string())),
        ("limit", Some(arguments.limit.to_string())),
    ]);
    let answer = session.get(&format!("/audit{asked}"))?;
    session.show(&answer, arguments.output, |page: Page, now| {
        text(&page, now)
    })
}

fn text(page: &Page, now: Timestamp) -> String {
    let mut table = Table::new([
        Column::Text("when"),
        Column::Text("who"),
        Column::Text("did"),
        Column::Text("to"),
        Column::Text("detail"),
    ]);
    for entry in &page.entries {
        let detail = match &entry.detail {
            Value::Null => String::new(),
            detail => shortened(&detail.to_string(), DETAIL_CHARS_MAX),
        };
        table.row([
            when::both(&entry.at, now),
            entry.actor.clone(),
            entry.action.clone(),
            entry.target.clone(),
            detail,
        ]);
    }
    let mut out = table.text("Nobody changed anything.");
    if let Some(cursor) = page.next_cursor {
        out.push_str(&format!("There may be more: add --cursor {cursor}.\n"));
    }
    out
}
