//! The time of the world, and what the ledger's own clock makes of it.
//!
//! Nodes have clocks of their own; a ledger cannot use those. The world sets
//! one clock before it runs anybody, and the ledger's clock is off from it as
//! a scenario says.

use std::cell::Cell;
use std::rc::Rc;

use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Now, Wall};

/// The time of the world, shared by all who live in it.
#[derive(Clone, Debug, Default)]
pub struct WorldClock(Rc<Cell<u64>>);

impl WorldClock {
    /// What time it is.
    pub fn now(&self) -> Mono {
        Mono(self.0.get())
    }

    /// Time passes. It never goes back.
    pub fn set(&self, now: Mono) {
        self.0.set(self.0.get().max(now.0));
    }
}

/// A clock that may step, as servers' clocks do.
///
/// Where it steps back, time goes on from there; where it steps ahead, limits
/// believe it, which costs at most one burst or one window.
#[derive(Clone, Debug)]
pub(super) struct LedgerClock {
    /// What it shows at the beginning of the world.
    offset: i64,
    shown: i64,
    passed: u64,
}

impl LedgerClock {
    pub fn new(wall: Wall) -> Self {
        Self {
            offset: wall.0,
            shown: wall.0,
            passed: 0,
        }
    }

    pub fn step(&mut self, by: i64) {
        self.offset = self.offset.saturating_add(by);
    }

    /// The ledger's clocks at a time of the world.
    pub fn at(&mut self, world: Mono) -> Now {
        let shows = self.offset.saturating_add_unsigned(world.0);
        self.passed += Wall(shows).since(Wall(self.shown)).0;
        self.shown = shows;
        Now {
            mono: Mono(self.passed),
            wall: Wall(shows),
            entropy: Entropy(0),
        }
    }
}
