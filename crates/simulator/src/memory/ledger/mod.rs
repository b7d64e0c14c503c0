//! A keeper of shared limits that lives in memory.
//!
//! One ledger serves all nodes of a world, each through a [`LedgerLink`] with a
//! latency and faults of its own. It debits tokens when it grants them, on its
//! own clock, and pays the life of every lease in advance.
//!
//! A lease begins to live when the node asks, and the ledger learns of that
//! only later. So it counts on two things alone: nothing is used before it was
//! debited, and nothing later than its life after. No lease is booked ahead
//! (`wait` is always zero), since how long a request was on its way is not
//! known; who comes too early hears when to come.
//!
//! On which terms is decided in [`outflow_core::ledger`].
//!
//! Reading order: `clock`, [`Settings`]; `counter` (one limit) with `spaced`
//! (runs) and `promises` (who comes when); `shared` (all limits), `reporter`
//! (what it is told after a loss), [`LedgerLink`].

mod clock;
mod counter;
mod held;
mod link;
mod promises;
mod reporter;
mod settings;
mod shared;
mod spaced;

use std::cell::RefCell;
use std::rc::Rc;

pub use self::clock::WorldClock;
pub use self::link::{LedgerLink, LinkFaults};
pub use self::settings::Settings;
pub use self::shared::LedgerStats;
use self::shared::Shared;

/// A keeper of shared limits. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryLedger {
    world: WorldClock,
    shared: Rc<RefCell<Shared>>,
}

impl MemoryLedger {
    /// A ledger that was never asked: its limits are full.
    pub fn new(settings: Settings, world: WorldClock) -> Self {
        let shared = Rc::new(RefCell::new(Shared::new(settings)));
        Self { world, shared }
    }

    /// Connects a node.
    pub fn link(&self, faults: LinkFaults) -> LedgerLink {
        let name = self.shared.borrow_mut().number();
        LedgerLink::new(self.world.clone(), Rc::clone(&self.shared), faults, name)
    }

    /// Connects a node again that was restarted since `before`.
    pub fn link_again(&self, before: &LedgerLink, faults: LinkFaults) -> LedgerLink {
        let name = before.reporter_name();
        LedgerLink::new(self.world.clone(), Rc::clone(&self.shared), faults, name)
    }

    /// Loses all counts. The ledger notices: from now on it grants only what
    /// cannot be too much, whatever was used before.
    pub fn lose_state(&self) {
        self.shared.borrow_mut().lose_state(self.world.now());
    }

    /// Steps the ledger's clock.
    pub fn step_clock(&self, by_nanos: i64) {
        let mut shared = self.shared.borrow_mut();
        shared.step_clock(self.world.now(), by_nanos);
    }

    /// What it did so far.
    pub fn stats(&self) -> LedgerStats {
        self.shared.borrow().stats
    }
}

#[cfg(test)]
mod tests;
