//! What tells the ledger, after it lost its counts, what a node debited of long
//! windows: as the connection of a real node does, beside the node itself.

use outflow_core::engine::action::LeaseRequest;
use outflow_core::ledger::debits::{Debit, NodeDebits, RecalledDebits, is_long};
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Mono, Nanos, Now};

use crate::memory::window::{self, Window};

/// A loss is noticed after this long.
pub(super) const LOOK: Nanos = Nanos::from_millis(250);

/// One node's reports. Its time is that of the world.
#[derive(Debug)]
pub(super) struct Reporter {
    /// The same after each restart of the node.
    pub name: u64,
    pub debits: NodeDebits,
    cuts: Vec<Window>,
}

impl Reporter {
    pub fn new(name: u64, cuts: Vec<Window>) -> Self {
        Self {
            name,
            debits: NodeDebits::default(),
            cuts,
        }
    }

    /// The ledger cannot be reached in these.
    pub fn set_cuts(&mut self, cuts: &[Window]) {
        self.cuts = cuts.to_vec();
    }

    /// When a report can be made, if not now.
    pub fn cut_until(&self, world: Mono) -> Option<Mono> {
        window::around(&self.cuts, world).map(|cut| cut.until)
    }

    /// Remembers a lease that was debited at `now` on the ledger's clocks.
    pub fn leased(
        &mut self,
        (world, now): (Mono, &Now),
        request: &LeaseRequest,
        epoch: u64,
        tokens: u32,
    ) {
        if is_long(&request.spec) {
            let debit = Debit {
                epoch,
                at: now.mono.0,
                wall: now.wall,
                tokens,
            };
            let numbers = (&request.spec, request.version);
            self.debits.add(world, &request.key, numbers, debit);
        }
    }

    pub fn gave_back(&mut self, key: &LimitKey, epoch: u64, at: u64, tokens: u32) {
        self.debits.give_back(key, epoch, at, tokens);
    }

    pub fn recall(&mut self, world: Mono, recalled: &RecalledDebits) {
        self.debits.recall(world, recalled);
    }
}
