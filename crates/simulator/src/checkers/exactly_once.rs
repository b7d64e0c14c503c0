//! Every accepted message ends exactly once.
//!
//! It is settled once, in a final state, and what is settled as delivered was
//! taken by the far end. It is taken once; a second time is excused only by an
//! attempt that was on its way when its node died, or whose answer was lost.
//! Excused duplicates are counted, not blamed.

use std::collections::BTreeSet;

use outflow_core::message::State;
use outflow_core::time::Nanos;

use super::Findings;
use crate::trace::{Answered, Checker, MessageNo, NodeNo, Observer, Trace, Violation};

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    accepted: bool,
    settled: bool,
    taken: u16,
    excuses: u16,
    node: NodeNo,
}

/// See the module.
#[derive(Debug)]
pub struct ExactlyOnce {
    lives: Vec<Life>,
    under_way: BTreeSet<(NodeNo, MessageNo)>,
    duplicates: u64,
    findings: Findings,
}

impl Default for ExactlyOnce {
    fn default() -> Self {
        Self {
            lives: Vec::new(),
            under_way: BTreeSet::new(),
            duplicates: 0,
            findings: Findings::of("exactly_once"),
        }
    }
}

impl ExactlyOnce {
    /// How many duplicates were excused.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    fn life(&mut self, message: MessageNo) -> &mut Life {
        let index = message as usize;
        if self.lives.len() <= index {
            self.lives.resize(index + 1, Life::default());
        }
        self.lives
            .get_mut(index)
            .expect("it was just made to reach so far")
    }

    fn sent(&mut self, at: Nanos, node: NodeNo, message: MessageNo) {
        let life = *self.life(message);
        if !life.accepted {
            self.findings.add(at, || {
                format!("message {message} was sent but never accepted")
            });
        }
        if life.settled {
            self.findings.add(at, || {
                format!("message {message} was sent after it was settled")
            });
        }
        self.life(message).node = node;
        self.under_way.insert((node, message));
    }

    fn taken(&mut self, at: Nanos, message: MessageNo) {
        let life = self.life(message);
        life.taken = life.taken.saturating_add(1);
        let life = *life;
        if life.taken <= 1 {
            return;
        }
        if life.taken > life.excuses.saturating_add(1) {
            let times = life.taken;
            self.findings.add(at, || {
                format!("message {message} was delivered {times} times without excuse")
            });
        } else {
            self.duplicates += 1;
        }
    }

    fn excuse(&mut self, message: MessageNo) {
        let life = self.life(message);
        life.excuses = life.excuses.saturating_add(1);
    }

    fn settled(&mut self, at: Nanos, message: MessageNo, state: State) {
        let life = self.life(message);
        let before = *life;
        life.settled = true;
        let mut blame = |what: &str| {
            self.findings
                .add(at, || format!("message {message} {what}"));
        };
        if !before.accepted {
            blame("was settled but never accepted");
        }
        if before.settled {
            blame("was settled twice");
        }
        if !state.is_final() {
            blame("was settled in a state that is not final");
        }
        if state == State::Delivered && before.taken == 0 {
            blame("is settled as delivered, but nobody took it");
        }
        if state != State::Delivered && before.taken > 0 && before.excuses == 0 {
            blame("was taken, but is not settled as delivered");
        }
        self.under_way.remove(&(before.node, message));
    }
}

impl Observer for ExactlyOnce {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Accepted { message, .. } => {
                let life = self.life(message);
                let twice = life.accepted;
                life.accepted = true;
                if twice {
                    self.findings
                        .add(at, || format!("message {message} was accepted twice"));
                }
            }
            Trace::Dispatched { node, message, .. } => self.sent(at, node, message),
            Trace::Taken { message, .. } => self.taken(at, message),
            Trace::Replied {
                message,
                answer: Answered::Uncertain,
                ..
            } => self.excuse(message),
            Trace::Deferred { message, .. } => {
                let node = self.life(message).node;
                self.under_way.remove(&(node, message));
            }
            Trace::Settled { message, state } => self.settled(at, message, state),
            Trace::Crashed { node } => {
                let all = (node, 0)..=(node, MessageNo::MAX);
                let lost: Vec<_> = self.under_way.range(all).copied().collect();
                for (node, message) in lost {
                    self.under_way.remove(&(node, message));
                    self.excuse(message);
                }
            }
            _ => {}
        }
    }
}

impl Checker for ExactlyOnce {
    fn name(&self) -> &'static str {
        "exactly_once"
    }

    fn finish(&mut self, at: Nanos, drained: bool) -> Vec<Violation> {
        if drained {
            let lives = std::mem::take(&mut self.lives);
            for (message, life) in lives.iter().enumerate() {
                if life.accepted && !life.settled {
                    self.findings
                        .add(at, || format!("message {message} was never settled"));
                }
            }
        }
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{accepted, found, ms, sent, settled, taken};
    use super::*;

    fn after(events: &[Trace<'_>]) -> (Vec<String>, u64) {
        let mut checker = ExactlyOnce::default();
        for (n, event) in events.iter().enumerate() {
            checker.observe(ms(n as u64), event);
        }
        let found = found(&mut checker, ms(100));
        (found, checker.duplicates())
    }

    #[test]
    fn an_orderly_life_is_silent() {
        let events = [
            accepted(0, 0),
            sent(0, 1, &[]),
            Trace::Deferred {
                message: 0,
                until: ms(5),
            },
            sent(0, 2, &[]),
            taken(0, 2),
            settled(0, State::Delivered),
            accepted(1, 0),
            settled(1, State::Expired),
        ];
        assert_eq!(after(&events), (vec![], 0));
    }

    #[test]
    fn a_duplicate_is_excused_by_a_crash_and_counted() {
        let crash = [
            accepted(0, 0),
            sent(0, 1, &[]),
            taken(0, 1),
            Trace::Crashed { node: 0 },
            sent(0, 2, &[]),
            taken(0, 2),
            settled(0, State::Delivered),
        ];
        assert_eq!(after(&crash), (vec![], 1));
    }

    #[test]
    fn each_way_to_end_wrongly_is_named() {
        for (events, wanted) in [
            (vec![accepted(0, 0)], "never settled"),
            (
                vec![
                    accepted(0, 0),
                    sent(0, 1, &[]),
                    taken(0, 1),
                    sent(0, 2, &[]),
                    taken(0, 2),
                    settled(0, State::Delivered),
                ],
                "2 times without excuse",
            ),
            (
                vec![
                    accepted(0, 0),
                    settled(0, State::Dead),
                    settled(0, State::Dead),
                ],
                "settled twice",
            ),
            (
                vec![accepted(0, 0), settled(0, State::Delivered)],
                "nobody took it",
            ),
            (
                vec![accepted(0, 0), settled(0, State::Expired), sent(0, 1, &[])],
                "after it was settled",
            ),
            (
                vec![
                    accepted(0, 0),
                    sent(0, 1, &[]),
                    taken(0, 1),
                    settled(0, State::Bounced),
                ],
                "not settled as delivered",
            ),
            (vec![sent(0, 1, &[])], "never accepted"),
            (vec![accepted(0, 0), settled(0, State::Queued)], "not final"),
        ] {
            let (found, _) = after(&events);
            assert_eq!(found.len(), 1, "{wanted}: {found:?}");
            assert!(found[0].contains(wanted), "{wanted}: {found:?}");
        }
    }
}
