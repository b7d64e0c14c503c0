//! Numbers and times as people read them.

use jiff::Timestamp;

use super::material::SECOND;
use crate::cli::when;

/// `40/s`, `12.5/s`, `30/min`, `0`.
pub fn rate(per_second: f64) -> String {
    let short = |number: f64| match number {
        large if large >= 100.0 => format!("{large:.0}"),
        number => {
            let text = format!("{number:.1}");
            text.strip_suffix(".0").unwrap_or(&text).to_owned()
        }
    };
    match per_second {
        0.0 => "0".to_owned(),
        slow if slow < 1.0 => format!("{}/min", short(slow * 60.0)),
        fast => format!("{}/s", short(fast)),
    }
}

/// `46 %`, `0.4 %`, `less than 0.1 %`.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".to_owned();
    }
    match 100.0 * part as f64 / whole as f64 {
        tiny if tiny < 0.1 => "less than 0.1 %".to_owned(),
        small if small < 10.0 => format!("{small:.1} %"),
        large => format!("{large:.0} %"),
    }
}

/// `8 s`, `12 min`, `1 h 52 min`.
pub fn length(millis: i64) -> String {
    let seconds = (millis.max(0) + SECOND / 2) / SECOND;
    when::length(seconds.unsigned_abs())
}

/// `14:03:12Z`, with the date unless it is that of `now`.
pub fn clock(at: i64, now: i64) -> String {
    when::clock(stamp(at), stamp(now))
}

/// `2026-01-31 14:03Z`.
pub fn minute(at: i64) -> String {
    stamp(at).strftime("%Y-%m-%d %H:%MZ").to_string()
}

/// `14:03`, `14:03:10`, or a day.
pub fn tick(at: i64, step: i64) -> String {
    let format = match step {
        days if days >= 86_400 * SECOND => "%m-%d",
        minutes if minutes >= 60 * SECOND => "%H:%M",
        _ => "%H:%M:%S",
    };
    stamp(at).strftime(format).to_string()
}

fn stamp(at: i64) -> Timestamp {
    Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH)
}
