//! Nothing is sent after its expiry or before it is due, and nothing stands
//! long after it expired.

use std::collections::BTreeMap;

use outflow_core::message::State;
use outflow_core::time::Nanos;

use super::Findings;
use crate::trace::{Checker, MessageNo, Observer, Trace, Violation};

/// How long after its expiry a message may stand before it is settled.
const GRACE: Nanos = Nanos::from_secs(60);

/// What holds for a message.
#[derive(Clone, Copy, Debug)]
struct Times {
    due: Nanos,
    expires: Nanos,
    /// When its last attempt ended. While one is under way its end is not
    /// known, and a message that expires meanwhile has to wait for it.
    answered: Nanos,
}

/// See the module.
#[derive(Debug)]
pub struct Expiry {
    wall_error: Nanos,
    /// Those messages that have a due time or an expiry.
    times: BTreeMap<MessageNo, Times>,
    findings: Findings,
}

impl Expiry {
    /// Wall clocks may be off by `wall_error`.
    pub fn new(wall_error: Nanos) -> Self {
        Self {
            wall_error,
            times: BTreeMap::new(),
            findings: Findings::of("expiry"),
        }
    }

    fn sent(&mut self, at: Nanos, message: MessageNo) {
        let Some(Times { due, expires, .. }) = self.times.get(&message).copied() else {
            return;
        };
        if at + self.wall_error < due {
            self.findings.add(at, || {
                format!(
                    "message {message} was sent {} before it was due",
                    due.minus(at)
                )
            });
        }
        if at >= expires + self.wall_error && at > expires {
            self.findings.add(at, || {
                format!(
                    "message {message} was sent {} after it expired",
                    at.minus(expires)
                )
            });
        }
    }

    fn settled(&mut self, at: Nanos, message: MessageNo, state: State) {
        let Some(times) = self.times.remove(&message) else {
            if state == State::Expired {
                self.findings
                    .add(at, || format!("message {message} expired but never does"));
            }
            return;
        };
        if state != State::Expired {
            return;
        }
        let expires = times.expires;
        if at + self.wall_error < expires {
            self.findings.add(at, || {
                format!(
                    "message {message} was given up {} too early",
                    expires.minus(at)
                )
            });
        }
        if at > expires.max(times.answered) + self.wall_error + GRACE {
            self.findings.add(at, || {
                format!(
                    "message {message} stood for {} after it expired",
                    at.minus(expires)
                )
            });
        }
    }
}

impl Observer for Expiry {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Accepted {
                message,
                due,
                expires,
                ..
            } if due > at || expires != Nanos::MAX => {
                let times = Times {
                    due,
                    expires,
                    answered: Nanos::ZERO,
                };
                self.times.insert(message, times);
            }
            Trace::Dispatched { message, .. } => self.sent(at, message),
            Trace::Replied { message, .. } => {
                if let Some(times) = self.times.get_mut(&message) {
                    times.answered = at;
                }
            }
            Trace::Settled { message, state } => self.settled(at, message, state),
            _ => {}
        }
    }
}

impl Checker for Expiry {
    fn name(&self) -> &'static str {
        "expiry"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        for (message, Times { expires, .. }) in std::mem::take(&mut self.times) {
            if at > expires + self.wall_error + GRACE {
                self.findings.add(at, || {
                    format!(
                        "message {message} expired {} ago and still stands",
                        at.minus(expires)
                    )
                });
            }
        }
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{found, ms, sent, settled};
    use super::*;
    use crate::trace::Answered;

    fn after(events: &[(u64, Trace<'_>)], wall_error: u64) -> Vec<String> {
        let mut checker = Expiry::new(ms(wall_error));
        let accepted = Trace::Accepted {
            node: 0,
            message: 0,
            flow: 0,
            cost: 1,
            due: ms(100),
            expires: ms(1_000),
        };
        checker.observe(ms(0), &accepted);
        for (at, event) in events {
            checker.observe(ms(*at), event);
        }
        found(&mut checker, ms(100_000))
    }

    #[test]
    fn sent_in_time_or_given_up_in_time_is_silent() {
        let delivered = (300, settled(0, State::Delivered));
        assert!(after(&[(100, sent(0, 1, &[])), delivered.clone()], 0).is_empty());
        assert!(after(&[(999, sent(0, 1, &[])), delivered.clone()], 0).is_empty());
        assert!(after(&[(1_004, settled(0, State::Expired))], 0).is_empty());
        // It expired while an answer was awaited that never came.
        let late = Trace::Replied {
            node: 0,
            message: 0,
            attempt: 1,
            answer: Answered::Uncertain,
        };
        let expired = (60_900, settled(0, State::Expired));
        assert!(after(&[(500, sent(0, 1, &[])), (60_800, late), expired], 0).is_empty());
        // A clock that is known to be off by 50 ms is not blamed.
        assert!(after(&[(60, sent(0, 1, &[])), delivered], 50).is_empty());
    }

    #[test]
    fn too_early_and_too_late_are_named() {
        let delivered = (2_000, settled(0, State::Delivered));
        for (events, wanted) in [
            (
                vec![(99, sent(0, 1, &[])), delivered.clone()],
                "1ms before it was due",
            ),
            (
                vec![(1_100, sent(0, 1, &[])), delivered],
                "100ms after it expired",
            ),
            (vec![(500, settled(0, State::Expired))], "500ms too early"),
            (
                vec![(90_000, settled(0, State::Expired))],
                "89.0s after it expired",
            ),
            (vec![], "still stands"),
        ] {
            let found = after(&events, 0);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(wanted), "{wanted}: {found:?}");
        }
    }
}
