//! Slots that are held, until they are given back or their time is over.

use std::collections::BTreeSet;

use super::request::{Owner, Permit};
use super::slab::Slab;
use crate::fair::Shares;
use crate::time::Mono;

/// Slots of limits: which, and how many.
pub(super) type Slots = Vec<(u32, u32)>;

/// One permit.
#[derive(Debug)]
struct Held {
    slots: Slots,
    end: Mono,
    owner: Owner,
}

/// All permits that are held.
#[derive(Debug)]
pub(super) struct Permits {
    held: Slab<Held>,
    ends: BTreeSet<(Mono, u32)>,
    shares: Shares<Owner>,
}

impl Permits {
    /// None is held. The seed is drawn by lot: permits of another process, or of
    /// this one before it started again, are nobody's here.
    pub fn new(seed: u64, max: usize) -> Self {
        let first = u32::try_from(seed >> 32).unwrap_or_default();
        Self {
            held: Slab::beginning_at(first),
            ends: BTreeSet::new(),
            shares: Shares::of(max as u64),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// How many an owner holds, and how many more it may hold now.
    pub fn of_owner(&self, owner: Owner) -> (u64, u64) {
        self.shares.standing(&owner)
    }

    /// Holds slots until `end`.
    pub fn hold(&mut self, slots: Slots, end: Mono, owner: Owner) -> Permit {
        let (index, generation) = self.held.insert(Held { slots, end, owner });
        self.ends.insert((end, index));
        // Whether there is room was seen before.
        self.shares.force(&owner, 1);
        Permit { index, generation }
    }

    /// Gives a permit back: its slots, if it was still held. An owner gives back
    /// only its own; without one, whose it is does not matter.
    pub fn release(&mut self, permit: Permit, by: Option<Owner>) -> Option<Slots> {
        if !self.held.is(permit.index, permit.generation) {
            return None;
        }
        let owner = self.held.get(permit.index)?.owner;
        if by.is_some_and(|by| by != owner) {
            return None;
        }
        let held = self.held.remove(permit.index)?;
        self.ends.remove(&(held.end, permit.index));
        self.shares.give_back(&held.owner, 1);
        Some(held.slots)
    }

    /// The slots of one permit whose time is over.
    pub fn ended(&mut self, now: Mono) -> Option<Slots> {
        let (end, index) = self.ends.first().copied()?;
        if end > now {
            return None;
        }
        self.ends.remove(&(end, index));
        let held = self.held.remove(index)?;
        self.shares.give_back(&held.owner, 1);
        Some(held.slots)
    }

    /// When the time of the next one is over.
    pub fn next_end(&self) -> Option<Mono> {
        self.ends.first().map(|(end, _)| *end)
    }
}
