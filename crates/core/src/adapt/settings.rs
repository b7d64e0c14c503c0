//! What an operator sets: where to start, what never to exceed, by which rule.

/// The slowest rate a controller goes to, in messages a second: one in ten
/// minutes still finds out when a far end relents.
pub const SLOWEST: f64 = 1.0 / 600.0;

/// By which rule the rate moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Finds the hidden limit and stays just below it.
    #[default]
    Seek,
    /// The plain rule for incidents: halve at once, wait 30 minutes, then add a
    /// tenth of the policy's rate each 10 minutes.
    Incident,
}

/// What an operator sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    start: f64,
    cap: f64,
    profile: Profile,
}

impl Settings {
    /// Starts at `start` and never exceeds `cap`, both in messages a second.
    /// Where the policy says only `rate`, both are that. Nonsense (nothing,
    /// less than nothing, not a number) becomes the slowest rate.
    pub fn new(start: f64, cap: f64, profile: Profile) -> Self {
        let sound = |rate: f64| {
            if rate.is_finite() && rate > 0.0 {
                rate.min(1e9)
            } else {
                SLOWEST
            }
        };
        let cap = sound(cap);
        Self {
            start: sound(start).min(cap),
            cap,
            profile,
        }
    }

    /// Where to start.
    pub const fn start(&self) -> f64 {
        self.start
    }

    /// What never to exceed.
    pub const fn cap(&self) -> f64 {
        self.cap
    }

    /// By which rule.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// The slowest rate to go to.
    pub fn floor(&self) -> f64 {
        SLOWEST.min(self.cap)
    }
}
