//! The phases of a case: refused, slowed down, recovering.
//!
//! Where a runbook kept an incident, its states are the phases. Else it is
//! slowed down from the first change that made it slower, and recovering from
//! where it only went up: a trial that failed in between is no recovery.

use super::change::{Change, Effect};

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It refuses, and nobody has done anything about it yet.
    Refused,
    /// Less is sent.
    Slowed,
    /// More is sent, step by step.
    Recovering,
}

impl Kind {
    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Slowed => "slowed down",
            Self::Recovering => "recovering",
        }
    }
}

/// A phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What goes on.
    pub kind: Kind,
    /// From when on.
    pub from: i64,
    /// Until when.
    pub to: i64,
}

/// The phases from the first refusal to the end.
pub fn of(start: i64, end: i64, changes: &[Change]) -> Vec<Phase> {
    let within = |change: &&Change| change.at <= end;
    let incident = |state: &str| {
        let mut found = changes.iter().filter(within);
        let found = found.find(|change| change.incident.as_deref() == Some(state));
        found.map(|change| change.at)
    };
    let turned = |effect: Effect, after: i64| {
        let found = changes.iter().filter(within);
        found.filter(move |change| change.effect == effect && change.at >= after)
    };
    let has_incident = changes.iter().any(|change| change.incident.is_some());
    let (slowed, recovering) = match has_incident {
        true => (incident("mitigating"), incident("recovering")),
        false => {
            let slowed = turned(Effect::Slower, start).map(|change| change.at).next();
            let last = turned(Effect::Slower, start)
                .map(|change| change.at)
                .next_back();
            let up = last.and_then(|last| turned(Effect::Faster, last).next());
            (slowed, up.map(|change| change.at))
        }
    };
    let turns = [
        (Kind::Refused, Some(start)),
        (Kind::Slowed, slowed),
        (Kind::Recovering, recovering),
    ];
    let mut phases: Vec<Phase> = Vec::new();
    for (kind, from) in turns {
        let Some(from) = from.map(|from| from.clamp(start, end.max(start))) else {
            continue;
        };
        if let Some(last) = phases.last_mut() {
            last.to = from;
        }
        let to = end;
        phases.push(Phase { kind, from, to });
    }
    phases.retain(|phase| phase.to > phase.from);
    phases
}
