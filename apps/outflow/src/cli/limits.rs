//! `outflow limits`: live tokens, waiters, when they admit again.

use std::fmt::Write as _;

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::segments;
use super::failure::Failure;
use super::lanes::ByClass;
use super::plain::{count, plain};
use super::session::{Output, Session};
use super::table::{Column, Table};
use super::when::{self, Direction};

/// Which limits.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only this one: `isp:google`, `account:ses-1`.
    key: Option<String>,
    /// Only those that something waits at.
    #[arg(long, conflicts_with_all = ["key", "json"])]
    waiting: bool,
    /// Hold a rate that is learnt at this: `5/s`.
    #[arg(long, value_name = "RATE", requires = "key")]
    pin: Option<String>,
    /// Until when it is held: `2h`, `2026-01-31T12:00:00Z`. Without it, until it
    /// is let go.
    #[arg(long, value_name = "TIME", requires = "pin")]
    until: Option<String>,
    /// Let a rate that is held go its own way again.
    #[arg(long, requires = "key", conflicts_with_all = ["pin", "reset"])]
    unpin: bool,
    /// Forget what was learnt of a rate.
    #[arg(long, requires = "key", conflicts_with = "pin")]
    reset: bool,
    /// Why, for those who wonder.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// A limit.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Limit {
    pub key: String,
    pub limit: String,
    pub tokens: u64,
    pub capacity: u64,
    pub rate: Option<f64>,
    pub factor: f64,
    pub waiters: ByClass,
    pub next_grant: Option<String>,
    pub learnt: Option<Learnt>,
}

/// What was learnt of a rate.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Learnt {
    pub sentence: String,
}

/// All limits.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// In no order.
    pub limits: Vec<Limit>,
}

/// Shows them.
pub fn run(arguments: &Arguments, session: &Session) -> Result<(), Failure> {
    let output = arguments.output;
    if let Some(key) = &arguments.key {
        if let Some(change) = change(arguments, session)? {
            session.patch(&format!("/limits/{}", segments(key)), &change)?;
        }
        let answer = session.get(&format!("/limits/{}", segments(key)))?;
        return session.show(&answer, output, |limit: Limit, now| text(&[limit], now));
    }
    let answer = session.get("/limits")?;
    session.show(&answer, output, |mut all: Limits, now| {
        if arguments.waiting {
            all.limits.retain(|limit| limit.waiters.total() > 0);
        }
        text(&all.limits, now)
    })
}

/// What is to be done with a rate that is learnt, if anything is.
fn change(arguments: &Arguments, session: &Session) -> Result<Option<Value>, Failure> {
    let reason = &arguments.reason;
    let until = arguments.until.as_deref();
    let until = until.map(|text| when::read(text, session.now(), Direction::Ahead));
    let until = until.transpose().map_err(Failure::WrongUse)?;
    Ok(match (&arguments.pin, arguments.unpin, arguments.reset) {
        (Some(rate), ..) => Some(json!({ "rate": rate, "until": until, "reason": reason })),
        (None, true, _) => Some(json!({ "rate": null, "reason": reason })),
        (None, _, true) => Some(json!({ "reset": true, "reason": reason })),
        (None, false, false) => None,
    })
}

fn text(limits: &[Limit], now: Timestamp) -> String {
    let mut table = Table::new([
        Column::Text("limit"),
        Column::Text("allows"),
        Column::Number("free"),
        Column::Number("of"),
        Column::Number("rate"),
        Column::Number("waiting flows"),
        Column::Text("critical/high/normal/low"),
        Column::Text("admits again"),
    ]);
    for limit in limits {
        let next = limit.next_grant.as_deref();
        table.row([
            limit.key.clone(),
            limit.limit.clone(),
            count(limit.tokens),
            count(limit.capacity),
            limit.rate.map_or("-".to_owned(), super::pace::text),
            count(limit.waiters.total()),
            limit.waiters.text(),
            next.map_or("-".to_owned(), |next| when::both(next, now)),
        ]);
    }
    let mut text = table.text("No limits.");
    let learnt = limits
        .iter()
        .filter_map(|limit| Some((limit, limit.learnt.as_ref()?)));
    for (limit, learnt) in learnt {
        let _ = write!(text, "\n{}: {}", plain(&limit.key), plain(&learnt.sentence));
    }
    text
}
