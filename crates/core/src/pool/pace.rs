//! Sessions that all come free at the same instant are led out of step.
//!
//! Where replies take the same time, sessions that started together stay
//! together: a critical message then waits up to a whole reply for the next
//! free one, though on average one comes free every reply time / sessions. So
//! where critical messages are about and a session comes free right after
//! another took a message, lower classes leave at that distance until no
//! session is idle. From then on they come free one by one and nothing waits
//! any more: no session is kept back, and replies that scatter by themselves
//! are hardly ever that close.

use crate::class::Class;
use crate::time::{Mono, Nanos};

use super::Pool;
use super::place::{Col, Row};
use super::settings::ClassMask;
use super::timer::Timer;

/// For so long after a critical send a lane expects another.
const CRITICAL_MEMORY: Nanos = Nanos::from_secs(60);
/// Timers are not finer: below it, several messages leave in one step.
const STEP_MIN: Nanos = Nanos::from_millis(2);
/// One reply that took long does not hold a lane for longer.
const STEP_MAX: Nanos = Nanos::from_secs(1);
/// Within this part of a step, two sessions count as in step.
const CLOSE: u64 = 16;
/// The classes that keep their distance.
const LOWER: ClassMask = ClassMask::ALL.minus(ClassMask::of(Class::Critical));

/// Whether and how a lane spaces its messages below critical.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// None below critical leaves before then.
    until: Option<Mono>,
    /// Sessions were found in step and one may still be idle.
    spacing: bool,
    critical_at: Option<Mono>,
    /// When the last messages left, and how many at once.
    left_at: Mono,
    left: u64,
}

/// The distance to keep, and how many may leave at once.
#[derive(Clone, Copy, Debug)]
struct Step {
    length: Nanos,
    messages: u64,
}

impl Step {
    fn new(reply: Nanos, sessions: u64) -> Self {
        let length = Nanos(reply.0 / sessions.max(1)).max(STEP_MIN).min(STEP_MAX);
        let messages = length.0.saturating_mul(sessions) / reply.0.max(1);
        Self {
            length,
            messages: messages.max(1),
        }
    }
}

impl Pace {
    /// The classes that may leave now.
    pub fn open(&self) -> ClassMask {
        match self.until {
            Some(_) => ClassMask::of(Class::Critical),
            None => ClassMask::ALL,
        }
    }

    /// Lets lower classes leave again; whether that was due.
    pub fn lift(&mut self, now: Mono) -> bool {
        let due = self.until.is_some_and(|until| until <= now);
        if due {
            self.until = None;
        }
        due
    }

    fn expects_critical(&self, now: Mono) -> bool {
        self.critical_at
            .is_some_and(|at| now.since(at) <= CRITICAL_MEMORY)
    }

    /// A message left. The step is worked out only where it decides.
    fn count(&mut self, now: Mono, step: impl FnOnce() -> Step) {
        let gap = now.since(self.left_at);
        let is_new = gap.0 >= STEP_MIN.0 / CLOSE
            && (gap.0 >= STEP_MAX.0 / CLOSE || gap.0 >= step().length.0 / CLOSE);
        if is_new {
            self.left_at = now;
            self.left = 0;
        }
        self.left += 1;
    }

    /// Whether as many left just now as should in one step.
    fn is_close(&self, now: Mono, step: Step) -> bool {
        self.left >= step.messages && now.since(self.left_at).0 < step.length.0 / CLOSE
    }

    /// Holds lower classes back from now on.
    fn space(&mut self, step: Step) -> Mono {
        let until = self.left_at + step.length;
        self.until = Some(until);
        self.spacing = true;
        until
    }
}

impl Pool {
    /// A message of this class took a session of the lane.
    pub(super) fn pace_taken(&mut self, now: Mono, col: Col, class: Class) {
        let mut pace = self.lane(col).pace;
        pace.count(now, || self.step(col));
        if class == Class::Critical {
            pace.critical_at = Some(now);
        }
        self.lane_mut(col).pace = pace;
        if class == Class::Critical || !pace.spacing {
            return;
        }
        let step = self.step(col);
        if !pace.is_close(now, step) {
            return;
        }
        if self.has_able(col, class, 1) {
            let until = self.lane_mut(col).pace.space(step);
            self.timers.set(until, Timer::Pace(col));
        } else {
            self.lane_mut(col).pace.spacing = false;
        }
    }

    /// A session of the lane is about to be idle.
    pub(super) fn pace_freed(&mut self, now: Mono, row: Row, col: Col) {
        let lane = self.lane(col);
        // Not its supply: that lacks if this was its last slot.
        let waits = lane.asks.and(LOWER).and(self.account(row).ready);
        if waits.is_empty() || !lane.pace.expects_critical(now) {
            return;
        }
        let step = self.step(col);
        if lane.pace.is_close(now, step) {
            let until = self.lane_mut(col).pace.space(step);
            self.timers.set(until, Timer::Pace(col));
            self.refresh_lane(col);
        }
    }

    fn step(&self, col: Col) -> Step {
        let lane = self.lane(col);
        let sessions = self.slots.max(u64::from(lane.counts.serving()));
        Step::new(lane.reply.get(), sessions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: Nanos = Nanos::from_millis(200);

    #[test]
    fn the_distance_is_what_the_sessions_can_carry() {
        let step = Step::new(REPLY, 8);
        assert_eq!((step.length, step.messages), (Nanos::from_millis(25), 1));
        let many = Step::new(REPLY, 1_000);
        assert_eq!((many.length, many.messages), (STEP_MIN, 10));
        let slow = Step::new(Nanos::from_secs(60), 8);
        assert_eq!((slow.length, slow.messages), (STEP_MAX, 1));
    }

    #[test]
    fn only_what_leaves_at_once_is_close() {
        let step = Step::new(REPLY, 200);
        assert_eq!(step.messages, 2);
        let mut pace = Pace::default();
        let now = Mono(0) + Nanos::from_secs(5);
        pace.count(now, || step);
        assert!(!pace.is_close(now, step), "two may leave at once");
        pace.count(now, || step);
        assert!(pace.is_close(now, step));
        assert!(!pace.is_close(now + step.length, step));
        assert_eq!(pace.space(step), now + step.length);
        assert_eq!(pace.open(), ClassMask::of(Class::Critical));
        assert!(!pace.lift(now));
        assert!(pace.lift(now + step.length));
        assert_eq!(pace.open(), ClassMask::ALL);
    }
}
