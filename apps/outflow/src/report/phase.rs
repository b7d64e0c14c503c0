//! The phases of a case: refused, slowed down, recovering.
//!
//! Where a runbook kept an incident, its states are the phases; else they
//! follow from the changes.

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
    let mut turns = vec![(Kind::Refused, start)];
    if changes.iter().any(|change| change.incident.is_some()) {
        for change in changes {
            let kind = match change.incident.as_deref() {
                Some("mitigating") => Kind::Slowed,
                Some("recovering") => Kind::Recovering,
                _ => continue,
            };
            turns.push((kind, change.at));
        }
    } else {
        for change in changes.iter().filter(|change| change.at >= start) {
            match change.effect {
                Effect::Slower => turns.push((Kind::Slowed, change.at)),
                Effect::Faster => turns.push((Kind::Recovering, change.at)),
                Effect::Other => {}
            }
        }
    }
    let mut phases: Vec<Phase> = Vec::new();
    for (kind, from) in turns {
        let from = from.clamp(start, end.max(start));
        match phases.last_mut() {
            Some(last) if last.kind == kind => {}
            last => {
                if let Some(last) = last {
                    last.to = from;
                }
                let to = end;
                phases.push(Phase { kind, from, to });
            }
        }
    }
    phases.retain(|phase| phase.to > phase.from);
    phases
}
