//! Which messages have their time when: coarse, so that a million cost little.
//!
//! Times are rounded up to a grain, so nothing is ever early. Nothing is taken
//! out before its time either: whoever takes an item off the wheel checks that
//! it is still meant.

use std::collections::{BTreeMap, VecDeque};

use outflow_core::message::Seq;
use outflow_core::time::{Nanos, Wall};

use super::slab::Slot;

/// Messages by the time at which something happens to them.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    grain: i64,
    spokes: BTreeMap<i64, VecDeque<(Slot, Seq)>>,
}

impl Wheel {
    pub fn new(grain: Nanos) -> Self {
        Self {
            grain: i64::try_from(grain.0.max(1)).unwrap_or(i64::MAX),
            spokes: BTreeMap::new(),
        }
    }

    pub fn insert(&mut self, at: Wall, slot: Slot, seq: Seq) {
        if at == Wall::NEVER {
            return;
        }
        let spoke = at.0.div_euclid(self.grain) + i64::from(at.0.rem_euclid(self.grain) > 0);
        self.spokes.entry(spoke).or_default().push_back((slot, seq));
    }

    /// When the next item is ripe.
    pub fn next(&self) -> Option<Wall> {
        let (spoke, _) = self.spokes.first_key_value()?;
        Some(Wall(spoke.saturating_mul(self.grain)))
    }

    /// The next item whose time has come.
    pub fn pop(&mut self, now: Wall) -> Option<(Slot, Seq)> {
        if self.next()? > now {
            return None;
        }
        let mut spoke = self.spokes.first_entry()?;
        let item = spoke.get_mut().pop_front();
        if spoke.get().is_empty() {
            spoke.remove();
        }
        item
    }

    pub fn clear(&mut self) {
        self.spokes.clear();
    }
}
