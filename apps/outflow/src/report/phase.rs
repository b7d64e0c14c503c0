//! The phases of a case: refused, slowed down, recovering.
//!
//! Where a runbook did something about an incident, its states are the phases.
//! Else it is slowed down from the first change that made it slower, and
//! recovering from where it only went up: a trial that failed in between is no
//! recovery.

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
    let within = || changes.iter().filter(|change| change.at <= end);
    let in_state = |state: &'static str| {
        within().filter(move |change| change.incident.as_deref() == Some(state))
    };
    let turned = |effect: Effect| {
        within().filter(move |change| change.effect == effect && change.at >= start)
    };
    let is_kept = in_state("mitigating").next().is_some();
    let (slower, faster): (Vec<&Change>, Vec<&Change>) = match is_kept {
        true => (
            in_state("mitigating").collect(),
            in_state("recovering").collect(),
        ),
        false => (
            turned(Effect::Slower).collect(),
            turned(Effect::Faster).collect(),
        ),
    };
    let slowed = slower.first().map(|change| change.at);
    let recovering = slower.last().and_then(|last| {
        let mut after = faster.iter().filter(|change| change.at >= last.at);
        after.next().map(|change| change.at)
    });
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
