//! Rates and limits as people write them, so that reading them back yields the
//! same.

use outflow_core::limit::spec::{LimitSpec, Period, Rate};
use outflow_core::time::{NANOS_PER_SECOND, Nanos};

/// A decimal number of one unit is a whole number of lengths whose only factors
/// are two and five; no two units are such a factor apart. So the unit in which
/// a rate was written can be told from its length.
const UNITS: [(&str, u64); 4] = [
    ("s", NANOS_PER_SECOND),
    ("min", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("day", 86_400 * NANOS_PER_SECOND),
];

/// More decimals than the reader takes help nobody.
const DECIMALS_MAX: u32 = 18;

/// A rate: `40/s`, `0.5/min`.
pub fn rate(rate: Rate) -> String {
    let exact = UNITS.iter().find_map(|(unit, length)| {
        let parts = rate.per.0 / length;
        let is_this = rate.per.0.is_multiple_of(*length) && is_decimal(parts);
        let amount = is_this.then(|| decimal(rate.count, parts))??;
        Some(format!("{amount}/{unit}"))
    });
    exact.or_else(|| short(rate)).unwrap_or_else(|| {
        let per_second = f64::from(rate.count) / Nanos(rate.per.0.max(1)).as_secs_f64();
        format!("{per_second:.9}/s")
    })
}

/// No more decimals are worth reading.
const SHORT_DECIMALS_MAX: u32 = 6;

/// The same rate by a unit in which it has few decimals, if there is one: a rate
/// that was worked out (1 in 125 ms) as people write it (8 in a second).
fn short(rate: Rate) -> Option<String> {
    let per = u128::from(rate.per.0.max(1));
    UNITS.iter().find_map(|(unit, length)| {
        let amount = u128::from(rate.count) * u128::from(*length);
        let places = (0..=SHORT_DECIMALS_MAX).find(|places| {
            let scaled = amount * 10_u128.pow(*places);
            scaled.is_multiple_of(per)
        })?;
        let scale = 10_u128.pow(places);
        let scaled = amount * scale / per;
        let (whole, rest) = (scaled / scale, scaled % scale);
        Some(match places {
            0 => format!("{whole}/{unit}"),
            places => format!("{whole}.{rest:0width$}/{unit}", width = places as usize),
        })
    })
}

/// A share of the account's rate: `10%`, `2.5%`.
pub fn share(permille: u16) -> String {
    match permille % 10 {
        0 => format!("{}%", permille / 10),
        tenths => format!("{}.{tenths}%", permille / 10),
    }
}

/// An entry of a list of limits.
pub fn limit(limit: &LimitSpec) -> String {
    match limit {
        LimitSpec::TokenBucket { rate: of, burst } => {
            let is_usual = of.per == Nanos(NANOS_PER_SECOND) && *burst == of.default_burst();
            match is_usual {
                true => rate(*of),
                false => format!("{} burst {burst}", rate(*of)),
            }
        }
        LimitSpec::LeakyBucket { rate: of } => format!("{} spaced", rate(*of)),
        LimitSpec::SlidingWindow { count, window } => rate(Rate {
            count: *count,
            per: *window,
        }),
        LimitSpec::CalendarWindow {
            count,
            period,
            zone,
        } => {
            let unit = match period {
                Period::Minute => "min",
                Period::Hour => "h",
                Period::Day => "day",
            };
            format!("{count}/{unit}@{}", zone.name)
        }
        LimitSpec::Concurrency { slots } => format!("{slots} concurrent"),
    }
}

/// Whether a number has no factors but two and five.
fn is_decimal(mut number: u64) -> bool {
    for factor in [2, 5] {
        while number > 0 && number.is_multiple_of(factor) {
            number /= factor;
        }
    }
    number == 1
}

/// `count / parts` as a decimal number, if it ends.
fn decimal(count: u32, parts: u64) -> Option<String> {
    let (count, parts) = (u128::from(count), u128::from(parts));
    let whole = count / parts;
    let rest = count % parts;
    if rest == 0 {
        return Some(whole.to_string());
    }
    let (places, digits) = (1..=DECIMALS_MAX).find_map(|places| {
        let scaled = rest * 10_u128.pow(places);
        scaled
            .is_multiple_of(parts)
            .then(|| (places, scaled / parts))
    })?;
    Some(format!(
        "{whole}.{digits:0places$}",
        places = places as usize
    ))
}
