//! A node's way to the ledger, if the scenario has one.

use outflow_core::engine::action::LeaseRequest;
use outflow_core::engine::event::Event;
use outflow_core::time::{Mono, Now};
use outflow_ports::ledger::Ledger;

/// A ledger, or none.
#[derive(Debug, Default)]
pub struct SimLedger;

impl SimLedger {
    /// The node's end after its process died: requests under way are gone.
    #[must_use]
    pub fn rebooted(self) -> Self {
        self
    }
}

impl Ledger for SimLedger {
    fn submit(&mut self, _: &Now, _: LeaseRequest) {}

    fn complete(&mut self, _: &Now, _: &mut Vec<Event>) {}

    fn next_completion(&self) -> Mono {
        Mono::NEVER
    }
}
