//! Bounces of programs that know no better form: a few words, and the message.
//!
//! Only what says so clearly is taken for a bounce: a mail of a mail system with
//! an address and a code that belong together. Everything else is somebody's
//! answer, and an answer taken for a bounce would cost a recipient his place on
//! the list.

use outflow_core::reply::Enhanced;

use crate::dsn;
use crate::feedback::{Feedback, Kind};
use crate::fields::{Fields, flat, text};
use crate::original::{Original, addresses};

/// No more lines of the text are looked at.
const LINES_MAX: usize = 400;
/// No line is looked at beyond this.
const LINE_BYTES_MAX: usize = 1_000;
/// No more recipients count.
const RECIPIENTS_MAX: usize = 20;

/// What mail systems call themselves in `From`.
const SENDERS: [&str; 4] = [
    "mailer-daemon",
    "postmaster",
    "mail delivery",
    "mailerdaemon",
];
/// What their subjects contain.
const SUBJECTS: [&str; 10] = [
    "undeliver",
    "delivery status notification",
    "delivery failure",
    "delivery has failed",
    "mail delivery failed",
    "returned mail",
    "failure notice",
    "delayed",
    "delivery problem",
    "message not delivered",
];
/// Words that say that it is still being tried.
const STILL_TRYING: [&str; 4] = ["delayed", "will keep trying", "will be retried", "warning:"];
/// Where the message that came back begins.
const COPIES: [&str; 4] = [
    "--- below this line is a copy of the message",
    "----- original message",
    "------ this is a copy of",
    "---- the message was",
];

/// Whether a mail with this header was written by a program that answers, not
/// by one that could not deliver.
pub(crate) fn is_auto_reply(header: &Fields) -> bool {
    let submitted = header.get("Auto-Submitted").unwrap_or_default();
    let is_answer = submitted.to_ascii_lowercase().starts_with("auto-replied");
    let is_older = header.has("X-Autoreply") || header.has("X-Autorespond");
    let is_bounce = is_named_like_one(header) || header.has("X-Failed-Recipients");
    (is_answer || is_older) && !is_bounce
}

/// Whether `From` is a mail system.
fn is_named_like_one(header: &Fields) -> bool {
    let from = header.get("From").unwrap_or_default().to_ascii_lowercase();
    SENDERS.iter().any(|sender| from.contains(sender))
}

/// Whether nobody is to answer, as is the way of mail systems.
fn has_no_sender(header: &Fields) -> bool {
    header.lines("Return-Path").map(flat).as_deref() == Some("<>")
}

/// What a bounce in words says, one for each recipient that it names.
pub(crate) fn read(
    header: &Fields,
    body: &[u8],
    attached: &Original,
    most: usize,
) -> Vec<Feedback> {
    let subject = header.get("Subject").unwrap_or_default();
    let subject = subject.to_ascii_lowercase();
    let named = header.lines("X-Failed-Recipients");
    let says_so = SUBJECTS.iter().any(|words| subject.contains(words));
    let is_system = is_named_like_one(header) || has_no_sender(header);
    if !(named.is_some() || (says_so && is_system)) {
        return Vec::new();
    }
    let body = text(body);
    let (words, copy) = halves(&body);
    let said = said(&words);
    if named.is_none() && said.is_none() {
        return Vec::new();
    }
    let status = said.as_ref().and_then(|(_, status)| *status);
    let is_trying = STILL_TRYING.iter().any(|words| subject.contains(words));
    let kind = match is_trying && !matches!(status, Some(Enhanced(5, ..))) {
        true => Kind::Delay,
        false => Kind::Bounce,
    };
    let recipients = match named {
        Some(named) => addresses([named].into_iter()),
        None => bracketed(&words),
    };
    let copy = Original::of(copy.as_bytes());
    let original = if attached.is_empty() { &copy } else { attached };
    let of = |recipient: String| {
        let mut feedback = Feedback {
            recipient: Some(recipient),
            status,
            diagnostic: said.as_ref().map(|(text, _)| text.clone()),
            ..Feedback::new(kind)
        };
        original.describe(&mut feedback);
        feedback
    };
    recipients
        .into_iter()
        .take(most.min(RECIPIENTS_MAX))
        .map(of)
        .collect()
}

/// The lines that the program wrote, and the message that follows them.
fn halves(body: &str) -> (Vec<&str>, &str) {
    let mut words = Vec::new();
    let mut at = 0;
    for line in body.split_inclusive('\n').take(LINES_MAX) {
        at += line.len();
        let end = line.floor_char_boundary(LINE_BYTES_MAX);
        let line = line.get(..end).unwrap_or_default().trim_end();
        let small = line.to_ascii_lowercase();
        if COPIES.iter().any(|mark| small.starts_with(mark)) {
            return (words, body.get(at..).unwrap_or_default());
        }
        words.push(line);
    }
    (words, "")
}

/// The addresses that begin a line, in brackets: `<user@example.com>:`.
fn bracketed(words: &[&str]) -> Vec<String> {
    let begins = |line: &&str| line.trim_start().starts_with('<');
    let lines = words.iter().copied().filter(begins);
    addresses(lines.filter_map(|line| line.split('>').next()))
}

/// The first line with a code, from the code on: `550 5.1.1 Unknown`, or an
/// enhanced code alone: `#5.1.1`.
fn said(words: &[&str]) -> Option<(String, Option<Enhanced>)> {
    let code = words.iter().find_map(|line| Some((*line, coded(line)?)));
    if let Some((_, at)) = code {
        let status = at.split([' ', '-']).nth(1).and_then(dsn::status);
        return Some((flat(at), status));
    }
    words.iter().find_map(|line| {
        let (_, after) = line.split_once('#')?;
        let status = dsn::status(after)?;
        Some((flat(line), Some(status)))
    })
}

/// The line from its reply code on.
fn coded(line: &str) -> Option<&str> {
    let is_code = |at: usize| {
        let before = line.get(..at)?.chars().next_back();
        let rest = line.get(at..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let after = rest.get(3..)?;
        let is_word = before.is_none_or(|it| !it.is_ascii_alphanumeric() && it != '.' && it != '-');
        (is_word && digits == 3 && after.starts_with([' ', '-'])).then_some(rest)
    };
    line.match_indices(['4', '5'])
        .find_map(|(at, _)| is_code(at))
}
