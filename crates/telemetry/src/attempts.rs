//! A line of JSON for every attempt: who, to whom, through whom, and what the
//! far end said, without the recipient's address.

use crate::catalogue::{Attempted, Event};
use crate::line::{Format, Line};
use crate::sink::Sink;
use crate::writer::Writer;

/// Writes a line for every attempt.
#[derive(Debug)]
pub struct AttemptLog {
    writer: Writer,
}

impl AttemptLog {
    /// Writes to `writer`.
    pub fn new(writer: Writer) -> Self {
        Self { writer }
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.writer.dropped()
    }
}

impl Sink for AttemptLog {
    fn emit(&self, event: &Event<'_>) {
        if let Event::Attempted(attempt) = event {
            self.writer.line(|out| {
                let mut line = Line::begin(out, Format::Json);
                line.time("time", attempt.at);
                describe(&mut line, attempt);
                line.end();
            });
        }
    }
}

/// All that is told of an attempt.
pub(crate) fn describe(line: &mut Line<'_>, attempt: &Attempted<'_>) {
    let key = attempt.key;
    line.show("message_id", &attempt.message);
    line.text("tenant", key.tenant.as_str());
    line.text("class", key.class.as_str());
    line.optional("campaign", key.campaign.as_ref().map(|name| name.as_str()));
    line.text("channel", key.channel.as_str());
    line.text("pool", key.pool.as_str());
    line.show("destination", &key.destination);
    line.optional("account", attempt.account);
    line.number("attempt", u64::from(attempt.attempt));
    line.text("outcome", attempt.outcome.as_str());
    line.text("outcome_class", attempt.reason.as_str());
    if let Some(code) = attempt.code {
        line.number("code", u64::from(code));
    }
    if let Some(enhanced) = attempt.enhanced {
        let (class, subject, detail) = (enhanced.0, enhanced.1, enhanced.2);
        line.show("enhanced", &format_args!("{class}.{subject}.{detail}"));
    }
    line.millis("duration_ms", attempt.duration);
    line.millis("waited_ms", attempt.waited);
}
