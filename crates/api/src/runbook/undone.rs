//! What is to be done about an incident and is not done yet.

use outflow_core::runbook::{Due, Step};
use outflow_core::time::Wall;

/// How an incident is to be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unsaved {
    /// As it is: only its evidence is new.
    Quiet,
    /// With a line in the audit: something is done.
    Audited,
}

/// What is to be done about an incident, first of all to write it down.
#[derive(Debug)]
pub(super) struct Undone {
    pub due: Due,
    /// None if it is written down already.
    pub unsaved: Option<Unsaved>,
}

/// Of steps of the same kind only the last counts.
#[derive(PartialEq, Eq)]
enum Kind {
    Rate,
    Classes,
    Way,
    Other,
}

const fn kind(step: Step) -> Kind {
    match step {
        Step::Slow { .. } | Step::Lift => Kind::Rate,
        Step::Pause | Step::Resume => Kind::Classes,
        Step::Detour | Step::Return => Kind::Way,
        Step::Open | Step::Note | Step::Canary | Step::Close => Kind::Other,
    }
}

impl Undone {
    /// All of it.
    pub(super) fn new(due: Due, now: Wall) -> Self {
        let is_said = |step: &Step| matches!(step, Step::Open | Step::Close | Step::Canary);
        let lines = &due.incident.lines;
        let is_new = lines.last().is_some_and(|line| line.at == now);
        let unsaved = match is_new || due.steps.iter().any(is_said) {
            true => Unsaved::Audited,
            false => Unsaved::Quiet,
        };
        Self {
            due,
            unsaved: Some(unsaved),
        }
    }

    /// All but to write it down.
    pub(super) const fn saved(due: Due) -> Self {
        Self { due, unsaved: None }
    }

    /// This and what came later.
    pub(super) fn then(mut self, later: Self) -> Self {
        for step in later.due.steps {
            let own = kind(step);
            let steps = &mut self.due.steps;
            steps.retain(|before| own == Kind::Other || kind(*before) != own);
            steps.push(step);
        }
        Self {
            due: Due {
                incident: later.due.incident,
                steps: self.due.steps,
            },
            // What is written down of the later one has the earlier in it.
            unsaved: self
                .unsaved
                .max(later.unsaved)
                .filter(|_| later.unsaved.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_later_takes_the_place_of_what_was_not_done() {
        let incident: outflow_core::runbook::Incident = serde_json::from_value(serde_json::json!({
            "id": 1, "destination": "isp:google", "state": "open", "opened_at": 0,
            "evidence": [], "measures": { "slowed": false, "paused": false, "detoured": false },
            "rate_permille": 500, "cuts": 1, "changed_at": 0, "lines": [],
        }))
        .unwrap();
        let undone = |steps: &[Step]| {
            let incident = incident.clone();
            let steps = steps.to_vec();
            Undone::new(Due { incident, steps }, Wall(1))
        };
        let slow = |permille| Step::Slow {
            permille,
            until: Wall(9),
        };
        let first = undone(&[Step::Open, Step::Pause, slow(500)]);
        let then = first.then(undone(&[Step::Note, slow(250)]));
        assert_eq!(then.unsaved, Some(Unsaved::Audited));
        assert_eq!(
            then.due.steps,
            [Step::Open, Step::Pause, Step::Note, slow(250)]
        );
        let then = then.then(undone(&[Step::Resume, Step::Lift, Step::Close]));
        assert_eq!(
            then.due.steps,
            [
                Step::Open,
                Step::Note,
                Step::Resume,
                Step::Lift,
                Step::Close
            ]
        );
    }
}
