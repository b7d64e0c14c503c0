//! Where the counts of shared limits live.
//!
//! A ledger debits tokens before it grants them, on its own clock, and pays the
//! life of a lease in advance, so that the guarantee of a limit holds for all
//! nodes together, whatever nodes crash, pause or have wrong clocks.

use std::sync::Arc;

use outflow_core::engine::action::{GiveBack, LeaseRequest};
use outflow_core::engine::event::Event;
use outflow_core::ledger::debits::RecalledDebits;
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Mono, Nanos, Now};

/// What a ledger is asked to do.
#[derive(Clone, Debug)]
pub enum LedgerWork {
    /// Debit tokens; answered by one `Granted` at most.
    Lease(LeaseRequest),
    /// Take tokens back that will not be used. Not answered.
    GiveBack(GiveBack),
    /// Grant nothing of a limit for so long, and tell all nodes. Not answered.
    Pause {
        /// Which limit.
        key: Arc<LimitKey>,
        /// From now on; no time at all lifts a pause.
        lasts: Nanos,
    },
    /// Hear what earlier processes of this node used of a long window, in case
    /// the counts are lost. At a start, before anything is leased. Not answered.
    Recall(RecalledDebits),
}

/// A keeper of shared limits.
pub trait Ledger {
    /// Hands work over.
    fn submit(&mut self, now: &Now, work: LedgerWork);

    /// Brings what is done by now: `Granted`; and what others did: `Paused`.
    fn complete(&mut self, now: &Now, done: &mut Vec<Event>);

    /// When there may be more.
    fn next_completion(&self) -> Mono;
}

/// The ledger of a node that shares its limits with nobody: never asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn submit(&mut self, _: &Now, _: LedgerWork) {}

    fn complete(&mut self, _: &Now, _: &mut Vec<Event>) {}

    fn next_completion(&self) -> Mono {
        Mono::NEVER
    }
}
