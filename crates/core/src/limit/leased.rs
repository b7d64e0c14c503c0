//! What a ledger gives to a limit, and what goes back.

use super::holds::Holds;
use super::lease::Grant;
use super::{Limit, Source};
use crate::time::{Mono, Now};

impl Limit {
    /// The slots that it holds of a shared limit, if that is what it does.
    pub const fn holds(&self) -> Option<&Holds> {
        match &self.source {
            Source::Held(holds) => Some(holds),
            _ => None,
        }
    }

    /// The ledger lets it hold so many slots, in all.
    pub const fn hold(&mut self, slots: u32, ends_at: Mono) {
        if let Source::Held(holds) = &mut self.source {
            holds.hold(slots, ends_at);
        }
    }

    /// Adds what the ledger granted. An owned limit needs no grants.
    pub fn grant(&mut self, now: &Now, grant: Grant) {
        if let Source::Leased(lease) = &mut self.source {
            lease.grant(now, grant);
        }
    }

    /// Voids leased tokens that were asked for before the clocks parted; whether
    /// there were any.
    pub fn void_parted(&mut self, now: &Now) -> bool {
        match &mut self.source {
            // Slots are counted where they are held: a hold that ended early
            // elsewhere is noticed when it is asked for again.
            Source::Owned(_) | Source::Held(_) => false,
            Source::Leased(lease) => lease.void_parted(now),
        }
    }

    /// When the first of its leased tokens become void; none if none are held.
    pub fn lapses_at(&self, now: &Now) -> Option<Mono> {
        match &self.source {
            Source::Owned(_) => None,
            Source::Leased(lease) => lease.lapses_at(now),
            Source::Held(holds) => Some(holds.ends_at()).filter(|at| *at > now.mono),
        }
    }

    /// Empties a lease and yields what is still good, to be given back.
    pub fn drain(&mut self, now: &Now) -> Vec<Grant> {
        match &mut self.source {
            Source::Owned(_) | Source::Held(_) => Vec::new(),
            Source::Leased(lease) => lease.drain(now),
        }
    }

    /// Takes out of a lease what was not used for so many thousandths of its
    /// life, to be given back.
    pub fn drain_older(&mut self, now: &Now, permille: u64) -> Vec<Grant> {
        match &mut self.source {
            Source::Owned(_) | Source::Held(_) => Vec::new(),
            Source::Leased(lease) => lease.drain_older(now, permille),
        }
    }

    /// When [`Limit::drain_older`] will find something, if there is anything.
    pub fn ages_at(&self, now: &Now, permille: u64) -> Option<Mono> {
        match &self.source {
            Source::Owned(_) | Source::Held(_) => None,
            Source::Leased(lease) => lease.ages_at(now, permille),
        }
    }
}
