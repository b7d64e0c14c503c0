//! `outflow warmup`: how far new senders are.

use clap::Args;
use serde::Deserialize;

use super::failure::Failure;
use super::plain::count;
use super::session::{Output, Session};
use super::table::{Column, Table};

/// How to show them.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WarmUps {
    warm_ups: Vec<WarmUp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WarmUp {
    sender: String,
    plan: String,
    day: Option<u32>,
    days: u32,
    quota_per_day: Option<u64>,
    quota_per_hour: Option<u64>,
    today: Counts,
    yesterday: Option<Verdict>,
    overflow_pool: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts {
    attempts: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Verdict {
    good: bool,
    why: String,
}

/// Shows them.
pub fn run(arguments: &Arguments, session: &Session) -> Result<(), Failure> {
    let answer = session.get("/warm-ups")?;
    session.show(&answer, arguments.output, |all: WarmUps, _| text(&all))
}

fn text(all: &WarmUps) -> String {
    let mut table = Table::new([
        Column::Text("sender"),
        Column::Text("plan"),
        Column::Text("day"),
        Column::Number("used"),
        Column::Number("a day"),
        Column::Number("an hour"),
        Column::Text("the rest"),
        Column::Text("yesterday"),
    ]);
    for one in &all.warm_ups {
        let day = match one.day {
            Some(day) => format!("{day} of {}", one.days),
            None => "over".to_owned(),
        };
        let quota = |quota: Option<u64>| quota.map(count).unwrap_or_default();
        let rest = match (&one.overflow_pool, one.day) {
            (_, None) => String::new(),
            (Some(pool), _) => format!("goes to {pool}"),
            (None, _) => "waits".to_owned(),
        };
        let yesterday = one.yesterday.as_ref().map(|it| {
            let word = if it.good { "good" } else { "not good" };
            format!("{word}: {}", it.why)
        });
        table.row([
            one.sender.clone(),
            one.plan.clone(),
            day,
            count(one.today.attempts),
            quota(one.quota_per_day),
            quota(one.quota_per_hour),
            rest,
            yesterday.unwrap_or_default(),
        ]);
    }
    table.text("No sender is being warmed up: see [[warm_up]] in docs/configuration.md.")
}
