//! Times, both as they stand on a clock and as seen from now.
//!
//! All clocks are UTC, as in the server's answers and logs, and say so (`Z`).

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use outflow_config::figure;

/// `12:00:41Z`, with the date if that is not today.
pub fn clock(at: Timestamp, now: Timestamp) -> String {
    let day = |at: Timestamp| at.to_zoned(TimeZone::UTC).date();
    let format = match day(at) == day(now) {
        true => "%H:%M:%SZ",
        false => "%Y-%m-%d %H:%M:%SZ",
    };
    at.strftime(format).to_string()
}

/// `in 41 s`, `41 s ago`, `now`.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let apart = at.duration_since(now);
    let seconds = apart.abs().as_secs().unsigned_abs();
    match (seconds, apart.is_negative()) {
        (0, _) => "now".to_owned(),
        (_, true) => format!("{} ago", length(seconds)),
        (_, false) => format!("in {}", length(seconds)),
    }
}

/// `12:00:41Z (in 41 s)`. What is not a time is shown as it is.
pub fn both(text: &str, now: Timestamp) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => format!("{} ({})", clock(at, now), relative(at, now)),
        Err(_) => text.to_owned(),
    }
}

/// Only `in 41 s`.
pub fn seen(text: &str, now: Timestamp) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => relative(at, now),
        Err(_) => text.to_owned(),
    }
}

/// Only `12:00:41Z`.
pub fn at(text: &str, now: Timestamp) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => clock(at, now),
        Err(_) => text.to_owned(),
    }
}

/// A length of time in at most two units.
pub fn length(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    let two = |big: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{big} {unit}"),
        _ => format!("{big} {unit} {small} {small_unit}"),
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, minutes) => two(minutes, "min", rest, "s"),
        (0, hours, minutes) => two(hours, "h", minutes, "min"),
        (days, hours, _) => two(days, "d", hours, "h"),
    }
}

/// In which direction a bare length points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `--since 2h`: two hours ago.
    Back,
    /// `--until 2h`: in two hours.
    Ahead,
}

/// Reads `2h`, `2026-01-31` or `2026-01-31T12:00:00Z`; RFC 3339.
pub fn read(text: &str, now: Timestamp, direction: Direction) -> Result<String, String> {
    let at = match (text.parse::<Timestamp>(), text.parse::<Date>()) {
        (Ok(at), _) => Some(at),
        (_, Ok(day)) if text.len() <= 10 => {
            let midnight = day.to_zoned(TimeZone::UTC);
            midnight.ok().map(|midnight| midnight.timestamp())
        }
        _ => figure::span(text).and_then(|span| {
            let span = SignedDuration::from_nanos(i64::try_from(span.0).ok()?);
            match direction {
                Direction::Back => now.checked_sub(span).ok(),
                Direction::Ahead => now.checked_add(span).ok(),
            }
        }),
    };
    let at = at.ok_or_else(|| {
        format!("{text:?} is no time: write 90s, 2h or 3d, or 2026-01-31T12:00:00Z")
    })?;
    Ok(format!("{at:.3}"))
}
