//! `outflow classify`: what an answer of a far end means, by the same rules
//! that the engine follows. Needs no server.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use outflow_config::figure;
use outflow_core::classify::destination_named;
use outflow_core::outcome::{Outcome, Reaction, ReplyClass, ReplyScope, Verdict};
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::Nanos;
use serde_json::json;

use super::failure::Failure;
use super::session::{Output, print};
use super::table::lines;
use crate::rules;

/// An answer.
#[derive(Debug, Args)]
pub struct Arguments {
    /// As the far end said it: "421 4.7.28 Too much mail from your address".
    reply: String,
    /// Who said it: `google`, `isp:google`, `host:api.example.com`. Without it,
    /// only rules that hold everywhere are asked.
    #[arg(long)]
    destination: Option<String>,
    /// A file of rules of your own, asked first; several are asked in order.
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// How far the delivery had come.
    #[arg(long, value_enum, default_value = "data")]
    stage: StageWord,
    /// How often the message was tried.
    #[arg(long, default_value_t = 1)]
    attempts: u16,
    #[command(flatten)]
    output: Output,
}

/// How far a delivery had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageWord {
    /// While connecting or resolving.
    Connect,
    /// The greeting, EHLO, STARTTLS.
    Greeting,
    /// Logging in.
    Auth,
    /// The sender was named.
    Sender,
    /// The recipient was named.
    Recipient,
    /// The whole message was handed over.
    Data,
}

impl StageWord {
    const fn stage(self) -> Stage {
        match self {
            Self::Connect => Stage::Connect,
            Self::Greeting => Stage::Greeting,
            Self::Auth => Stage::Auth,
            Self::Sender => Stage::Sender,
            Self::Recipient => Stage::Recipient,
            Self::Data => Stage::Data,
        }
    }
}

/// Says what it means.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let reply = read(&arguments.reply, arguments.stage.stage()).ok_or_else(|| {
        Failure::WrongUse(format!(
            "{:?}: an answer begins with its status, as in \"421 4.7.28 Too much mail\"",
            arguments.reply
        ))
    })?;
    let to = match &arguments.destination {
        None => None,
        Some(name) => Some(destination_named(name).ok_or_else(|| {
            Failure::WrongUse(format!(
                "{name:?}: a destination is written as \"google\", \"isp:google\", \
                 \"carrier:us-att\", \"push:apns\" or \"host:api.example.com\""
            ))
        })?),
    };
    let rules = rules::load(&arguments.rules).map_err(|error| Failure::Other(error.to_string()))?;
    let outcome = rules.classify(to.as_ref(), &reply, arguments.attempts);
    let stranger = to.filter(|to| !rules.knows(to));
    print(&match arguments.output.json {
        true => json(&outcome),
        false => text(&outcome, stranger.map(|to| to.to_string())),
    })
}

/// Reads `421 4.7.28 Too much` and `421-4.7.28 Too much`.
fn read(text: &str, stage: Stage) -> Option<Reply> {
    let text = text.trim();
    let (code, rest) = text
        .split_at_checked(3)
        .filter(|(_, rest)| rest.is_empty() || rest.starts_with([' ', '-']))?;
    let code = code.parse::<u16>().ok().filter(|code| *code >= 200)?;
    let rest = rest.trim_start_matches([' ', '-']);
    Some(Reply::said(stage, code, rest))
}

fn json(outcome: &Outcome) -> String {
    let seconds = |wait: Nanos| wait.0 / 1_000_000_000;
    let value = json!({
        "verdict": outcome.verdict.as_str(),
        "class": outcome.class.as_str(),
        "scope": outcome.scope.as_str(),
        "action": outcome.action.as_str(),
        "lasts_s": outcome.lasts.map(seconds),
        "alert": outcome.alert,
        "rule": outcome.rule.as_str(),
        "retry_after_s": outcome.retry_after.map(seconds),
        "suppress": outcome.suppresses(),
        "about_us": outcome.is_about_us(),
    });
    format!("{value}\n")
}

fn text(outcome: &Outcome, stranger: Option<String>) -> String {
    let said = |word: &str, meaning: &str| Some(format!("{word}: {meaning}"));
    let verdict = outcome.verdict;
    let wait = outcome.retry_after.map(figure::span_text);
    let lasts = outcome.lasts.map(figure::span_text);
    let action = match &lasts {
        Some(lasts) => format!("{}, for {lasts}", action_words(outcome.action)),
        None => action_words(outcome.action).to_owned(),
    };
    lines([
        ("verdict", said(verdict.as_str(), verdict_words(verdict))),
        (
            "why",
            said(outcome.class.as_str(), class_words(outcome.class)),
        ),
        ("about", Some(scope_words(outcome.scope).to_owned())),
        ("action", said(outcome.action.as_str(), &action)),
        ("wait", wait),
        (
            "alert",
            outcome.alert.then(|| "a person is told".to_owned()),
        ),
        ("rule", Some(outcome.rule.as_str().to_owned())),
        (
            "note",
            stranger.map(|name| format!("{name} has no rules of its own; these hold everywhere")),
        ),
    ])
}

const fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Delivered => "the far end took it",
        Verdict::Bounced => "refused for good; no later try would fare better",
        Verdict::Retry => "refused for now; it is tried again",
        Verdict::Blocked => "we are blocked; messages wait, and an alarm is raised",
        Verdict::Misconfigured => "our set-up is at fault; messages wait until it is mended",
        Verdict::Uncertain => "nobody knows whether it was taken",
    }
}

const fn action_words(action: Reaction) -> &'static str {
    match action {
        Reaction::Nothing => "all is well",
        Reaction::Retry => "the message is tried again, and nothing else changes",
        Reaction::SlowDown => "those it is about send more slowly",
        Reaction::FewerConnections => "the account holds fewer connections to the destination",
        Reaction::ShorterConnections => "the account's connections carry fewer messages each",
        Reaction::Pause => "those it is about stop",
        Reaction::Bounce => "the message is given back to its sender",
        Reaction::Suppress => "the recipient is not written to again by any message",
    }
}

const fn class_words(class: ReplyClass) -> &'static str {
    match class {
        ReplyClass::Accepted => "it was taken",
        ReplyClass::Rate => "we send too fast, or hold too many connections",
        ReplyClass::Reputation => "it thinks ill of our address, domain or network",
        ReplyClass::Content => "it dislikes this message",
        ReplyClass::Recipient => "the mailbox is missing, closed or full",
        ReplyClass::Greylist => "it turns every stranger away once",
        ReplyClass::Authentication => "log-in, SPF, DKIM, DMARC or reverse DNS",
        ReplyClass::Network => "it could not be reached, or the connection broke",
        ReplyClass::Capacity => "it is overloaded or out of order",
        ReplyClass::Other => "something else",
    }
}

const fn scope_words(scope: ReplyScope) -> &'static str {
    match scope {
        ReplyScope::Recipient => "this recipient, whatever we send",
        ReplyScope::Message => "this message, whoever receives it",
        ReplyScope::Tenant => "the tenant whose content it is",
        ReplyScope::Account => "the account or sending IP, at this destination",
        ReplyScope::WholeAccount => "the account or sending IP, wherever it sends",
        ReplyScope::SendingDomain => "the domain it is sent from, at this destination",
        ReplyScope::Destination => "all that we send to this destination",
        ReplyScope::Session => "this connection only",
    }
}
