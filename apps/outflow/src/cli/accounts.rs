//! `outflow accounts`.

use clap::{Args, Subcommand};
use outflow_config::keys::ACCOUNT;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::client::segment;
use super::failure::Failure;
use super::fields;
use super::plain::plain;
use super::session::{Output, Session, print};
use super::table::{Column, Table, lines};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List accounts.
    List(Output),
    /// Show an account, without its secrets.
    Show(Show),
    /// Add an account: `outflow accounts add primary host=smtp.example.com user=me
    /// password=- limits='14/s, 50k/day'`.
    Add(Set),
    /// Change some fields of an account; `NAME=null` takes one away.
    Set(Set),
    /// Take an account away, also one of the settings file.
    Remove(Remove),
}

/// Which account.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id.
    id: String,
    #[command(flatten)]
    output: Output,
}

/// Which account, and its fields.
#[derive(Debug, Args)]
pub struct Set {
    /// Its id.
    id: String,
    /// Fields as in `[[account]]` of the settings; `password=-` reads the
    /// password from stdin, `sandbox.latency=20ms` reaches into a table.
    #[arg(value_name = "NAME=VALUE")]
    fields: Vec<String>,
    #[command(flatten)]
    output: Output,
}

/// Which account.
#[derive(Debug, Args)]
pub struct Remove {
    /// Its id.
    id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Accounts {
    accounts: Vec<Map<String, Value>>,
}

/// Runs the command.
pub fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::List(output) => {
            let answer = session.get("/accounts")?;
            session.show(&answer, *output, |all: Accounts, _| table(&all))
        }
        Command::Show(Show { id, output }) => {
            let answer = session.get(&path(id))?;
            session.show(&answer, *output, |account, _| shown(&account))
        }
        Command::Add(Set { id, fields, output }) => {
            let body = fields::read(ACCOUNT, fields)?;
            if session
                .get(&path(id))
                .is_ok_and(|there| is_configured(&there))
            {
                let id = plain(id);
                return Err(Failure::Other(format!(
                    "there is an account {id} already: change it with `outflow accounts set {id}`"
                )));
            }
            let answer = session.put(&path(id), &body)?;
            session.show(&answer, *output, |account, _| shown(&account))
        }
        Command::Set(Set { id, fields, output }) => {
            if fields.is_empty() {
                let why = "set what? Write fields as NAME=VALUE, as port=587";
                return Err(Failure::WrongUse(why.to_owned()));
            }
            let answer = session.patch(&path(id), &fields::read(ACCOUNT, fields)?)?;
            session.show(&answer, *output, |account, _| shown(&account))
        }
        Command::Remove(Remove { id }) => {
            session.delete(&path(id))?;
            print(&format!("Account {} is gone.\n", plain(id)))
        }
    }
}

fn path(id: &str) -> String {
    format!("/accounts/{}", segment(id))
}

/// The sandbox that stands in while nobody has configured any is none.
fn is_configured(answer: &super::client::Answer) -> bool {
    let account: Result<Map<String, Value>, Failure> = answer.read();
    account.is_ok_and(|account| account.get("origin").and_then(Value::as_str) != Some("implicit"))
}

/// A value as people write it.
pub fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(written).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| format!("{name}={}", written(value)));
            fields.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// All fields, in the order in which they came.
pub fn shown(fields: &Map<String, Value>) -> String {
    lines(
        fields
            .iter()
            .map(|(name, value)| (name.as_str(), Some(written(value)))),
    )
}

/// What holds an account beside its limits.
fn held(account: &Map<String, Value>) -> String {
    let held = account.get("held").and_then(Value::as_array);
    let held = held.into_iter().flatten().map(|held| {
        let text = |name: &str| held.get(name).map(written).filter(|it| !it.is_empty());
        let mut said = text("by").unwrap_or_default();
        for (word, name) in [(" at ", "destination"), (" until ", "until")] {
            if let Some(text) = text(name) {
                said.push_str(word);
                said.push_str(&text);
            }
        }
        if let Some(count) = text("per_minute") {
            said.push_str(&format!(", {count}/min"));
        }
        said
    });
    held.collect::<Vec<_>>().join("; ")
}

fn table(all: &Accounts) -> String {
    let mut table = Table::new([
        Column::Text("id"),
        Column::Text("pool"),
        Column::Text("transport"),
        Column::Text("host"),
        Column::Text("tenant"),
        Column::Text("limits"),
        Column::Text("held by"),
        Column::Text("in force because"),
    ]);
    for account in &all.accounts {
        let text = |name: &str| account.get(name).map(written).unwrap_or_default();
        let host = match (text("host"), text("port")) {
            (host, port) if host.is_empty() || port.is_empty() => host,
            (host, port) => format!("{host}:{port}"),
        };
        let windows = [
            ("limit_per_minute", "min"),
            ("limit_per_hour", "hour"),
            ("limit_per_day", "day"),
        ];
        let windows = windows.map(|(name, unit)| match text(name).as_str() {
            "" | "0" => String::new(),
            number => format!("{number}/{unit}"),
        });
        let limits = [text("limits")].into_iter().chain(windows);
        let limits: Vec<String> = limits.filter(|limit| !limit.is_empty()).collect();
        let transport = match text("transport") {
            said if said.is_empty() => "smtp".to_owned(),
            said => said,
        };
        table.row([
            text("id"),
            text("pool"),
            transport,
            host,
            text("tenant"),
            limits.join(", "),
            held(account),
            text("why"),
        ]);
    }
    table.text("No accounts: messages wait until there is one (`outflow accounts add`).")
}
