//! `outflow lanes --watch`: draws lanes each second, with the rate at which
//! each sends. A server that goes away for a while is waited for.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::lanes::{Lanes, allowed, table};
use super::plain::{count, plain};
use super::session::{Output, Session, print};
use super::when;

const EVERY: Duration = Duration::from_secs(1);
/// Limits change seldom, and there may be many: they are not read each time.
const LIMITS_EVERY: Duration = Duration::from_secs(10);

/// To the top, and away with what was below.
const HOME: &str = "\x1b[H";
const LINE_END: &str = "\x1b[K\n";
const BELOW: &str = "\x1b[J";

struct Look {
    at: Instant,
    sent: BTreeMap<String, u64>,
}

/// Draws until interrupted, or until nobody looks.
pub fn run(output: Output, session: &Session) -> Result<(), Failure> {
    let is_terminal = std::io::stdout().is_terminal();
    let mut last: Option<Look> = None;
    let mut limits: Option<(Instant, BTreeMap<String, String>)> = None;
    if is_terminal && !output.json {
        print("\x1b[2J")?;
    }
    loop {
        let began = Instant::now();
        match session.get("/lanes") {
            Ok(answer) if output.json => session.print_json(&answer)?,
            Ok(answer) => {
                let lanes: Lanes = answer.read()?;
                let is_old = |at: &Instant| at.elapsed() >= LIMITS_EVERY;
                if limits.as_ref().is_none_or(|(at, _)| is_old(at)) {
                    limits = Some((Instant::now(), allowed(&lanes, session)?));
                }
                let known = limits.as_ref().map(|(_, known)| known.clone());
                let look = look(&lanes, began);
                let rates = rates(last.as_ref(), &look);
                last = Some(look);
                let now = session.now();
                let rows = table(&lanes, &known.unwrap_or_default(), Some(&rates), now);
                let title = title(&lanes, &rates, &when::clock(now, now));
                draw(&format!("{title}\n{rows}"), is_terminal)?;
            }
            Err(failure @ Failure::Unreachable { .. }) if last.is_some() => {
                draw(&format!("{failure}\n\nWaiting for it.\n"), is_terminal)?;
            }
            Err(failure) => return Err(failure),
        }
        std::thread::sleep(EVERY.saturating_sub(began.elapsed()));
    }
}

fn draw(text: &str, is_terminal: bool) -> Result<(), Failure> {
    match is_terminal {
        false => print(&format!("{text}\n")),
        true => {
            let lines: Vec<&str> = text.lines().collect();
            print(&format!("{HOME}{}{LINE_END}{BELOW}", lines.join(LINE_END)))
        }
    }
}

fn look(lanes: &Lanes, at: Instant) -> Look {
    let sent = lanes.lanes.iter();
    Look {
        at,
        sent: sent.map(|lane| (lane.lane.clone(), lane.sent)).collect(),
    }
}

/// Messages per second of each lane that was there before.
fn rates(before: Option<&Look>, now: &Look) -> BTreeMap<String, f64> {
    let Some(before) = before else {
        return BTreeMap::new();
    };
    let seconds = now.at.duration_since(before.at).as_secs_f64().max(0.001);
    let lanes = now.sent.iter().filter_map(|(lane, sent)| {
        // Fewer than before: the server was started anew.
        let more = sent.checked_sub(*before.sent.get(lane)?)?;
        Some((lane.clone(), more as f64 / seconds))
    });
    lanes.collect()
}

fn title(lanes: &Lanes, rates: &BTreeMap<String, f64>, clock: &str) -> String {
    let waiting: u64 = lanes.lanes.iter().map(|lane| lane.waiting.total()).sum();
    let rate: f64 = rates.values().sum();
    plain(&format!(
        "{clock}  {} waiting in {} lanes, {rate:.1}/s sent",
        count(waiting),
        lanes.lanes.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_what_was_sent_since_the_last_look() {
        let start = Instant::now();
        let look = |at, sent: u64| Look {
            at,
            sent: BTreeMap::from([("default/isp:google".to_owned(), sent)]),
        };
        let before = look(start, 10);
        let later = start + Duration::from_secs(2);
        let of = |sent| rates(Some(&before), &look(later, sent));
        assert_eq!(of(14).get("default/isp:google"), Some(&2.0));
        assert_eq!(of(3).get("default/isp:google"), None, "started anew");
        assert!(rates(None, &before).is_empty());
    }
}
