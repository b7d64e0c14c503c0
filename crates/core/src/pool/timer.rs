//! What a pool waits for: back-offs, time-outs, distances, the end of a hold.
//!
//! Timers are not taken back. One that fires checks whether it still matters,
//! so a wake without effect is possible and harmless.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Mono;

use super::Pool;
use super::far_end::FarEndOf;
use super::lane::{Reach, Rich};
use super::place::{Col, Row};

/// The most timers that one wake handles.
const WAKES_MAX: usize = 1_000;
/// The most idle sessions of an account that are looked at together.
const IDLE_LOOKS: usize = 64;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A session of this account may have been idle too long.
    Idle(Row),
    /// A far end may be connected to again.
    Backoff(FarEndOf),
    /// A lane may be probed.
    Probe(Col),
    /// A lane need no longer stand back.
    Rich(Col),
    /// Lower classes of a lane may leave again.
    Pace(Col),
    /// An account becomes one of another kind, or may have fewer sessions.
    Change(Row),
    /// A session of this account may be taken for another lane.
    Take(Row),
    /// One session more than was welcome may be tried.
    Welcome(FarEndOf),
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
        let opening = self.openings.front().map(|&(deadline, _)| deadline);
        self.timers.next().into_iter().chain(opening).min()
    }

    /// Handles what is due, a bounded number of timers at a time.
    pub fn wake(&mut self, now: Mono) {
        self.openings_due(now);
        for _ in 0..WAKES_MAX {
            let Some(timer) = self.timers.pop_due(now) else {
                return;
            };
            if !self.is_known(timer) {
                continue;
            }
            match timer {
                Timer::Idle(row) => self.idle_due(now, row),
                Timer::Backoff(of) => self.backoff_due(now, of),
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
                Timer::Change(row) => self.change_due(now, row),
                Timer::Take(row) => self.take_due(now, row),
                Timer::Welcome(of) => self.welcome_due(now, of),
            }
        }
    }

    /// Whether what a timer is for may still be there.
    fn is_known(&self, timer: Timer) -> bool {
        match timer {
            Timer::Probe(col) | Timer::Rich(col) | Timer::Pace(col) => {
                col.index() < self.lanes.len()
            }
            Timer::Backoff(FarEndOf::Pair(no)) | Timer::Welcome(FarEndOf::Pair(no)) => {
                let pair = self.pairs.get(no.0 as usize);
                pair.is_some_and(|pair| !pair.is_free)
            }
            Timer::Backoff(FarEndOf::Account(_)) | Timer::Welcome(FarEndOf::Account(_)) => true,
            Timer::Idle(_) | Timer::Change(_) | Timer::Take(_) => true,
        }
    }

    /// Sets the time at which an account's oldest idle session is looked at,
    /// unless one is set.
    pub(super) fn time_idle(&mut self, row: Row) {
        let account = self.account(row);
        let oldest = self.sessions.oldest(account.idle).next();
        let (Some(no), Mono::NEVER) = (oldest, account.idle_at) else {
            return;
        };
        let at = self.sessions.at(no).since + account.caps.idle_timeout;
        self.look_at_idle(row, at);
    }

    fn look_at_idle(&mut self, row: Row, at: Mono) {
        if at != Mono::NEVER {
            self.account_mut(row).idle_at = at;
            self.timers.set(at, Timer::Idle(row));
        }
    }

    /// Closes what has been idle too long at an account, a few at a time.
    fn idle_due(&mut self, now: Mono, row: Row) {
        let account = self.account_mut(row);
        if account.idle_at > now {
            return;
        }
        account.idle_at = Mono::NEVER;
        let (idle, timeout) = (account.idle, account.caps.idle_timeout);
        let mut next = now + timeout;
        let old: Vec<_> = self.sessions.oldest(idle).take(IDLE_LOOKS).collect();
        for (looked, no) in (1..).zip(old) {
            let session = self.sessions.at(no);
            let due = session.since + timeout;
            let kept = match session.pair {
                Some(pair) => self.lane(self.pair(pair).col).counts,
                None => self.account(row).counts,
            };
            if due > now {
                next = due;
                break;
            }
            if kept.serving() > self.settings.keep_warm {
                self.retire(now, no);
                if looked == IDLE_LOOKS {
                    next = now;
                }
            }
        }
        if self.account(row).counts.idle > 0 {
            self.look_at_idle(row, next);
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
