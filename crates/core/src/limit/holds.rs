//! Slots that a fleet shares: at most as many in flight as the ledger lets this
//! node hold.
//!
//! A hold ends unless it is asked for again, so that the slots of a dead node
//! come back. What flies when a hold ends flies on; nothing more starts.

use super::need::Need;
use crate::time::{Mono, Now};

/// Slots held for a while, some of them in use.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    slots: u32,
    ends_at: Mono,
    in_use: u32,
}

impl Holds {
    /// How many are held now.
    pub fn slots(&self, now: &Now) -> u32 {
        if now.mono < self.ends_at {
            self.slots
        } else {
            0
        }
    }

    /// How many were held last, whether they still are or not.
    pub const fn slots_before(&self) -> u32 {
        self.slots
    }

    /// How many are in use, whether they are still held or not.
    pub const fn in_use(&self) -> u32 {
        self.in_use
    }

    /// When they must have been asked for again.
    pub const fn ends_at(&self) -> Mono {
        self.ends_at
    }

    /// How many could be taken now.
    pub fn free(&self, now: &Now) -> u32 {
        self.slots(now).saturating_sub(self.in_use)
    }

    /// Whether `need` is free.
    pub fn fits(&self, now: &Now, need: Need) -> bool {
        need <= Need::whole(self.free(now))
    }

    /// Takes `cost` slots.
    pub const fn take(&mut self, cost: u32) {
        self.in_use = self.in_use.saturating_add(cost);
    }

    /// Gives `cost` slots back.
    pub const fn release(&mut self, cost: u32) {
        self.in_use = self.in_use.saturating_sub(cost);
    }

    /// The ledger lets this node hold so many, in all.
    pub const fn hold(&mut self, slots: u32, ends_at: Mono) {
        self.slots = slots;
        self.ends_at = ends_at;
    }

    /// What flies flies on; nothing more starts before the ledger says how many
    /// are held now.
    pub const fn start_none(&mut self) {
        self.slots = 0;
    }

    /// Whether a fresh one would know as much.
    pub fn is_idle(&self, now: &Now) -> bool {
        self.in_use == 0 && self.slots(now) == 0
    }
}
