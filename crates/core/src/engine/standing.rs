//! How accounts are held beside their limits, as people see it.

use super::Engine;
use crate::destination::Destination;
use crate::name::Name;
use crate::time::{Now, Wall};

/// What holds an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The far end asked for nothing until a time.
    Asked,
    /// It failed again and again: its breaker is open.
    Breaker,
    /// Its breaker is half open: one message asks.
    Probe,
    /// It was refused too often.
    Refusals,
    /// Others of its pool are blocked: it keeps to the rate of the minute before.
    Pressure,
}

impl Holder {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Breaker => "breaker",
            Self::Probe => "half_open",
            Self::Refusals => "refusals",
            Self::Pressure => "pressure",
        }
    }
}

/// An account that is held, everywhere or at a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which.
    pub account: Name,
    /// Where, if not everywhere.
    pub destination: Option<Destination>,
    /// By what.
    pub by: Holder,
    /// Until when, if that is known.
    pub until: Option<Wall>,
    /// What it may send in a minute meanwhile, if anything.
    pub per_minute: Option<u64>,
}

impl Engine {
    /// All accounts that are held beside their limits.
    pub fn standings(&self, now: &Now) -> Vec<Standing> {
        let desk = &self.counter.desk;
        let held = desk.held(now.mono).into_iter().filter_map(|held| {
            Some(Standing {
                account: desk.account(held.account)?.spec.id.clone(),
                destination: held.lane.map(|lane| desk.lane(lane).destination.clone()),
                by: held.by,
                until: held.until.map(|until| now.wall_at(until)),
                per_minute: held.per_minute,
            })
        });
        held.collect()
    }
}
