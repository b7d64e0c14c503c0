//! `CL.THROTTLE key max_burst count period [quantity]`, with the errors of
//! redis-cell.

use outflow_core::limit::spec::Rate;
use outflow_core::throttle::cell::{Answer, Cell};
use outflow_core::throttle::request::KEY_BYTES_MAX;
use outflow_core::time::Nanos;
use outflow_ports::throttle::{Acquired, CellReply, ThrottleError, Throttling};

use crate::reply::Out;

const USAGE: &str = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> \
     <count per period> <period> [<quantity>]";
/// The longest period, in seconds: some thirty years.
const PERIOD_MAX: i64 = 1_000_000_000;

fn number(word: &[u8]) -> Result<i64, String> {
    let text = String::from_utf8_lossy(word);
    let parsed = text.parse();
    parsed.map_err(|_| format!("Cell error: Store error: Couldn't parse as integer: {text}"))
}

fn within(name: &str, number: i64, from: i64, to: i64) -> Result<u32, String> {
    let fits = (from..=to).contains(&number);
    let small = u32::try_from(number).ok().filter(|_| fits);
    small.ok_or_else(|| {
        format!("Cell error: Store error: {name} must be from {from} to {to}, not {number}")
    })
}

/// Reads the words behind the command. `space` is whose key it is.
pub fn read<'a>(words: &[&'a [u8]], space: &'a str) -> Result<Cell<'a>, String> {
    let (key, burst, count, period, quantity) = match *words {
        [key, burst, count, period] => (key, burst, count, period, None),
        [key, burst, count, period, quantity] => (key, burst, count, period, Some(quantity)),
        _ => return Err(USAGE.to_owned()),
    };
    let name = std::str::from_utf8(key).unwrap_or_default();
    if name.is_empty() || name.len() > KEY_BYTES_MAX {
        return Err("Cell error: Store error: a key is UTF-8 text of 1 to 256 bytes".to_owned());
    }
    let most = i64::from(u32::MAX);
    let burst = within("max_burst", number(burst)?, 0, most - 1)?;
    let count = within("count", number(count)?, 1, most)?;
    let period = within("period", number(period)?, 1, PERIOD_MAX)?;
    let quantity = match quantity {
        Some(quantity) => within("quantity", number(quantity)?, 0, most)?,
        None => 1,
    };
    Ok(Cell {
        space,
        name,
        burst: burst + 1,
        rate: Rate {
            count,
            per: Nanos::from_secs(u64::from(period)),
        },
        quantity,
    })
}

/// Writes the answer that a call waited for: whether it was granted is known, the
/// rest is looked at.
pub fn answered(
    answer: &Result<Acquired, ThrottleError>,
    look: &Cell<'_>,
    throttle: &dyn Throttling,
    out: &mut Out<'_>,
) {
    let acquired = match answer {
        Ok(acquired) => acquired,
        Err(error) => return write(&Err(error.clone()), out),
    };
    // To look never takes time.
    let CellReply::Now(Ok(looked)) = throttle.cell(look, &mut || Box::new(|_| ())) else {
        return write(&Err(ThrottleError::Crowded), out);
    };
    write(&Ok(acquired.as_cell(looked)), out);
}

/// Writes what redis-cell would.
pub fn write(answer: &Result<Answer, ThrottleError>, out: &mut Out<'_>) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return out.error(&format!("Cell error: Store error: {error}")),
    };
    out.array(5);
    out.integer(i64::from(answer.limited));
    out.integer(i64::from(answer.limit));
    out.integer(i64::try_from(answer.remaining).unwrap_or(i64::MAX));
    out.integer(answer.retry_after);
    out.integer(answer.reset_after);
}
