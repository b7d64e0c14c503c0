//! `outflow classify`: what an answer of a far end means, by the same rules
//! that the engine follows. Needs no server.

use clap::{Args, ValueEnum};
use outflow_config::figure;
use outflow_core::classify::Rules;
use outflow_core::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};
use outflow_core::reply::{Reply, Stage};
use serde_json::json;

use super::failure::Failure;
use super::session::{Output, print};
use super::table::lines;

/// An answer.
#[derive(Debug, Args)]
pub struct Arguments {
    /// As the far end said it: "421 4.7.28 Too much mail from your address".
    reply: String,
    /// Who said it: `google`. Only rules that hold everywhere exist so far.
    #[arg(long)]
    destination: Option<String>,
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
    let outcome = Rules::generic().classify(&reply, arguments.attempts);
    print(&match arguments.output.json {
        true => json(&outcome),
        false => text(&outcome, arguments.destination.as_deref()),
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
    let retry_after = outcome.retry_after.map(|wait| wait.0 / 1_000_000_000);
    let value = json!({
        "verdict": outcome.verdict.as_str(),
        "class": outcome.class.as_str(),
        "scope": outcome.scope.as_str(),
        "rule": outcome.rule.as_str(),
        "retry_after_s": retry_after,
        "suppress": outcome.suppress,
        "about_us": outcome.is_about_us(),
    });
    format!("{value}\n")
}

fn text(outcome: &Outcome, destination: Option<&str>) -> String {
    let said = |word: &str, meaning: &str| Some(format!("{word}: {meaning}"));
    let verdict = outcome.verdict;
    let wait = outcome.retry_after.map(figure::span_text);
    lines([
        ("verdict", said(verdict.as_str(), verdict_words(verdict))),
        (
            "why",
            said(outcome.class.as_str(), class_words(outcome.class)),
        ),
        ("about", Some(scope_words(outcome.scope).to_owned())),
        ("wait", wait),
        (
            "recipient",
            outcome
                .suppress
                .then(|| "is not written to again by any message".to_owned()),
        ),
        ("rule", Some(outcome.rule.as_str().to_owned())),
        (
            "note",
            destination
                .map(|name| format!("{name} has no rules of its own; these hold everywhere")),
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
        ReplyScope::Tenant => "the tenant whose domain or content it is",
        ReplyScope::Account => "the account or sending IP",
        ReplyScope::Destination => "all that we send to this destination",
        ReplyScope::Session => "this connection only",
    }
}
