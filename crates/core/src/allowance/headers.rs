//! What an HTTP answer says of limits in its headers.
//!
//! Three families: `Retry-After`; `RateLimit` and `RateLimit-Policy` as the IETF
//! drafts have them, the present one and those before; `X-RateLimit-...`, which
//! nobody ever specified. What cannot be read is not there: a far end that
//! writes nonsense is found out like one that says nothing.

use super::{Allowance, Left, date};
use crate::time::{NANOS_PER_SECOND, Nanos, Wall};

/// No more headers than this are looked at, ...
const HEADERS_MAX: usize = 200;
/// ... no more of each, ...
const BYTES_MAX: usize = 1_024;
/// ... and no more items in it.
const ITEMS_MAX: usize = 16;
/// Nobody waits longer without asking again.
const WAIT_MAX: Nanos = Nanos::from_secs(7 * 86_400);
/// A reset of more seconds than this is a time and no wait, ...
const UNIX_LEAST: u64 = 1_000_000_000;
/// ... and of more than this, a time in milliseconds.
const UNIX_MS_LEAST: u64 = 1_000_000_000_000;

/// What the headers of one answer say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// How long to wait (`Retry-After`).
    pub retry_after: Option<Nanos>,
    /// What is allowed.
    pub allows: Option<Box<Allowance>>,
}

/// Reads the headers of an answer that came at `now`, as names and values.
pub fn heard<'a>(now: Wall, headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Heard {
    let mut retry_after = None;
    let mut allows = Allowance::default();
    let mut standard = Counted::default();
    let mut customary = Counted::default();
    for (name, value) in headers.into_iter().take(HEADERS_MAX) {
        if value.len() > BYTES_MAX {
            continue;
        }
        let name = name.trim();
        if name.eq_ignore_ascii_case("retry-after") {
            retry_after = wait(now, value).or(retry_after);
        } else if name.eq_ignore_ascii_case("ratelimit-policy") {
            note_policies(&mut allows, value);
        } else if name.eq_ignore_ascii_case("ratelimit") {
            note_state(&mut allows, &mut standard, value);
        } else if let Some(part) = part_of(name, &["ratelimit-"]) {
            note_part(now, &mut allows, &mut standard, part, value);
        } else if let Some(part) = part_of(name, &["x-ratelimit-", "x-rate-limit-"]) {
            note_part(now, &mut allows, &mut customary, part, value);
        }
    }
    for left in [standard.left(), customary.left()].into_iter().flatten() {
        allows.note_left(left);
    }
    Heard {
        retry_after,
        allows: (!allows.is_empty()).then(|| Box::new(allows)),
    }
}

/// A count and its end, each in a header of its own.
#[derive(Default)]
struct Counted {
    remaining: Option<u64>,
    reset: Option<Nanos>,
}

impl Counted {
    fn left(&self) -> Option<Left> {
        Some(Left {
            count: self.remaining?,
            resets_in: self.reset?,
        })
    }
}

/// The rest of a header's name behind one of these.
fn part_of<'a>(name: &'a str, prefixes: &[&str]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| {
        let (front, part) = name.split_at_checked(prefix.len())?;
        front.eq_ignore_ascii_case(prefix).then_some(part)
    })
}

/// `-Limit`, `-Remaining` or `-Reset`, of whichever family.
fn note_part(now: Wall, allows: &mut Allowance, counted: &mut Counted, part: &str, value: &str) {
    if part.eq_ignore_ascii_case("limit") {
        note_policies(allows, value);
    } else if part.eq_ignore_ascii_case("remaining") {
        counted.remaining = whole(value);
    } else if part.eq_ignore_ascii_case("reset") {
        counted.reset = reset(now, value);
    }
}

/// `"burst";q=100;w=10, "day";q=5000;w=86400`, and as it was before:
/// `100;w=10, 5000;w=86400`. A number without a window says nothing of the rate.
fn note_policies(allows: &mut Allowance, value: &str) {
    for item in items(value) {
        let count = param(item, "q").or_else(|| bare(item));
        let window = param(item, "w");
        let is_of_requests = param(item, "qu").is_none_or(|unit| unit == "requests");
        if let (Some(count), Some(window), true) = (
            count.and_then(whole),
            window.and_then(seconds),
            is_of_requests,
        ) {
            allows.note_policy(count, window);
        }
    }
}

/// `"burst";r=50;t=3`, and as it was before: `limit=100, remaining=50, reset=3`.
fn note_state(allows: &mut Allowance, counted: &mut Counted, value: &str) {
    for item in items(value) {
        let left = param(item, "r").and_then(whole);
        let resets_in = param(item, "t").and_then(seconds);
        if let (Some(count), Some(resets_in)) = (left, resets_in) {
            allows.note_left(Left { count, resets_in });
        }
        match item.split_once('=') {
            Some(("remaining", count)) => counted.remaining = whole(count),
            Some(("reset", time)) => counted.reset = seconds(time),
            _ => {}
        }
    }
}

/// The items of a list.
fn items(value: &str) -> impl Iterator<Item = &str> {
    split_unquoted(value, ',').map(str::trim).take(ITEMS_MAX)
}

/// What an item is, before its parameters.
fn bare(item: &str) -> Option<&str> {
    split_unquoted(item, ';').next().map(str::trim)
}

/// A parameter of an item, without its quotes.
fn param<'a>(item: &'a str, name: &str) -> Option<&'a str> {
    let params = split_unquoted(item, ';').skip(1);
    let mut pairs = params.filter_map(|param| param.split_once('='));
    let found = pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().trim_matches('"'))
}

/// Splits a text, but not within quotes.
fn split_unquoted(text: &str, at: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c: char| {
        is_quoted ^= c == '"';
        c == at && !is_quoted
    })
}

/// How long to wait: seconds, or a date.
fn wait(now: Wall, value: &str) -> Option<Nanos> {
    let wait = seconds(value).or_else(|| date::read(value).map(|until| until.since(now)));
    wait.map(|wait| wait.min(WAIT_MAX))
}

/// When a count starts anew: in so many seconds, or at a time.
fn reset(now: Wall, value: &str) -> Option<Nanos> {
    let at = |nanos: u64| Wall(i64::try_from(nanos).unwrap_or(i64::MAX)).since(now);
    match whole(value) {
        Some(time) if time >= UNIX_MS_LEAST => Some(at(time.saturating_mul(1_000_000))),
        Some(time) if time >= UNIX_LEAST => Some(at(time.saturating_mul(NANOS_PER_SECOND))),
        _ => wait(now, value),
    }
}

fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Seconds, with a fraction where somebody writes one.
fn seconds(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let (text, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let nanos = whole(text)?.saturating_mul(NANOS_PER_SECOND);
    let millis: String = fraction.chars().chain("00".chars()).take(3).collect();
    let rest = whole(fraction).and(whole(&millis))?;
    Some(Nanos(nanos.saturating_add(rest * 1_000_000)))
}
