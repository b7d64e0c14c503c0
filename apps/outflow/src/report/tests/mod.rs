//! Reports from fixed histories.

mod changes;
mod facts;
mod safety;
mod told;
mod xml;

use serde_json::{Value, json};

use super::case::{Case, Period};
use super::change::Change;
use super::material::{Entry, HOUR, History, MINUTE, Rate, Refusal, SECOND, Slice};
use super::series::Series;
use super::story::{Story, concerned, totals};

/// 2026-01-31 12:00 UTC.
pub const NOON: i64 = 1_769_860_800_000;

/// Three hours until three o'clock.
pub const PERIOD: Period = Period {
    since: NOON,
    until: NOON + 3 * HOUR,
};

/// What was counted in a minute.
pub fn slice(minute: i64, destination: &str, attempts: u64, refused: u64) -> Slice {
    let at = NOON + minute * MINUTE;
    Slice {
        at,
        destination: destination.to_owned(),
        attempts,
        accepted: attempts - refused,
        refused,
        peak: attempts / 4,
        refusal: (refused > 0).then(|| Refusal {
            at: at + 12 * SECOND,
            class: "rate".to_owned(),
            code: Some(421),
            said: "4.7.28 Our system has detected an unusual rate of mail".to_owned(),
        }),
        ..Slice::default()
    }
}

pub fn rate(minute: i64, rate: f64) -> Rate {
    Rate {
        at: NOON + minute * MINUTE + 20 * SECOND,
        limit: "account:a/isp:google".to_owned(),
        destination: "isp:google".to_owned(),
        rate: Some(rate),
    }
}

pub fn entry(minute: i64, actor: &str, action: &str, target: &str, detail: Value) -> Entry {
    Entry {
        at: NOON + minute * MINUTE + 20 * SECOND,
        actor: actor.to_owned(),
        action: action.to_owned(),
        target: target.to_owned(),
        detail,
    }
}

/// A rule's change of a limit.
pub fn turn(minute: i64, action: &str, from: f64, to: f64) -> Entry {
    let detail = json!({
        "from": from, "to": to, "mode": "prove", "reason": "too much was refused",
        "evidence": { "refused": 12, "of": 40, "code": 421 },
    });
    entry(
        minute,
        "rule:control",
        action,
        "account:a/isp:google",
        detail,
    )
}

/// An hour at 40 a second, ten minutes of refusals, slow for half an hour, and
/// step by step back.
pub fn incident() -> (History, Vec<Entry>) {
    let mut slices = Vec::new();
    for minute in 0..180 {
        let google = match minute {
            60..65 => slice(minute, "isp:google", 2_400, 1_200),
            65..70 => slice(minute, "isp:google", 600, 60),
            70..100 => slice(minute, "isp:google", 300, 0),
            100..120 => slice(minute, "isp:google", 1_200, 1),
            _ => slice(minute, "isp:google", 2_400, 0),
        };
        slices.push(google);
        slices.push(slice(minute, "isp:yahoo", 60, 0));
    }
    let rates = vec![
        rate(-1, 40.0),
        rate(61, 20.0),
        rate(65, 5.0),
        rate(100, 20.0),
        rate(120, 39.0),
    ];
    let entries = vec![
        turn(120, "limit.raised", 20.0, 39.0),
        turn(100, "limit.raised", 5.0, 20.0),
        turn(65, "limit.cut", 20.0, 5.0),
        turn(61, "limit.cut", 40.0, 20.0),
        entry(
            10,
            "admin",
            "account.set",
            "b",
            json!({ "after": { "comment": "a spare" } }),
        ),
        entry(5, "admin", "token.add", "7", Value::Null),
    ];
    let history = History {
        step: 60,
        slices,
        rates,
        next_since: None,
    };
    (history, entries)
}

/// The story of it, as the command puts it together.
pub fn story(history: &History, entries: &[Entry], lost: Option<u64>) -> Story {
    let changes: Vec<Change> = entries.iter().map(Change::of).collect();
    let names = concerned(history, entries, PERIOD);
    let cases = names.iter().map(|name| {
        let mut case = Case::of(name, Series::of(history, name), &changes, PERIOD);
        case.lost = lost;
        case
    });
    let cases = cases.collect();
    let totals = totals(history, PERIOD);
    Story::new(PERIOD, PERIOD.until, cases, 0, totals, entries)
}
