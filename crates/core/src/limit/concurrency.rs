//! Concurrency: at most `slots` tokens in flight.
//!
//! A token is held from its take to its release. Fewer slots than are held
//! take effect as the holders come back; nobody is interrupted.

use super::algorithm::Until;
use super::need::Need;

/// A number of slots, some of them held.
#[derive(Clone, Debug)]
pub struct Concurrency {
    slots: u32,
    held: u32,
}

impl Concurrency {
    /// Slots that nobody holds.
    pub const fn new(slots: u32) -> Self {
        Self { slots, held: 0 }
    }

    /// How many slots are held.
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Whether `need` is free.
    pub fn fits(&self, need: Need) -> bool {
        need <= Need::whole(self.slots.saturating_sub(self.held))
    }

    /// When `need` will be free.
    pub fn until(&self, need: Need) -> Until {
        if need > Need::whole(self.slots) {
            Until::Never
        } else if self.fits(need) {
            Until::Now
        } else {
            Until::Released
        }
    }

    /// Holds `cost` slots.
    pub const fn take(&mut self, cost: u32) {
        self.held = self.held.saturating_add(cost);
    }

    /// Gives `cost` slots back.
    pub const fn release(&mut self, cost: u32) {
        self.held = self.held.saturating_sub(cost);
    }

    /// Goes on with another number of slots.
    pub const fn reconfigure(&mut self, slots: u32) {
        self.slots = slots;
    }

    /// Whether a fresh one would know as much.
    pub const fn is_idle(&self) -> bool {
        self.held == 0
    }
}
