//! Writes what happened into the history and the audit, and says it in a line.

use std::sync::Arc;

use jiff::Timestamp;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::history::{Attempts, History, RateInForce, Refusal, SLICE_S, Slice};
use outflow_ports::registry::{Audit, Registry};
use serde_json::json;

use super::rehearsal::{CODE, POLICY, Passed, Rehearsal, SAID, Turn};
use crate::cli::plain::count;
use crate::report::figures;
use crate::serve::server::Server;

const DESTINATION: &str = "isp:google";
const LIMIT: &str = "account:demo/isp:google#learnt";
const ACCOUNT: &str = "demo";
/// What is above the lines.
pub const HEAD: &str = "UTC      sent/s  refused/s   limit  waiting  what happened";

/// Writes what happened.
pub struct Scribe {
    history: Arc<dyn History>,
    registry: Arc<dyn Registry>,
    begins: Wall,
    has_begun: bool,
    last: Nanos,
}

impl Scribe {
    /// Into the record of this server.
    pub fn new(server: &Server, begins: Wall) -> Self {
        Self {
            history: Arc::clone(&server.history),
            registry: Arc::clone(&server.registry),
            begins,
            has_begun: false,
            last: Nanos::ZERO,
        }
    }

    /// Writes it; the line that tells of it.
    pub fn write(&mut self, passed: &Passed, rehearsal: &Rehearsal) -> Result<String, String> {
        let slices: Vec<Slice> = passed
            .slices
            .iter()
            .flat_map(|(number, counted)| {
                let at = self.begins + Nanos::from_secs(number * u64::from(SLICE_S));
                let refusal = counted.refused_at.map(|at| Refusal {
                    at,
                    class: "rate".to_owned(),
                    code: Some(CODE),
                    said: SAID.to_owned(),
                });
                let whole = Slice {
                    at,
                    destination: DESTINATION.to_owned(),
                    account: None,
                    attempts: Attempts {
                        attempts: counted.attempts,
                        accepted: counted.attempts - counted.refused,
                        refused: counted.refused,
                        ..Attempts::default()
                    },
                    peak: counted.attempts,
                    refusal: refusal.clone(),
                };
                let part = refusal.map(|refusal| Slice {
                    account: Some(ACCOUNT.to_owned()),
                    attempts: Attempts {
                        refused: counted.refused,
                        ..Attempts::default()
                    },
                    peak: 0,
                    refusal: Some(refusal),
                    ..whole.clone()
                });
                std::iter::once(whole).chain(part)
            })
            .collect();
        let first = (!self.has_begun).then_some((self.begins, POLICY));
        self.has_begun = true;
        let turns = passed.turns.iter().map(|turn| (turn.at, turn.to));
        let rates: Vec<RateInForce> = first
            .into_iter()
            .chain(turns)
            .map(|(at, rate)| RateInForce {
                at,
                limit: LIMIT.to_owned(),
                destination: DESTINATION.to_owned(),
                rate: Some(rate),
            })
            .collect();
        let written = self.history.write(&slices, &rates);
        written.map_err(|error| error.to_string())?;
        for turn in &passed.turns {
            self.note(turn)?;
        }
        let line = line(passed, rehearsal, rehearsal.now().minus(self.last));
        self.last = rehearsal.now();
        Ok(line)
    }

    fn note(&self, turn: &Turn) -> Result<(), String> {
        let detail = json!({
            "from": turn.from,
            "to": turn.to,
            "mode": turn.mode.as_str(),
            "reason": turn.reason,
            "evidence": { "refused": turn.refused, "of": turn.of, "code": CODE },
        });
        let noted = self.registry.audit(Audit {
            at: turn.at,
            actor: "rule:control",
            action: action(turn),
            target: LIMIT,
            detail: &detail.to_string(),
        });
        noted.map_err(|error| error.to_string())
    }
}

fn action(turn: &Turn) -> &'static str {
    match (turn.from, turn.to) {
        (_, 0.0) => "limit.stopped",
        (0.0, _) => "limit.resumed",
        (from, to) if to < from => "limit.cut",
        _ => "limit.raised",
    }
}

fn line(passed: &Passed, rehearsal: &Rehearsal, length: Nanos) -> String {
    let all = passed.slices.values();
    let (attempts, refused) = all.fold((0, 0), |(attempts, refused), it| {
        (attempts + it.attempts, refused + it.refused)
    });
    let seconds = length.as_secs_f64().max(1.0);
    let what = match (&passed.turns[..], refused) {
        ([], 0) => String::new(),
        ([], refused) if refused * 20 < attempts => String::new(),
        ([], _) => "refused".to_owned(),
        (turns, _) => told(turns),
    };
    let at = Timestamp::from_nanosecond(i128::from(rehearsal.wall().0)).unwrap_or_default();
    format!(
        "{}  {:>6.1}  {:>9.1}  {:>6}  {:>7}  {what}",
        at.strftime("%H:%M"),
        attempts as f64 / seconds,
        refused as f64 / seconds,
        rate(rehearsal.in_force()),
        count(rehearsal.waiting()),
    )
}

fn rate(rate: f64) -> String {
    match rate {
        0.0 => "stop".to_owned(),
        rate => figures::rate(rate),
    }
}

/// `rule:control cut 40/s to 20/s, then 10/s`.
fn told(turns: &[Turn]) -> String {
    let steps = turns.iter().map(|turn| rate(turn.to));
    let first = turns.first().map_or(String::new(), |turn| rate(turn.from));
    let steps: Vec<String> = std::iter::once(first).chain(steps).collect();
    format!("rule:control: {}", steps.join(" > "))
}

/// A time as the command line reads it.
pub fn stamp(at: Wall) -> String {
    let at = Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or_default();
    format!("{at:.3}")
}
