//! Slots over a fleet: at most so many in flight, whoever holds them.
//!
//! Every node holds some, for a while; what is in use is asked for again in
//! time, and what a dead node held comes back at its end. After a loss nothing
//! is granted until all that was held before has been asked for again or ended.

use std::collections::BTreeMap;

use outflow_core::engine::action::{LeaseRequest, Receipt};
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::paid;
use outflow_core::ledger::settings::{HOLD_LIFE, HOLD_PAUSE};
use outflow_core::time::{Mono, Nanos};

/// Who holds how many slots, and until when.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    by_node: BTreeMap<u64, (u32, Mono)>,
    grants_from: Mono,
}

impl Held {
    /// Nobody holds any, or nobody knows since a time.
    pub fn after(lost_at: Option<Mono>) -> Self {
        Self {
            by_node: BTreeMap::new(),
            grants_from: lost_at.map_or(Mono(0), |at| at + paid(HOLD_LIFE)),
        }
    }

    /// A node wants to hold `request.tokens` in all, and uses `request.held`.
    pub fn ask(&mut self, now: Mono, node: u64, slots: u32, request: &LeaseRequest) -> LeaseAnswer {
        self.by_node.retain(|_, &mut (_, ends_at)| ends_at > now);
        let own = self.by_node.remove(&node).map_or(0, |(held, _)| held);
        let others = self.by_node.values().map(|&(held, _)| held);
        let free = slots.saturating_sub(others.fold(0, u32::saturating_add));
        // What is in use is in use, whatever was forgotten.
        let most = if now < self.grants_from {
            request.held.max(own.min(request.tokens))
        } else {
            request.tokens.min(free).max(request.held)
        };
        if most == 0 && request.tokens > 0 {
            let retry_after = HOLD_PAUSE.max(self.grants_from.since(now));
            return LeaseAnswer::Refused { retry_after };
        }
        if most > 0 {
            self.by_node.insert(node, (most, now + paid(HOLD_LIFE)));
        }
        LeaseAnswer::Leased {
            tokens: most,
            life: HOLD_LIFE,
            wait: Nanos::ZERO,
            spacing: Nanos::ZERO,
            receipt: Receipt::default(),
        }
    }
}
