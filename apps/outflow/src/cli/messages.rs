//! `outflow messages`: list and show them; cancel, retry and move are in
//! [`super::bulk`].

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Deserialize;

use super::bulk;
use super::client::{Answer, query, segment};
use super::failure::Failure;
use super::message::{self, Message};
use super::selection::Selection;
use super::session::{Output, Session, print, write};

/// Pages may be short, even empty, and still be followed by others.
const PAGES_MAX: usize = 1_000;
/// What the server gives at most in one page.
const PAGE_MAX: usize = 200;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List messages: those that wait, oldest first, then those done with,
    /// newest first.
    List(List),
    /// Show a message and what happened to it.
    Show(Show),
    /// Withdraw messages that have not been sent yet: by id, or all that match.
    Cancel(bulk::Cancel),
    /// Try deferred messages now, not at their time: by id, or all that match.
    Retry(bulk::Retry),
    /// Hand all waiting messages that match to the accounts of another pool.
    Move(bulk::Move),
}

/// Which messages to list.
#[derive(Debug, Args)]
pub struct List {
    /// In this state: queued, sending, deferred, delivered, bounced, expired,
    /// cancelled, suppressed or dead. Several are separated by commas.
    #[arg(long)]
    state: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// At most so many; with --json at most 200.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Go on where the last page ended.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Which message to show.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id.
    id: String,
    /// Print its content as it is sent (RFC 5322). Needs an administrator's
    /// token.
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    messages: Vec<Message>,
    next_cursor: Option<String>,
}

/// Runs the command.
pub fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::List(arguments) => list(arguments, session),
        Command::Show(arguments) => {
            let path = format!("/messages/{}", segment(&arguments.id));
            if arguments.raw {
                let answer = session.get(&format!("{path}/raw"))?;
                return write(&[answer.bytes()]);
            }
            show(&path, arguments.output, session)
        }
        Command::Cancel(arguments) => bulk::cancel(arguments, session),
        Command::Retry(arguments) => bulk::retry(arguments, session),
        Command::Move(arguments) => bulk::move_all(arguments, session),
    }
}

/// Shows the message at this path.
pub fn show(path: &str, output: Output, session: &Session) -> Result<(), Failure> {
    let answer = session.get(path)?;
    session.show(&answer, output, |message: Message, now| message.text(now))
}

fn page(
    arguments: &List,
    cursor: Option<String>,
    limit: usize,
    session: &Session,
) -> Result<Answer, Failure> {
    let own = [
        ("state", arguments.state.clone()),
        ("cursor", cursor),
        ("limit", Some(limit.min(PAGE_MAX).to_string())),
    ];
    let all = arguments.selection.query().chain(own);
    session.get(&format!("/messages{}", query(all)))
}

fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let limit = arguments.limit as usize;
    let mut cursor = arguments.cursor.clone();
    if arguments.output.json {
        return session.print_json(&page(arguments, cursor, limit, session)?);
    }
    let mut found: Vec<Message> = Vec::new();
    for _ in 0..PAGES_MAX {
        let answer = page(arguments, cursor, limit - found.len(), session)?;
        let page: Page = answer.read()?;
        found.extend(page.messages);
        cursor = page.next_cursor;
        if cursor.is_none() || found.len() >= limit {
            break;
        }
    }
    print(&listing(&found, cursor.as_deref(), session.now()))
}

fn listing(found: &[Message], cursor: Option<&str>, now: Timestamp) -> String {
    let mut out = message::table(found, "No messages.", now);
    if let Some(cursor) = cursor {
        out.push_str(&format!(
            "There may be more: add --cursor {cursor}, or a higher --limit.\n"
        ));
    }
    out
}
