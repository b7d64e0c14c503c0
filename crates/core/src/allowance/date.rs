//! Dates as HTTP writes them (RFC 9110, 5.6.7): the one form in use, and the two
//! that are obsolete and must be read all the same.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

use crate::time::Wall;

const OBSOLETE: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
/// No date is longer.
const BYTES_MAX: usize = 64;

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn read(text: &str) -> Option<Wall> {
    let text = text.trim();
    if text.len() > BYTES_MAX {
        return None;
    }
    let usual = DateTimeParser::new()
        .relaxed_weekday(true)
        .parse_timestamp(text)
        .ok();
    let found = usual.or_else(|| OBSOLETE.into_iter().find_map(|form| obsolete(form, text)))?;
    i64::try_from(found.as_nanosecond()).ok().map(Wall)
}

fn obsolete(form: &str, text: &str) -> Option<Timestamp> {
    let parsed = strtime::parse(form, text).ok()?;
    let civil = parsed.to_datetime().ok()?;
    TimeZone::UTC.to_timestamp(civil).ok()
}
