//! `outflow explain`: why a message waits, for an operator at 3 a.m.
//!
//! The server says what stands before the message. What the limits allow, who
//! paused it and what went wrong before is asked for as well; a token that may
//! not see it gets the answer without it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;

use super::client::{segment, segments};
use super::failure::Failure;
use super::limits::Limit;
use super::message::{LastError, Message, WaitingOn};
use super::pauses::{Pause, Pauses};
use super::plain::{counted, plain};
use super::session::{Output, Session, print};
use super::{when, words};

/// Limits that are looked at.
const LIMITS_MAX: usize = 8;

/// Which message.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Its id.
    id: String,
    #[command(flatten)]
    output: Output,
}

/// What the server says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Explanation {
    id: String,
    state: String,
    summary: String,
    waiting_on: Vec<WaitingOn>,
    ahead_in_flow: u64,
    flows_waiting: u64,
    eta: Option<String>,
}

/// What else there is to know.
#[derive(Debug, Default)]
pub struct Around {
    message: Message,
    /// What each limit allows, by its key.
    limits: BTreeMap<String, String>,
    pauses: Vec<Pause>,
}

/// Explains it.
pub fn run(arguments: &Arguments, session: &Session) -> Result<(), Failure> {
    let path = format!("/messages/{}", segment(&arguments.id));
    let answer = session.get(&format!("{path}/explain"))?;
    if arguments.output.json {
        return session.print_json(&answer);
    }
    let explanation: Explanation = answer.read()?;
    let around = around(&explanation, &path, session)?;
    print(&text(&explanation, &around, session.now()))
}

fn around(explanation: &Explanation, path: &str, session: &Session) -> Result<Around, Failure> {
    let message: Message = or_nothing(session.read(path))?;
    let mut limits = BTreeMap::new();
    let keys = explanation.waiting_on.iter();
    for key in keys.filter_map(|on| on.limit.as_ref()).take(LIMITS_MAX) {
        let limit: Limit = or_nothing(session.read(&format!("/limits/{}", segments(key))))?;
        limits.insert(key.clone(), limit.limit);
    }
    let is_paused = explanation
        .waiting_on
        .iter()
        .any(|on| on.reason == "paused");
    let pauses = match is_paused {
        true => {
            let all: Pauses = or_nothing(session.read("/pauses"))?;
            let of_it = |pause: &Pause| pause.holds(&message);
            all.pauses.into_iter().filter(of_it).collect()
        }
        false => Vec::new(),
    };
    Ok(Around {
        message,
        limits,
        pauses,
    })
}

/// What may not be seen, or is gone by now, is left out.
fn or_nothing<T: Default>(read: Result<T, Failure>) -> Result<T, Failure> {
    match read {
        Err(failure) if failure.is_refusal("forbidden") || failure.is_refusal("not_found") => {
            Ok(T::default())
        }
        read => read,
    }
}

/// What is printed.
pub fn text(explanation: &Explanation, around: &Around, now: Timestamp) -> String {
    let mut out = format!(
        "{} is {}: it {}.\n",
        plain(&explanation.id),
        plain(&explanation.state),
        words::state(&explanation.state)
    );
    out.push_str(&about(&around.message, now));
    if explanation.waiting_on.is_empty() && explanation.ahead_in_flow == 0 {
        let _ = writeln!(out, "{}", plain(&explanation.summary));
    }
    for (at, on) in explanation.waiting_on.iter().enumerate() {
        let lead = match at {
            0 => "It waits for",
            _ => "         and",
        };
        let _ = writeln!(out, "{lead} {}", waits_for(on, around, now));
    }
    for pause in &around.pauses {
        let _ = writeln!(out, "  {}", pause.line(now));
    }
    out.push_str(&queue(explanation));
    match &explanation.eta {
        Some(eta) => {
            let _ = writeln!(
                out,
                "It can go at {} at the earliest.",
                when::both(eta, now)
            );
        }
        None if !explanation.waiting_on.is_empty() => {
            out.push_str("When it can go is not known yet.\n");
        }
        None => {}
    }
    out.push_str(&tried(&around.message));
    out
}

/// Whose it is and where it goes.
fn about(message: &Message, now: Timestamp) -> String {
    if message.id.is_empty() {
        return String::new();
    }
    let campaign = message.campaign.as_deref();
    let campaign = campaign.map(|campaign| format!(", campaign {campaign}"));
    let line = format!(
        "{} message of tenant {}{} in lane {}/{}; accepted {}.",
        message.class,
        message.tenant,
        campaign.unwrap_or_default(),
        message.pool,
        message.destination,
        when::both(&message.accepted_at, now)
    );
    format!("  {}\n", plain(&line))
}

fn waits_for(on: &WaitingOn, around: &Around, now: Timestamp) -> String {
    let mut line = match &on.limit {
        Some(key) => match around.limits.get(key).filter(|spec| !spec.is_empty()) {
            Some(spec) => format!("{} ({})", plain(key), plain(spec)),
            None => plain(key),
        },
        None => plain(words::reason(&on.reason)),
    };
    if let Some(account) = &on.account {
        let _ = write!(line, " (account {})", plain(account));
    }
    if let Some(until) = &on.until {
        let _ = write!(line, " until {}", when::both(until, now));
    }
    if let Some(detail) = &on.detail {
        let _ = write!(line, ": {}", plain(detail));
    }
    line
}

/// What stands before it in its own queue.
fn queue(explanation: &Explanation) -> String {
    let ahead = match explanation.ahead_in_flow {
        0 => return String::new(),
        1 => "1 message of its flow is ahead".to_owned(),
        many => format!("{} of its flow are ahead", counted(many, "", "messages")),
    };
    match explanation.flows_waiting {
        0 => format!("{ahead}.\n"),
        flows => format!(
            "{ahead}; {} for the same limit.\n",
            counted(flows, "flow waits", "flows wait")
        ),
    }
}

fn tried(message: &Message) -> String {
    if message.attempts == 0 {
        return String::new();
    }
    let times = counted(message.attempts, "time", "times");
    let last = message.last_error.as_ref().map(LastError::text);
    match last {
        Some(error) => format!("It was tried {times}; the last answer was {error}.\n"),
        None => format!("It was tried {times}.\n"),
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
