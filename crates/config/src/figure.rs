//! Lengths of time, sizes, shares and networks as people write them: `90s`,
//! `1.5h`, `64MB`, `20%`, `10.20.0.0/16`.
//!
//! Amounts are kept as whole numbers (nanoseconds, bytes, millionths), and what
//! does not come out whole or does not fit is refused rather than rounded.

use std::net::IpAddr;

use outflow_core::time::{NANOS_PER_SECOND, Nanos};

const SPAN_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("d", 86_400 * NANOS_PER_SECOND),
];

const SPAN_WORDS: [(&str, &str); 6] = [
    ("sec", "s"),
    ("min", "m"),
    ("minute", "m"),
    ("hour", "h"),
    ("day", "d"),
    ("days", "d"),
];

const SIZE_UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

/// Millionths in a whole.
pub const WHOLE_PPM: u32 = 1_000_000;

/// Reads `10.20.0.0/16`, `fd12::/16`, or one address: an address, and how many of
/// its first bits count.
pub fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) if bits.bytes().all(|it| it.is_ascii_digit()) => bits.parse().ok()?,
        Some(_) => return None,
        None => most,
    };
    (bits <= most).then_some((address, bits))
}

/// Reads `90s`, `5m`, `1.5h`, `4d`. A bare `0` needs no unit.
pub fn span(text: &str) -> Option<Nanos> {
    let (amount, unit) = split(text);
    if unit.is_empty() && text.trim() == "0" {
        return Some(Nanos::ZERO);
    }
    let unit = SPAN_WORDS
        .iter()
        .find(|(word, _)| *word == unit)
        .map_or(unit, |(_, unit)| unit);
    let (_, factor) = SPAN_UNITS.iter().find(|(word, _)| *word == unit)?;
    times(amount, *factor).map(Nanos)
}

/// Writes a length so that [`span`] reads it back: in the largest unit that
/// keeps it whole.
pub fn span_text(length: Nanos) -> String {
    if length == Nanos::ZERO {
        return "0s".to_owned();
    }
    let whole = SPAN_UNITS.iter().rev();
    let unit = whole
        .clone()
        .find(|(_, unit)| length.0.is_multiple_of(*unit));
    let (word, unit) = unit.unwrap_or(&("ns", 1));
    format!("{}{word}", length.0 / unit)
}

/// Reads `64MB`, `1GiB`, `4096`.
pub fn size(text: &str) -> Option<u64> {
    let (amount, unit) = split(text);
    let (_, factor) = SIZE_UNITS.iter().find(|(word, _)| *word == unit)?;
    times(amount, *factor)
}

/// Writes a size so that [`size`] reads it back.
pub fn size_text(bytes: u64) -> String {
    let whole = |(_, unit): &&(&str, u64)| bytes.is_multiple_of(*unit) && bytes > 0;
    let unit = SIZE_UNITS.iter().rev().find(whole);
    let (word, unit) = unit.unwrap_or(&("B", 1));
    format!("{}{word}", bytes / unit)
}

/// Reads `20%` into millionths of the whole, of which it is at most one.
pub fn share(text: &str) -> Option<u32> {
    let (amount, unit) = split(text);
    let ppm = times(amount, 10_000).filter(|_| unit == "%")?;
    u32::try_from(ppm).ok().filter(|ppm| *ppm <= WHOLE_PPM)
}

/// A share given as a number from 0 to 1, in millionths.
pub fn share_of_number(number: f64) -> Option<u32> {
    let inside = (0.0..=1.0).contains(&number);
    inside.then(|| (number * f64::from(WHOLE_PPM)).round() as u32)
}

/// The number at the start and what comes behind it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (amount, unit) = text.split_at(end);
    (amount, unit.trim_start())
}

/// A decimal number times `factor`, if that is whole.
fn times(amount: &str, factor: u64) -> Option<u64> {
    let (whole, decimals) = amount.split_once('.').unwrap_or((amount, ""));
    if whole.is_empty() || (amount.contains('.') && decimals.is_empty()) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    if decimals.is_empty() {
        return Some(whole);
    }
    let places = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let part = u128::from(decimals.parse::<u64>().ok()?).checked_mul(u128::from(factor))?;
    let part = (part % places == 0).then_some(part / places)?;
    whole.checked_add(u64::try_from(part).ok()?)
}
