//! Where the counts of shared limits live.
//!
//! A ledger debits tokens before it grants them, on its own clock, and pays the
//! life of a lease in advance, so that the guarantee of a limit holds for all
//! nodes together, whatever nodes crash, pause or have wrong clocks.

use outflow_core::engine::action::LeaseRequest;
use outflow_core::engine::event::Event;
use outflow_core::time::{Mono, Now};

/// A keeper of shared limits.
pub trait Ledger {
    /// Asks for tokens; answered by one `Granted` at most.
    fn submit(&mut self, now: &Now, request: LeaseRequest);

    /// Brings what is done by now: `Granted`.
    fn complete(&mut self, now: &Now, done: &mut Vec<Event>);

    /// When there may be more.
    fn next_completion(&self) -> Mono;
}

/// The ledger of a node that shares its limits with nobody: never asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn submit(&mut self, _: &Now, _: LeaseRequest) {}

    fn complete(&mut self, _: &Now, _: &mut Vec<Event>) {}

    fn next_completion(&self) -> Mono {
        Mono::NEVER
    }
}
