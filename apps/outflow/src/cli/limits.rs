//! `outflow limits`: live tokens, waiters, when they admit again.

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;

use super::client::segments;
use super::failure::Failure;
use super::lanes::ByClass;
use super::plain::count;
use super::session::{Output, Session};
use super::table::{Column, Table};
use super::when;

/// Which limits.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only this one: `isp:google`, `account:ses-1`.
    key: Option<String>,
    /// Only those that something waits at.
    #[arg(long, conflicts_with_all = ["key", "json"])]
    waiting: bool,
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
        let rate = limit.rate.map(|rate| rate * limit.factor);
        let next = limit.next_grant.as_deref();
        table.row([
            limit.key.clone(),
            limit.limit.clone(),
            count(limit.tokens),
            count(limit.capacity),
            rate.map_or("-".to_owned(), super::pace::text),
            count(limit.waiters.total()),
            limit.waiters.text(),
            next.map_or("-".to_owned(), |next| when::both(next, now)),
        ]);
    }
    table.text("No limits.")
}
