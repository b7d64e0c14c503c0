//! How fast dead letters re-enter: `10/s`, `600/min`, or a bare number for so
//! many a second.

/// Messages per second.
pub fn read(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text:?} is no pace: write 10/s, 600/min or 500/hour");
    let (amount, unit) = text.trim().split_once('/').unwrap_or((text.trim(), "s"));
    let seconds = match unit.trim() {
        "s" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hour" => 3_600.0,
        "d" | "day" => 86_400.0,
        _ => return Err(wrong()),
    };
    let amount: f64 = amount.trim().parse().map_err(|_| wrong())?;
    match amount.is_finite() && amount > 0.0 {
        true => Ok(amount / seconds),
        false => Err(wrong()),
    }
}

/// As people read it.
pub fn text(per_second: f64) -> String {
    match per_second {
        slow if slow < 1.0 => format!("{}/min", rounded(slow * 60.0)),
        fast => format!("{}/s", rounded(fast)),
    }
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
