//! A message as the API shows it, and as people read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize;

use super::plain::{plain, shortened};
use super::table::{Column, Table, lines};
use super::{when, words};

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    pub id: String,
    pub state: String,
    pub tenant: String,
    pub class: String,
    pub campaign: Option<String>,
    pub pool: String,
    pub destination: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub subject: Option<String>,
    pub tags: BTreeMap<String, String>,
    pub accepted_at: String,
    pub expires_at: Option<String>,
    pub settled_at: Option<String>,
    pub attempts: u64,
    pub account: Option<String>,
    pub deferred_until: Option<String>,
    pub cause: Option<String>,
    pub last_error: Option<LastError>,
    pub waiting_on: Vec<WaitingOn>,
    pub eta: Option<String>,
    pub events: Vec<Event>,
}

/// What went wrong.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LastError {
    pub code: String,
    pub smtp_status: Option<u16>,
    pub enhanced: Option<String>,
    pub http_status: Option<u16>,
    pub provider_message: String,
}

/// What stands before a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WaitingOn {
    pub reason: String,
    pub limit: Option<String>,
    pub until: Option<String>,
    pub account: Option<String>,
    pub detail: Option<String>,
}

/// Something that happened to it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    pub at: String,
    pub what: String,
    pub account: Option<String>,
    pub until: Option<String>,
    pub error: Option<LastError>,
}

impl LastError {
    /// `rate_limited: 421 4.7.28 Too fast`.
    pub fn text(&self) -> String {
        let mut out = self.code.clone();
        let status = self.smtp_status.or(self.http_status);
        let said = [
            status.map(|status| status.to_string()),
            self.enhanced.clone(),
            Some(self.provider_message.clone()),
        ];
        let said: Vec<String> = said
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        if !said.is_empty() {
            let _ = write!(out, ": {}", said.join(" "));
        }
        plain(&out)
    }
}

impl WaitingOn {
    /// In a word or two, for tables.
    pub fn short(&self, now: Timestamp) -> String {
        let what = match &self.limit {
            Some(limit) => limit.as_str(),
            None => words::reason_short(&self.reason),
        };
        match &self.until {
            Some(until) => format!("{what} until {}", when::at(until, now)),
            None => what.to_owned(),
        }
    }
}

/// Messages, one on each line.
pub fn table(messages: &[Message], nothing: &str, now: Timestamp) -> String {
    let mut table = Table::new([
        Column::Text("id"),
        Column::Text("state"),
        Column::Text("class"),
        Column::Text("tenant"),
        Column::Text("destination"),
        Column::Text("to"),
        Column::Text("accepted"),
        Column::Number("tries"),
        Column::Text("what"),
    ]);
    for message in messages {
        table.row([
            message.id.clone(),
            message.state.clone(),
            message.class.clone(),
            message.tenant.clone(),
            message.destination.clone(),
            shortened(message.to.as_deref().unwrap_or("-"), 40),
            when::seen(&message.accepted_at, now),
            message.attempts.to_string(),
            shortened(&message.what(now), 80),
        ]);
    }
    table.text(nothing)
}

impl Message {
    /// What there is to know of it in a few words.
    fn what(&self, now: Timestamp) -> String {
        let until = self.deferred_until.as_ref();
        let until = until.map(|until| format!("waits until {}", when::at(until, now)));
        let error = self.last_error.as_ref().map(LastError::text);
        let cause = self
            .cause
            .as_deref()
            .map(|cause| words::cause(cause).to_owned());
        let settled = self.settled_at.as_ref();
        let settled = settled.map(|at| when::seen(at, now));
        let parts = [cause, until.or(settled), error];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// All that is known of it.
    pub fn text(&self, now: Timestamp) -> String {
        let time = |at: &Option<String>| at.as_deref().map(|at| when::both(at, now));
        let tags = self
            .tags
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let tags: Vec<String> = tags.collect();
        let waiting: Vec<String> = self.waiting_on.iter().map(|on| on.short(now)).collect();
        let mut out = lines([
            ("id", Some(self.id.clone())),
            (
                "state",
                Some(format!("{}: it {}", self.state, words::state(&self.state))),
            ),
            ("from", self.from.clone()),
            ("to", self.to.clone()),
            ("subject", self.subject.clone()),
            ("tenant", Some(self.tenant.clone())),
            ("class", Some(self.class.clone())),
            ("campaign", self.campaign.clone()),
            ("lane", Some(format!("{}/{}", self.pool, self.destination))),
            ("tags", Some(tags.join(", "))),
            ("accepted", Some(when::both(&self.accepted_at, now))),
            ("expires", time(&self.expires_at)),
            ("settled", time(&self.settled_at)),
            ("attempts", Some(self.attempts.to_string())),
            ("account", self.account.clone()),
            ("waits for", Some(waiting.join(", "))),
            ("waits until", time(&self.deferred_until)),
            ("earliest", time(&self.eta)),
            (
                "given up",
                self.cause
                    .as_deref()
                    .map(|cause| words::cause(cause).to_owned()),
            ),
            ("last error", self.last_error.as_ref().map(LastError::text)),
        ]);
        if !self.events.is_empty() {
            out.push_str("\nWhat happened:\n");
        }
        for event in &self.events {
            out.push_str(&event.line(now));
        }
        out
    }
}

impl Event {
    fn line(&self, now: Timestamp) -> String {
        let mut line = format!("  {}  {}", when::at(&self.at, now), plain(&self.what));
        if let Some(account) = &self.account {
            let _ = write!(line, " by {}", plain(account));
        }
        if let Some(until) = &self.until {
            let _ = write!(line, " until {}", when::at(until, now));
        }
        if let Some(error) = &self.error {
            let _ = write!(line, " ({})", error.text());
        }
        line.push('\n');
        line
    }
}
