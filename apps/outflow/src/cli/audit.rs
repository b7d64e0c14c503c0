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
use crate::report::change::Change;
use crate::report::material;

/// What is shown of a change, in words,
const WORDS_CHARS_MAX: usize = 200;
/// and of one for which there are none.
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
        table.row([
            when::both(&entry.at, now),
            entry.actor.clone(),
            entry.action.clone(),
            entry.target.clone(),
            detail(entry),
        ]);
    }
    let mut out = table.text("Nobody changed anything.");
    if let Some(cursor) = page.next_cursor {
        out.push_str(&format!("There may be more: add --cursor {cursor}.\n"));
    }
    out
}

/// From what to what, why, on what evidence; as it was written if that is not
/// known.
fn detail(entry: &Entry) -> String {
    let change = Change::of(&material::Entry {
        at: 0,
        actor: entry.actor.clone(),
        action: entry.action.clone(),
        target: entry.target.clone(),
        detail: entry.detail.clone(),
    });
    let mut words = change.words();
    if !words.is_empty() && change.target != entry.target {
        words = format!("{}: {words}", change.target);
    }
    match (words.is_empty(), &entry.detail) {
        (false, _) => shortened(&words, WORDS_CHARS_MAX),
        (true, Value::Null) => String::new(),
        (true, detail) => shortened(&detail.to_string(), DETAIL_CHARS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Entry, detail};

    #[test]
    fn a_change_is_told_in_words_where_there_are_any() {
        let entry = |action: &str, target: &str, detail| Entry {
            at: String::new(),
            actor: "jo".to_owned(),
            action: action.to_owned(),
            target: target.to_owned(),
            detail,
        };
        let patch = json!({
            "before": { "match": { "isp": "att" }, "rate": "40/s", "burst": 40,
                        "comment": "x".repeat(200) },
            "after": { "rate": "2/s", "mitigation_reason": "421s",
                       "cooldown_until": "2026-01-31T13:30:00Z" },
        });
        let told = detail(&entry("policy.set", "isp:att", patch));
        assert_eq!(told, "40/s -> 2/s: 421s (until 2026-01-31T13:30:00Z)");
        let cut = json!({
            "from": 40, "to": 20, "mode": "prove", "reason": "too much was refused",
            "evidence": { "refused": 12, "of": 40, "code": 421 },
        });
        let told = detail(&entry("limit.cut", "isp:att#learnt", cut));
        assert_eq!(
            told,
            "40/s -> 20/s: too much was refused (12 of 40 refused, last with 421)"
        );
        let pause = json!({ "about": "isp:att/class:low", "reason": "storm", "by": "jo" });
        let told = detail(&entry("pause.add", "7", pause));
        assert_eq!(told, "isp:att/class:low: storm");
        let other = json!({ "match": { "isp": "att" }, "selected": 3 });
        let told = detail(&entry("review.make", "1", other.clone()));
        assert_eq!(told, other.to_string());
        assert_eq!(detail(&entry("token.add", "1", json!(null))), "");
    }
}
