//! The server's log: what people read, and what programs read for them.
//!
//! Each event has a level of its own; what happens to every message is for
//! those who search. Recipients' addresses are left out unless the settings say
//! otherwise, and no event carries a secret.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use outflow_core::engine::action::{Alert, Standstill};
use outflow_core::engine::learners::Turn;
use outflow_core::flow::FlowKey;
use outflow_core::message_id::MessageId;
use outflow_core::reply::Reply;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::Wall;

use crate::address;
use crate::attempts;
use crate::catalogue::{Event, Level, Settled, Submission};
use crate::line::Line;
use crate::sink::Sink;
use crate::writer::Writer;

pub use crate::line::Format;

/// What is written and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// Text or JSON.
    pub format: Format,
    /// The least grave level that is written.
    pub level: Level,
    /// Whether addresses that far ends repeat are written as they are.
    pub addresses: bool,
}

/// The server's log.
#[derive(Debug)]
pub struct Logs {
    settings: LogSettings,
    writer: Writer,
}

impl Logs {
    /// Writes to `writer`.
    pub fn new(settings: LogSettings, writer: Writer) -> Self {
        Self { settings, writer }
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.writer.dropped()
    }

    fn describe(&self, line: &mut Line<'_>, event: &Event<'_>) {
        match event {
            Event::Stopping | Event::Stopped | Event::PolicyChanged => {}
            Event::Started(started) => {
                line.flag("fresh", started.fresh);
                line.number("flows", started.flows);
                line.number("ready", started.ready);
                line.number("limits", started.limits);
                line.millis("downtime_ms", started.downtime);
            }
            Event::Accepted {
                channel,
                class,
                count,
            } => {
                line.text("channel", channel.as_str());
                line.text("class", class.as_str());
                line.number("count", u64::from(*count));
            }
            Event::IntakeRefused { reason, count } => {
                line.text("reason", reason.as_str());
                line.number("count", u64::from(*count));
            }
            Event::Attempted(attempt) => attempts::describe(line, attempt),
            Event::Deferred {
                message,
                key,
                until,
                attempted,
            } => {
                facts(line, *message, key);
                line.time("until", *until);
                line.flag("attempted", *attempted);
            }
            Event::Settled(settled) => self.settled(line, settled),
            Event::Died {
                message,
                key,
                account,
                letter,
            } => {
                facts(line, *message, key);
                line.optional("account", *account);
                line.text("cause", letter.cause.as_str());
                line.number("attempts", u64::from(letter.attempts));
                self.error(line, &letter.error);
            }
            Event::Feedback {
                message,
                key,
                error,
            } => {
                facts(line, *message, key);
                self.error(line, error);
            }
            Event::Alert(alert) => describe_alert(line, alert),
            Event::Committed(commit) => {
                line.millis("duration_ms", commit.duration);
                line.number("records", commit.records);
                line.number("bytes", commit.bytes);
            }
            Event::AccountChanged { account } | Event::AccountRemoved { account } => {
                line.text("account", account);
            }
            Event::Paused {
                pause,
                matches,
                until,
            } => {
                line.number("pause", *pause);
                line.show("match", matches);
                if let Some(until) = until {
                    line.time("until", *until);
                }
            }
            Event::Resumed { pause } => line.number("pause", *pause),
            Event::Swept { action, matches } => {
                line.text("action", action.as_str());
                line.show("match", matches);
            }
            Event::Requested(request) => {
                line.text("method", request.method);
                line.text("route", request.route);
                line.number("status", u64::from(request.status));
                line.millis("duration_ms", request.duration);
            }
            Event::Dns { is_away } => line.text(
                "text",
                match is_away {
                    true => {
                        "no DNS server answers: domains that are not well known count as their \
                         own destination, and mail straight to their servers waits"
                    }
                    false => "DNS answers again",
                },
            ),
            Event::Ledger { is_away, detail } => {
                let text = match is_away {
                    true => "the ledger is away: each limit goes on as its policy says (when_away)",
                    false => "the ledger is back",
                };
                line.text("text", text);
                if *is_away {
                    line.text("error", detail);
                }
            }
            Event::LedgerCounts(_) => {}
            Event::Submission(what) => {
                line.text("what", what.as_str());
                line.show("peer", &what.peer());
                match what {
                    Submission::Taken { recipients, .. } => line.number("recipients", *recipients),
                    Submission::Refused { reply, .. } => line.text("reply", reply),
                    _ => {}
                }
            }
            Event::Reported(what) => {
                line.number("unread", what.unread);
                line.number("unmatched", what.unmatched);
                line.number("matched", what.matched);
                line.number("suppressed", what.suppressed);
            }
            Event::Surge(surge) => {
                line.text("destination", &surge.destination);
                line.number("hard_bounces", surge.counts.hard);
                line.number("attempts", surge.counts.attempts);
                line.number("held", surge.held);
                line.text(
                    "text",
                    "it says \"no such mailbox\" far more often than usual: the suppressions of \
                     the last 15 minutes and those to come are held. Look at them: outflow \
                     suppressions review",
                );
            }
            Event::Noted { part, text, .. } => {
                line.text("part", part);
                line.text("text", &self.shown(text));
            }
        }
    }

    fn settled(&self, line: &mut Line<'_>, settled: &Settled<'_>) {
        facts(line, settled.message, settled.key);
        line.text("state", settled.state.as_str());
        line.optional("account", settled.account);
        if let Some(age) = settled.age {
            line.millis("age_ms", age);
        }
        if let Some(error) = settled.error {
            self.error(line, error);
        }
    }

    fn error(&self, line: &mut Line<'_>, error: &LastError) {
        if let Some(code) = error.code {
            line.number("code", u64::from(code));
        }
        line.text("outcome_class", error.class.as_str());
        line.text("text", &self.shown(&error.text));
    }

    fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.settings.addresses {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(address::hidden(text))
        }
    }
}

impl Sink for Logs {
    fn emit(&self, event: &Event<'_>) {
        let level = level(event);
        if level > self.settings.level {
            return;
        }
        self.writer.line(|out| {
            let mut line = Line::begin(out, self.settings.format);
            line.word("time", &crate::line::rfc3339(time_of(event)));
            line.word("level", level.as_str());
            line.word("event", name(event));
            self.describe(&mut line, event);
            line.end();
        });
    }
}

/// When it happened, as far as the event says; else now.
fn time_of(event: &Event<'_>) -> Wall {
    if let Event::Attempted(attempt) = event {
        return attempt.at;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    Wall(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// Which message.
fn facts(line: &mut Line<'_>, message: Option<MessageId>, key: &FlowKey) {
    if let Some(message) = message {
        line.show("message_id", &message);
    }
    line.text("tenant", key.tenant.as_str());
    line.text("class", key.class.as_str());
    line.show("destination", &key.destination);
}

fn describe_alert(line: &mut Line<'_>, alert: &Alert) {
    let what = match alert {
        Alert::StoreFailing => "the store takes no records: nothing is sent until it does",
        Alert::StoreRecovered => "the store takes records again",
        Alert::LedgerAway { key } => {
            line.show("limit", key);
            "the ledger is away: the limit is handled as its policy says"
        }
        Alert::Refused(refusal) => {
            line.show("about", &refusal.about);
            line.text("account", refusal.account.as_str());
            line.text("class", refusal.class.as_str());
            line.text("rule", refusal.rule.as_str());
            if let Some(until) = refusal.until {
                line.time("until", until);
            }
            line.text("reply", &address::hidden(&refusal.reply.to_string()));
            "the far end refuses us in a way that a person must mend"
        }
        Alert::Broken {
            account,
            destination,
            until,
            why,
        } => {
            line.text("account", account.as_str());
            if let Some(destination) = destination {
                line.show("destination", destination);
            }
            line.time("until", *until);
            match why {
                Standstill::Failures => "the account fails again and again: it is left alone",
                Standstill::Refusals => "too many messages are refused: the account stops",
            }
        }
        Alert::Restored {
            account,
            destination,
        } => {
            line.text("account", account.as_str());
            if let Some(destination) = destination {
                line.show("destination", destination);
            }
            "the account is back"
        }
        Alert::WorkerLost { .. } => "a delivery got no answer by its deadline",
        Alert::Adapted(adapted) => {
            line.show("limit", &adapted.key);
            line.text("turn", adapted.turn.as_str());
            line.text("mode", adapted.mode.as_str());
            &adapted.sentence
        }
        Alert::Unwelcome {
            account,
            destination,
            welcome,
            reply,
        } => {
            line.text("account", account.as_str());
            line.show("destination", destination);
            if let Some(sessions) = welcome.sessions {
                line.number("sessions", sessions.into());
            }
            if let Some(messages) = welcome.messages {
                line.number("messages", messages.into());
            }
            if let Reply::Said { code, .. } = **reply {
                line.number("code", code.into());
            }
            "the far end welcomes fewer connections, or fewer messages on each"
        }
    };
    line.text("text", what);
}

/// How grave an event is.
pub fn level(event: &Event<'_>) -> Level {
    match event {
        Event::Alert(Alert::StoreFailing | Alert::Refused(_)) => Level::Error,
        Event::Surge(_) => Level::Error,
        Event::Alert(Alert::StoreRecovered | Alert::Restored { .. }) => Level::Info,
        Event::Alert(Alert::Adapted(adapted)) => match adapted.turn {
            Turn::Stopped | Turn::Cut | Turn::Learnt => Level::Warn,
            Turn::Raised | Turn::Resumed => Level::Info,
        },
        Event::Dns { is_away: true } | Event::Ledger { is_away: true, .. } => Level::Warn,
        // Something acknowledged was lost.
        Event::Died { letter, .. } if letter.cause == DeathCause::StorageDamaged => Level::Error,
        Event::Alert(_) | Event::Died { .. } | Event::IntakeRefused { .. } => Level::Warn,
        Event::Requested(request) if request.status >= 500 => Level::Warn,
        Event::Noted { level, .. } => *level,
        Event::Started(_)
        | Event::Stopping
        | Event::Stopped
        | Event::Feedback { .. }
        | Event::PolicyChanged
        | Event::AccountChanged { .. }
        | Event::AccountRemoved { .. }
        | Event::Paused { .. }
        | Event::Resumed { .. }
        | Event::Dns { is_away: false }
        | Event::Ledger { is_away: false, .. }
        | Event::Swept { .. } => Level::Info,
        Event::Accepted { .. }
        | Event::Attempted(_)
        | Event::Deferred { .. }
        | Event::Settled(_)
        | Event::Committed(_)
        | Event::LedgerCounts(_)
        | Event::Submission(_)
        | Event::Reported(_)
        | Event::Requested(_) => Level::Debug,
    }
}

/// What an event is called in logs.
pub fn name(event: &Event<'_>) -> &'static str {
    match event {
        Event::Started(_) => "started",
        Event::Stopping => "stopping",
        Event::Stopped => "stopped",
        Event::Accepted { .. } => "accepted",
        Event::IntakeRefused { .. } => "intake_refused",
        Event::Attempted(_) => "attempted",
        Event::Deferred { .. } => "deferred",
        Event::Settled(_) => "settled",
        Event::Died { .. } => "dead_letter",
        Event::Feedback { .. } => "feedback",
        Event::Alert(Alert::StoreFailing) => "store_failing",
        Event::Alert(Alert::StoreRecovered) => "store_recovered",
        Event::Alert(Alert::LedgerAway { .. }) => "ledger_away",
        Event::Alert(Alert::Refused(_)) => "refused",
        Event::Alert(Alert::WorkerLost { .. }) => "worker_lost",
        Event::Alert(Alert::Broken { .. }) => "account_broken",
        Event::Alert(Alert::Restored { .. }) => "account_restored",
        Event::Alert(Alert::Adapted(_)) => "adapted",
        Event::Alert(Alert::Unwelcome { .. }) => "unwelcome",
        Event::Committed(_) => "committed",
        Event::PolicyChanged => "policy_changed",
        Event::AccountChanged { .. } => "account_changed",
        Event::AccountRemoved { .. } => "account_removed",
        Event::Paused { .. } => "paused",
        Event::Resumed { .. } => "resumed",
        Event::Swept { .. } => "swept",
        Event::Requested(_) => "requested",
        Event::Dns { is_away: true } => "dns_away",
        Event::Dns { is_away: false } => "dns_back",
        Event::Ledger { is_away: true, .. } => "ledger_away",
        Event::Ledger { is_away: false, .. } => "ledger_back",
        Event::LedgerCounts(_) => "ledger_counts",
        Event::Submission(_) => "submission",
        Event::Reported(_) => "reported",
        Event::Surge(_) => "surge",
        Event::Noted { .. } => "noted",
    }
}
