//! `outflow pauses`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use outflow_core::class::Class;
use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::flow::FlowKey;
use outflow_core::policy::matcher::Match;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client::segment;
use super::failure::Failure;
use super::message::Message;
use super::plain::plain;
use super::selection::Selection;
use super::session::{Output, Session, print};
use super::table::{Column, Table};
use super::when::{self, Direction};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List pauses.
    List(Output),
    /// Pause everything that matches. All that is named must agree.
    Add(Box<Add>),
    /// Lift a pause.
    Remove(Remove),
}

/// What to pause.
#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    selection: Selection,
    /// What this account sends.
    #[arg(long)]
    account: Option<String>,
    /// What is sent from this domain.
    #[arg(long, value_name = "DOMAIN")]
    sender_domain: Option<String>,
    /// What waits in this lane: `default/isp:google`.
    #[arg(long)]
    lane: Option<String>,
    /// Everything.
    #[arg(long, conflicts_with_all = ["account", "sender_domain", "lane"])]
    everything: bool,
    /// Why, for those who wonder.
    #[arg(long)]
    reason: Option<String>,
    /// Until when: `2h`, `2026-01-31T12:00:00Z`. Without it, until it is
    /// lifted.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Which pause to lift.
#[derive(Debug, Args)]
pub struct Remove {
    /// Its id, as `outflow pauses list` shows it.
    id: String,
}

/// All pauses.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pauses {
    /// In no order.
    pub pauses: Vec<Pause>,
}

/// A pause.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pause {
    pub id: String,
    #[serde(rename = "match")]
    pub matches: BTreeMap<String, String>,
    pub reason: Option<String>,
    pub until: Option<String>,
    pub since: String,
    pub by: String,
}

impl Pause {
    fn about(&self) -> String {
        let terms = self.matches.iter();
        let terms = terms.map(|(scope, name)| match scope.as_str() {
            "global" => "everything".to_owned(),
            scope => format!("{scope}:{name}"),
        });
        terms.collect::<Vec<_>>().join(" ")
    }

    /// As part of an explanation.
    pub fn line(&self, now: Timestamp) -> String {
        let mut line = format!(
            "paused by {} since {}",
            plain(&self.by),
            when::both(&self.since, now)
        );
        match &self.until {
            Some(until) => {
                let _ = write!(line, " until {}", when::both(until, now));
            }
            None => line.push_str(", until it is lifted"),
        }
        if let Some(reason) = &self.reason {
            let _ = write!(line, ": {}", plain(reason));
        }
        let _ = write!(line, " ({})", plain(&self.about()));
        let _ = write!(
            line,
            "; to lift it: outflow pauses remove {}",
            plain(&self.id)
        );
        line
    }

    /// Whether it holds this message back, as far as a message says: the
    /// engine decides by the same terms.
    pub fn holds(&self, message: &Message) -> bool {
        let pairs = self.matches.iter();
        let pairs = pairs.map(|(scope, name)| (scope.as_str(), name.as_str()));
        let matches = Match::from_pairs(pairs).ok();
        let flow = flow(message);
        matches.is_some_and(|matches| flow.is_some_and(|flow| matches.matches_flow(&flow)))
    }
}

fn flow(message: &Message) -> Option<FlowKey> {
    let (kind, name) = message.destination.split_once(':')?;
    let kinds = [
        DestinationKind::Isp,
        DestinationKind::Carrier,
        DestinationKind::Push,
        DestinationKind::Host,
        DestinationKind::Unresolved,
    ];
    let kind = kinds.into_iter().find(|known| known.as_str() == kind)?;
    let from = message.from.as_deref();
    let domain = from.and_then(|from| from.rsplit_once('@'));
    Some(FlowKey {
        pool: message.pool.as_str().into(),
        class: message.class.parse::<Class>().ok()?,
        tenant: message.tenant.as_str().into(),
        campaign: message.campaign.as_deref().map(Into::into),
        sender_domain: domain.map(|(_, domain)| domain.trim_end_matches('>').into()),
        ..FlowKey::to(Destination::new(kind, name))
    })
}

/// Runs the command.
pub fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::List(output) => {
            let answer = session.get("/pauses")?;
            session.show(&answer, *output, |all: Pauses, now| text(&all, now))
        }
        Command::Add(arguments) => add(arguments, session),
        Command::Remove(Remove { id }) => {
            session.delete(&format!("/pauses/{}", segment(id)))?;
            print(&format!("Pause {} is lifted.\n", plain(id)))
        }
    }
}

fn text(all: &Pauses, now: Timestamp) -> String {
    let mut table = Table::new([
        Column::Text("id"),
        Column::Text("what"),
        Column::Text("since"),
        Column::Text("by"),
        Column::Text("until"),
        Column::Text("reason"),
    ]);
    for pause in &all.pauses {
        let until = pause.until.as_deref();
        table.row([
            pause.id.clone(),
            pause.about(),
            when::both(&pause.since, now),
            pause.by.clone(),
            until.map_or("it is lifted".to_owned(), |until| when::both(until, now)),
            pause.reason.clone().unwrap_or_default(),
        ]);
    }
    table.text("Nothing is paused.")
}

/// What is to be paused, as the API takes it.
fn matches(arguments: &Add) -> Result<Map<String, Value>, Failure> {
    let own = [
        ("account", &arguments.account),
        ("sender_domain", &arguments.sender_domain),
        ("lane", &arguments.lane),
    ];
    let own = own
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let all = arguments.selection.pairs().chain(own);
    let mut terms: Map<String, Value> = all
        .map(|(name, value)| (name.to_owned(), value.as_str().into()))
        .collect();
    match (arguments.everything, terms.is_empty()) {
        (true, true) => {
            terms.insert("global".to_owned(), "*".into());
        }
        (false, false) => {}
        (true, false) => {
            let why = "--everything stands alone";
            return Err(Failure::WrongUse(why.to_owned()));
        }
        (false, true) => {
            let why = "pause what? Name a --tenant, --campaign, --class, --destination, --pool, \
                       --account, --sender-domain or --lane, or --everything";
            return Err(Failure::WrongUse(why.to_owned()));
        }
    }
    Ok(terms)
}

fn add(arguments: &Add, session: &Session) -> Result<(), Failure> {
    let until = arguments.until.as_deref();
    let until = until.map(|until| when::read(until, session.now(), Direction::Ahead));
    let body = json!({
        "match": matches(arguments)?,
        "reason": arguments.reason,
        "until": until.transpose().map_err(Failure::WrongUse)?,
    });
    let answer = session.post("/pauses", &body)?;
    session.show(&answer, arguments.output, paused)
}

/// Says that a pause is in force.
pub fn paused(pause: Pause, now: Timestamp) -> String {
    let until = match &pause.until {
        Some(until) => format!("until {}", when::both(until, now)),
        None => "until it is lifted".to_owned(),
    };
    let id = plain(&pause.id);
    format!(
        "Paused {} {until}. To lift it: outflow pauses remove {id}\n",
        plain(&pause.about())
    )
}
