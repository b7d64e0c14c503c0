//! A timeline as one column: JSON, so that a person can read it and SQLite's
//! own functions can search it.
//!
//! It is bounded: of a longer one the first entry and the latest are kept.

use std::borrow::Cow;

use outflow_core::name::Name;
use outflow_core::retry::dead_letter::LastError;
use outflow_ports::receipts::Happening;
use serde::{Deserialize, Serialize};

use super::error::RecordError;
use super::words;

/// The most entries of a timeline that are kept.
pub const EVENTS_MAX: usize = 64;

#[derive(Serialize, Deserialize)]
struct Entry<'a> {
    at_ms: i64,
    #[serde(borrow)]
    what: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    account: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<i64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    error: Option<Failure<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Failure<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enhanced: Option<String>,
    #[serde(borrow)]
    class: Cow<'a, str>,
    #[serde(borrow)]
    rule: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// A timeline as text, no longer than is kept.
pub fn encode(events: &[Happening]) -> String {
    let dropped = events.len().saturating_sub(EVENTS_MAX);
    let kept = events.iter().take(1).chain(events.iter().skip(1 + dropped));
    let entries: Vec<Entry<'_>> = kept.map(entry).collect();
    serde_json::to_string(&entries).expect("numbers and words always have a JSON form")
}

/// A timeline from its text.
pub fn decode(text: &str) -> Result<Vec<Happening>, RecordError> {
    let entries: Vec<Entry<'_>> = serde_json::from_str(text)?;
    entries.into_iter().map(happening).collect()
}

/// Adds what happened later, unless it is there already.
pub fn add(events: &mut Vec<Happening>, later: Happening) {
    let is_there = |event: &Happening| {
        words::millis(event.at) == words::millis(later.at)
            && event.what == later.what
            && event.error == later.error
    };
    if !events.iter().any(is_there) {
        events.push(later);
    }
}

fn entry(event: &Happening) -> Entry<'_> {
    Entry {
        at_ms: words::millis(event.at),
        what: Cow::Borrowed(&event.what),
        account: event.account.as_deref().map(Cow::Borrowed),
        until_ms: event.until.map(words::millis),
        error: event.error.as_ref().map(|error| Failure {
            code: error.code,
            enhanced: error.enhanced.map(words::enhanced_text),
            class: Cow::Borrowed(error.class.as_str()),
            rule: Cow::Borrowed(error.rule.as_str()),
            text: Cow::Borrowed(words::cut(&error.text)),
        }),
    }
}

fn happening(entry: Entry<'_>) -> Result<Happening, RecordError> {
    Ok(Happening {
        at: words::wall(entry.at_ms),
        what: entry.what.into_owned(),
        account: entry.account.map(Cow::into_owned),
        until: entry.until_ms.map(words::wall),
        error: entry.error.map(last_error).transpose()?,
    })
}

fn last_error(failure: Failure<'_>) -> Result<LastError, RecordError> {
    Ok(LastError {
        code: failure.code,
        enhanced: failure
            .enhanced
            .as_deref()
            .map(words::enhanced)
            .transpose()?,
        class: words::reply_class(&failure.class)?,
        rule: Name::from(&*failure.rule),
        text: failure.text.into_owned(),
    })
}
