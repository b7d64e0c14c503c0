//! What a ledger is told once, and what follows from it for every lease.

use crate::time::Nanos;

/// How long slots of a concurrency limit are held unless they are asked for
/// again: so long after its death a node's slots are free.
pub const HOLD_LIFE: Nanos = Nanos::from_secs(3);
/// Who finds no slot free asks again after this long.
pub const HOLD_PAUSE: Nanos = Nanos::from_millis(25);

/// What a ledger is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// From asking to the answer, usually.
    pub round_trip: Nanos,
    /// No lease lives longer, except runs of spaced tokens.
    pub life_max: Nanos,
    /// Spaced tokens are leased for at most this long at once.
    pub run_max: Nanos,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            round_trip: Nanos::from_millis(5),
            life_max: Nanos::from_millis(300),
            run_max: Nanos::from_secs(1),
        }
    }
}

impl Settings {
    /// Leases that live shorter than this would be over before they are used.
    pub fn life_min(&self) -> Nanos {
        self.round_trip.times(4)
    }

    /// The longest that anything leased before can be in use.
    pub fn longest(&self) -> Nanos {
        paid(self.life_max.max(self.life_min() + self.run_max))
    }
}

/// The time for which a life is paid: a node's clock may run slow by a
/// thousandth.
pub fn paid(life: Nanos) -> Nanos {
    life + Nanos(life.0 / 1_000 + 1)
}

/// The life that is paid with `span`.
pub fn paid_with(span: Nanos) -> Nanos {
    span.minus(Nanos(span.0 / 1_000 + 1))
}
