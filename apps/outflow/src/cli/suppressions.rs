//! `outflow suppressions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::query;
use super::confirm::confirm;
use super::failure::Failure;
use super::plain::plain;
use super::session::{Output, Session, print};
use super::suppression_files::{export, import};
use super::table::{Column, Table};
use super::when::{self, Direction};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List recipients who are not sent to, and why.
    List(List),
    /// Send nothing to a recipient any more.
    Add(Add),
    /// Take a recipient off the list.
    Remove(Remove),
    /// Put many recipients on the list: CSV, or a JSON object on each line. What
    /// is there already stays as it is, so an import can be repeated.
    Import(Import),
    /// Print the list: a JSON object on each line, or CSV. What is printed can be
    /// imported again.
    Export(Export),
    /// Take away what the server put on the list by itself, in a time or from a
    /// destination.
    Undo(Undo),
    /// Show what is held until somebody has looked; approve or discard it.
    Review(Review),
}

/// Why a recipient is on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reason {
    /// There is no such mailbox.
    HardBounce,
    /// Somebody complained. Critical and high messages are sent all the same.
    Complaint,
    /// The recipient wants no more.
    OptOut,
    /// Somebody put him on the list.
    Manual,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::HardBounce => "hard_bounce",
            Self::Complaint => "complaint",
            Self::OptOut => "opt_out",
            Self::Manual => "manual",
        }
    }
}

/// Which entries.
#[derive(Debug, Args)]
pub struct Which {
    /// Of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// For this reason.
    #[arg(long, value_enum)]
    reason: Option<Reason>,
    /// Where this destination judged: `isp:google`.
    #[arg(long)]
    destination: Option<String>,
    /// Not older than this: `2h`, `2026-01-31`, `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Older than this: `1h`, `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl Which {
    fn time(text: &Option<String>, session: &Session) -> Result<Option<String>, Failure> {
        let read = |text: &String| when::read(text, session.now(), Direction::Back);
        text.as_ref()
            .map(read)
            .transpose()
            .map_err(Failure::WrongUse)
    }

    /// As a query.
    pub fn pairs(&self, session: &Session) -> Result<Vec<(&'static str, Option<String>)>, Failure> {
        Ok(vec![
            ("tenant", self.tenant.clone()),
            ("reason", self.reason.map(|it| it.as_str().to_owned())),
            ("destination", self.destination.clone()),
            ("since", Self::time(&self.since, session)?),
            ("until", Self::time(&self.until, session)?),
        ])
    }

    /// As a body.
    fn body(&self, session: &Session) -> Result<Value, Failure> {
        let pairs = self.pairs(session)?.into_iter();
        let said = pairs.filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
        Ok(Value::Object(said.collect()))
    }
}

/// Which entries to list.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    which: Which,
    /// Of this recipient.
    #[arg(long, value_name = "ADDRESS")]
    recipient: Option<String>,
    /// Only those that are held until somebody has looked.
    #[arg(long)]
    held: bool,
    /// Where the last page ended.
    #[arg(long)]
    cursor: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    output: Output,
}

/// Who is not to be sent to.
#[derive(Debug, Args)]
pub struct Add {
    /// His address.
    recipient: String,
    /// Whose mail; the token's tenant, or `default`.
    #[arg(long)]
    tenant: Option<String>,
    /// Why.
    #[arg(long, value_enum, default_value = "manual")]
    reason: Reason,
    /// What was said, for those who wonder.
    #[arg(long)]
    detail: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Who is taken off the list.
#[derive(Debug, Args)]
pub struct Remove {
    /// His address.
    recipient: String,
    /// Of this tenant; of all unless told.
    #[arg(long)]
    tenant: Option<String>,
    /// Only this reason; all of them unless told.
    #[arg(long, value_enum)]
    reason: Option<Reason>,
}

/// What to import.
#[derive(Debug, Args)]
pub struct Import {
    /// The file; `-` for stdin. CSV unless its lines are JSON objects. The first
    /// line of CSV names the columns: recipient, reason, tenant, since, detail;
    /// without such a line there is an address on each line.
    pub file: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

/// What to export, and how.
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    pub which: Which,
    /// As CSV.
    #[arg(long)]
    pub csv: bool,
}

/// What to undo.
#[derive(Debug, Args)]
pub struct Undo {
    #[command(flatten)]
    which: Which,
    /// Only say how many they are.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

/// What to look at, and what becomes of it.
#[derive(Debug, Args)]
pub struct Review {
    #[command(flatten)]
    which: Which,
    /// They are in force.
    #[arg(long, conflicts_with = "discard")]
    approve: bool,
    /// They are taken away.
    #[arg(long)]
    discard: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

/// A page of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Page {
    pub suppressions: Vec<Suppression>,
    pub next_cursor: Option<String>,
}

/// An entry.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Suppression {
    pub tenant: String,
    pub recipient: String,
    pub reason: String,
    pub state: String,
    pub since: String,
    pub source: String,
    pub destination: String,
    pub message_id: String,
    pub detail: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Changed {
    changed: u64,
}

/// Runs the command.
pub fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::List(arguments) => list(arguments, session),
        Command::Add(arguments) => add(arguments, session),
        Command::Remove(arguments) => remove(arguments, session),
        Command::Import(arguments) => import(arguments, session),
        Command::Export(arguments) => export(arguments, session),
        Command::Undo(arguments) => undo(arguments, session),
        Command::Review(arguments) => review(arguments, session),
    }
}

fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let mut pairs = arguments.which.pairs(session)?;
    pairs.push(("recipient", arguments.recipient.clone()));
    pairs.push(("state", arguments.held.then(|| "held".to_owned())));
    pairs.push(("cursor", arguments.cursor.clone()));
    pairs.push(("limit", Some(arguments.limit.to_string())));
    let answer = session.get(&format!("/suppressions{}", query(pairs)))?;
    session.show(&answer, arguments.output, |page: Page, now| {
        text(&page, now, "Nobody like that is on the list.")
    })
}

fn text(page: &Page, now: Timestamp, nothing: &str) -> String {
    let mut table = Table::new([
        Column::Text("recipient"),
        Column::Text("tenant"),
        Column::Text("reason"),
        Column::Text("state"),
        Column::Text("since"),
        Column::Text("from"),
        Column::Text("destination"),
        Column::Text("said"),
    ]);
    for entry in &page.suppressions {
        table.row([
            entry.recipient.clone(),
            entry.tenant.clone(),
            entry.reason.clone(),
            entry.state.clone(),
            when::both(&entry.since, now),
            entry.source.clone(),
            entry.destination.clone(),
            entry.detail.clone(),
        ]);
    }
    let mut out = table.text(nothing);
    if let Some(cursor) = &page.next_cursor {
        out.push_str(&format!(
            "There may be more: add --cursor {}.\n",
            plain(cursor)
        ));
    }
    out
}

fn add(arguments: &Add, session: &Session) -> Result<(), Failure> {
    let body = json!({
        "recipient": arguments.recipient,
        "tenant": arguments.tenant,
        "reason": arguments.reason.as_str(),
        "detail": arguments.detail,
    });
    let answer = session.post("/suppressions", &body)?;
    session.show(&answer, arguments.output, |entry: Suppression, _| {
        let (recipient, tenant) = (plain(&entry.recipient), plain(&entry.tenant));
        format!("Nothing of {tenant} is sent to {recipient} any more.\n")
    })
}

fn remove(arguments: &Remove, session: &Session) -> Result<(), Failure> {
    let pairs = [
        ("recipient", Some(arguments.recipient.clone())),
        ("tenant", arguments.tenant.clone()),
        ("reason", arguments.reason.map(|it| it.as_str().to_owned())),
    ];
    session.delete(&format!("/suppressions{}", query(pairs)))?;
    let recipient = plain(&arguments.recipient);
    print(&format!("{recipient} is off the list.\n"))
}

fn undo(arguments: &Undo, session: &Session) -> Result<(), Failure> {
    let mut body = arguments.which.body(session)?;
    set(&mut body, "dry_run", json!(true));
    let answer = session.post("/suppressions/undo", &body)?;
    let count = answer.read::<Changed>()?.changed;
    if arguments.dry_run {
        return session.show(&answer, arguments.output, |found: Changed, _| {
            format!("{} entries would be taken away.\n", found.changed)
        });
    }
    if count > 0 && !confirm(&format!("Take {count} entries away?"), arguments.yes)? {
        return print("Nothing was done.\n");
    }
    set(&mut body, "dry_run", json!(false));
    let answer = session.post("/suppressions/undo", &body)?;
    session.show(&answer, arguments.output, |done: Changed, _| {
        format!("{} entries are off the list.\n", done.changed)
    })
}

fn review(arguments: &Review, session: &Session) -> Result<(), Failure> {
    let decision = match (arguments.approve, arguments.discard) {
        (true, _) => "approve",
        (_, true) => "discard",
        (false, false) => return held(arguments, session),
    };
    let mut body = arguments.which.body(session)?;
    if body.get("reason").is_some() {
        let why = "--reason: a review is about all reasons";
        return Err(Failure::WrongUse(why.to_owned()));
    }
    set(&mut body, "decision", json!(decision));
    set(&mut body, "dry_run", json!(true));
    let answer = session.post("/suppressions/review", &body)?;
    let count = answer.read::<Changed>()?.changed;
    let question = format!("{decision} {count} entries?");
    if count > 0 && !confirm(&question, arguments.yes)? {
        return print("Nothing was done.\n");
    }
    set(&mut body, "dry_run", json!(false));
    let answer = session.post("/suppressions/review", &body)?;
    session.show(
        &answer,
        arguments.output,
        |done: Changed, _| match arguments.approve {
            true => format!("{} entries are in force.\n", done.changed),
            false => format!("{} entries are off the list.\n", done.changed),
        },
    )
}

/// What waits for a decision, and how it is made.
fn held(arguments: &Review, session: &Session) -> Result<(), Failure> {
    let mut pairs = arguments.which.pairs(session)?;
    pairs.push(("state", Some("held".to_owned())));
    let answer = session.get(&format!("/suppressions{}", query(pairs)))?;
    session.show(&answer, arguments.output, |page: Page, now| {
        let mut out = text(&page, now, "Nothing is held.");
        if !page.suppressions.is_empty() {
            out.push_str(
                "If the destination was right: outflow suppressions review --approve \
                 --destination ...\nIf it was not: outflow suppressions review --discard \
                 --destination ...\n",
            );
        }
        out
    })
}

fn set(body: &mut Value, name: &str, value: Value) {
    if let Some(object) = body.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}
