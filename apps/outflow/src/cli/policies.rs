//! `outflow policies`.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use outflow_config::keys::POLICY;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::accounts::{shown, written};
use super::client::segments;
use super::failure::Failure;
use super::fields;
use super::plain::{counted, plain};
use super::session::{Output, Session, print};
use super::table::{Column, Table};
use super::when::{self, Direction};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List policies.
    List(Output),
    /// Show a policy and what it governs now.
    Show(Show),
    /// Change some fields of a policy, which is made if there is none:
    /// `outflow policies set isp/google rate=2/s burst=5`.
    Set(Set),
    /// Take a policy away, also one of the settings file.
    #[command(visible_alias = "delete")]
    Remove(Remove),
}

/// Which policy.
#[derive(Debug, Args)]
pub struct Show {
    /// KIND/NAME: `isp/google`, `account/ses-1/isp/google`, `tenant/*`.
    path: String,
    #[command(flatten)]
    output: Output,
}

/// Which policy, and its fields.
#[derive(Debug, Args)]
pub struct Set {
    /// KIND/NAME: `isp/google`, `account/ses-1/isp/google`, `tenant/*`.
    path: String,
    /// Fields as in `[[policy]]` of the settings; `NAME=null` takes one away.
    #[arg(value_name = "NAME=VALUE")]
    fields: Vec<String>,
    /// Replace the policy as a whole.
    #[arg(long, conflicts_with_all = ["mitigation", "until", "lift"])]
    replace: bool,
    /// Override the policy for a while, for this reason: the base stays.
    #[arg(long, value_name = "REASON", requires = "until")]
    mitigation: Option<String>,
    /// Until when the override holds: `2h`, `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME", requires = "mitigation")]
    until: Option<String>,
    /// Lift an override now.
    #[arg(long, conflicts_with = "mitigation")]
    lift: bool,
    #[command(flatten)]
    output: Output,
}

/// Which policy.
#[derive(Debug, Args)]
pub struct Remove {
    /// KIND/NAME: `isp/google`.
    path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Policies {
    policies: Vec<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Governed {
    accounts: u64,
    lanes: u64,
    flows: u64,
    samples: Vec<String>,
}

/// Runs the command.
pub fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::List(output) => {
            let answer = session.get("/policies")?;
            session.show(&answer, *output, |all: Policies, _| table(&all))
        }
        Command::Show(Show { path, output }) => {
            let answer = session.get(&address(path)?)?;
            session.show(&answer, *output, |policy, _| text(policy))
        }
        Command::Set(arguments) => {
            let (path, body) = (address(&arguments.path)?, body(arguments, session.now())?);
            let answer = match arguments.replace {
                true => session.put(&path, &body)?,
                false => session.patch(&path, &body)?,
            };
            session.show(&answer, arguments.output, |policy, _| text(policy))
        }
        Command::Remove(Remove { path }) => {
            session.delete(&address(path)?)?;
            print(&format!("Policy {} is gone.\n", plain(path)))
        }
    }
}

fn address(path: &str) -> Result<String, Failure> {
    match path.trim_matches('/') {
        "" => Err(Failure::WrongUse(
            "a policy is called KIND/NAME, as isp/google".to_owned(),
        )),
        path => Ok(format!("/policies/{}", segments(path))),
    }
}

fn body(arguments: &Set, now: Timestamp) -> Result<Value, Failure> {
    let mut body = fields::read(POLICY, &arguments.fields)?;
    let Some(fields) = body.as_object_mut() else {
        return Ok(body);
    };
    if let (Some(reason), Some(until)) = (&arguments.mitigation, &arguments.until) {
        let until = when::read(until, now, Direction::Ahead).map_err(Failure::WrongUse)?;
        fields.insert("mitigation_reason".to_owned(), reason.as_str().into());
        fields.insert("cooldown_until".to_owned(), until.into());
    }
    if arguments.lift {
        fields.insert("mitigation_reason".to_owned(), Value::Null);
    }
    if fields.is_empty() && !arguments.replace {
        let why = "set what? Write fields as NAME=VALUE, as rate=2/s";
        return Err(Failure::WrongUse(why.to_owned()));
    }
    Ok(body)
}

fn text(mut policy: Map<String, Value>) -> String {
    let governed = policy.remove("matches");
    let mut out = shown(&policy);
    let governed = governed.and_then(|value| serde_json::from_value::<Governed>(value).ok());
    if let Some(governed) = governed {
        out.push_str(&governed.text());
    }
    out
}

impl Governed {
    fn text(&self) -> String {
        let parts = [
            (self.accounts, "account", "accounts"),
            (self.lanes, "lane", "lanes"),
            (self.flows, "flow", "flows"),
        ];
        let parts = parts.into_iter().filter(|(number, ..)| *number > 0);
        let parts: Vec<String> = parts
            .map(|(number, one, many)| counted(number, one, many))
            .collect();
        if parts.is_empty() {
            return "It governs nothing now. If that is a surprise, look at its name.\n".to_owned();
        }
        let samples = self.samples.join(", ");
        plain(&format!("It governs {} now: {samples}", parts.join(", "))) + "\n"
    }
}

fn table(all: &Policies) -> String {
    let mut table = Table::new([
        Column::Text("policy"),
        Column::Text("says"),
        Column::Text("in force because"),
    ]);
    let aside = [
        "path", "match", "origin", "version", "why", "base", "ramp", "matches",
    ];
    for policy in &all.policies {
        let said = policy.iter();
        let said = said.filter(|(name, value)| !aside.contains(&name.as_str()) && !value.is_null());
        let said: Vec<String> = said
            .map(|(name, value)| format!("{name}={}", written(value)))
            .collect();
        let text = |name: &str| policy.get(name).map(written).unwrap_or_default();
        table.row([text("path"), said.join(" "), text("why")]);
    }
    table.text("No policies: only the accounts' own limits hold.")
}
