//! The clocks, read for every decision.

use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, NANOS_PER_SECOND, Nanos, Now, Wall};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The wall clock is read again after so long; meanwhile it is taken to go as
/// the monotonic one does. A quota that ends a moment early or late by this much
/// is no worse off.
const WALL_AGE_MAX: Nanos = Nanos::from_millis(2);

fn nanos(time: Timespec) -> u64 {
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    secs.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos)
}

/// The monotonic clock of the machine.
pub fn mono() -> Mono {
    Mono(nanos(clock_gettime(ClockId::Monotonic)))
}

fn wall() -> Wall {
    let nanos = nanos(clock_gettime(ClockId::Realtime));
    Wall(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// Reads both clocks.
pub fn now() -> Now {
    Now {
        mono: mono(),
        wall: wall(),
        entropy: Entropy(0),
    }
}

/// Both clocks, of which the wall clock is read now and then.
#[derive(Debug)]
pub struct Clock {
    last: Now,
    wall_age_max: Nanos,
}

impl Clock {
    /// `exact` reads the wall clock every time: leases are void when the two part.
    pub fn new(exact: bool) -> Self {
        Self {
            last: now(),
            wall_age_max: if exact { Nanos::ZERO } else { WALL_AGE_MAX },
        }
    }

    /// What they say.
    pub fn now(&mut self) -> Now {
        let mono = mono();
        if mono.since(self.last.mono) > self.wall_age_max {
            self.last = Now {
                mono,
                wall: wall(),
                ..self.last
            };
            return self.last;
        }
        self.last.at(mono)
    }
}
