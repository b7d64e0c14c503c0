//! What a pool waits for: back-offs, time-outs, distances, the end of a hold.
//!
//! Timers are not taken back. One that fires checks whether it still matters,
//! so a wake without effect is possible and harmless.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::handle::SessionId;
use crate::time::Mono;

use super::Pool;
use super::lane::{Reach, Rich};
use super::place::{Col, PairNo, Row};
use super::session::{SessionNo, State};

/// The most timers that one wake handles.
const WAKES_MAX: usize = 1_000;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A session may have been idle too long.
    Idle(SessionId),
    /// A pair may connect again.
    Backoff(PairNo),
    /// A lane may be probed.
    Probe(Col),
    /// A lane need no longer stand back.
    Rich(Col),
    /// Lower classes of a lane may leave again.
    Pace(Col),
    /// A session of this account may be taken for another lane.
    Take(Row),
}

/// All timers of a pool, in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Mono, Timer)>>,
}

impl Timers {
    pub fn set(&mut self, at: Mono, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    fn next(&self) -> Option<Mono> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    fn pop_due(&mut self, now: Mono) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, timer))| timer)
    }
}

impl Pool {
    /// When [`Pool::wake`] is due.
    pub fn next_wake(&self) -> Option<Mono> {
        self.timers.next()
    }

    /// Handles what is due, a bounded number of timers at a time.
    pub fn wake(&mut self, now: Mono) {
        for _ in 0..WAKES_MAX {
            let Some(timer) = self.timers.pop_due(now) else {
                return;
            };
            match timer {
                Timer::Idle(id) => {
                    if let Some(no) = self.sessions.find(id) {
                        self.idle_due(now, no);
                    }
                }
                Timer::Backoff(no) => {
                    let pair = self.pair_mut(no);
                    if pair.backoff_until.is_some_and(|until| until <= now) {
                        pair.backoff_until = None;
                        self.refresh_pair(no);
                    }
                }
                Timer::Probe(col) => {
                    let lane = self.lane_mut(col);
                    if matches!(lane.reach, Reach::Shut(until) if until <= now) {
                        lane.reach = Reach::Probe;
                        self.refresh_lane(col);
                    }
                }
                Timer::Rich(col) => {
                    let lane = self.lane_mut(col);
                    if matches!(lane.rich, Rich::Until(until) if until <= now) {
                        lane.rich = Rich::Lifted;
                        self.refresh_lane(col);
                    }
                }
                Timer::Pace(col) => {
                    if self.lane_mut(col).pace.lift(now) {
                        self.refresh_lane(col);
                    }
                }
                Timer::Take(row) => self.take_due(now, row),
            }
        }
    }

    fn idle_due(&mut self, now: Mono, no: SessionNo) {
        let session = self.sessions.at(no);
        let id = self.sessions.id(no);
        let timeout = self.settings.idle_timeout;
        let again = match session.state {
            State::Closing => return,
            State::Idle => session.since + timeout,
            _ => now + timeout,
        };
        let lane = self.lane(self.pair(session.pair).col);
        if again > now {
            self.timers.set(again, Timer::Idle(id));
        } else if lane.counts.serving() <= self.settings.keep_warm {
            self.timers.set(now + timeout, Timer::Idle(id));
        } else {
            self.retire(now, no);
        }
    }

    fn take_due(&mut self, now: Mono, row: Row) {
        let account = self.account_mut(row);
        if account.take_at <= now {
            account.take_at = Mono::NEVER;
            if self.full.contains(row.0) && !self.short.is_empty() {
                self.connecting.mark_row(row);
            }
        }
    }
}
