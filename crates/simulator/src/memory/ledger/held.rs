//! Slots over a fleet: at most so many in flight, whoever holds them.
//!
//! Every node holds some, for a while; what is in use is asked for again in
//! time, and what a dead node held comes back at its end. After a loss nothing
//! is granted until all that was held before has been asked for again or ended.
//!
//! Where nodes want more than there are, each has its share
//! ([`outflow_core::ledger::slots`]): who holds more hears that he is to do with
//! less, and what he uses above that counts until he says that it is free.

use std::collections::BTreeMap;

use outflow_core::engine::action::{LeaseRequest, Receipt};
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::paid;
use outflow_core::ledger::settings::{HOLD_LIFE, HOLD_PAUSE};
use outflow_core::ledger::slots::{self, WANTS_FOR, Want};
use outflow_core::time::{Mono, Nanos};

/// What one node holds and wants.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    /// The most that it may use until it asks again, and until when.
    counted: u32,
    ends_at: Mono,
    /// How many it wants in all, how many of them one message takes, and until
    /// when that is believed.
    wants: u32,
    least: u32,
    wants_until: Mono,
    /// When its turn ends, or ended.
    turn_ends: Mono,
    /// Its last request.
    no: u32,
}

/// Who holds how many slots, and until when.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    by_node: BTreeMap<u64, Hold>,
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

    /// A node wants to hold `request.tokens` in all, and may use `request.held`.
    /// If the limit is barred it hears for how long, and no more is granted.
    pub fn ask(
        &mut self,
        now: Mono,
        node: u64,
        slots: u32,
        request: &LeaseRequest,
        bar: Option<Nanos>,
    ) -> LeaseAnswer {
        self.by_node
            .retain(|_, hold| hold.ends_at > now || hold.wants_until > now);
        let fresh = Hold {
            turn_ends: now,
            ..Hold::default()
        };
        let mut own = self.by_node.get(&node).copied().unwrap_or(fresh);
        // What was held up on its way comes after what was asked later.
        if own.no > request.no {
            let retry_after = HOLD_PAUSE;
            return LeaseAnswer::Refused { retry_after };
        }
        own.no = request.no;
        self.by_node.remove(&node);
        let others = self.by_node.values().filter(|hold| hold.ends_at > now);
        let others = others.fold(0, |all: u32, hold| all.saturating_add(hold.counted));
        own.wants = request.tokens;
        own.least = request.at_least.clamp(1, request.tokens.max(1));
        let bar = bar.or_else(|| {
            let left = self.grants_from.since(now);
            (left > Nanos::ZERO).then_some(left)
        });
        let granted = match bar {
            // What is in use is in use, whatever was forgotten.
            Some(_) => request.held,
            None => self
                .share(now, node, &own, slots)
                .min(slots.saturating_sub(others)),
        };
        own.counted = granted.max(request.held);
        own.ends_at = now + paid(HOLD_LIFE);
        own.wants_until = match granted < request.tokens {
            true => now + WANTS_FOR,
            false => own.ends_at,
        };
        if granted >= own.least && own.turn_ends <= now {
            own.turn_ends = now + slots::turn_at(now);
        }
        if request.tokens > 0 || own.counted > 0 {
            self.by_node.insert(node, own);
        }
        if own.counted == 0 && request.tokens > 0 {
            let retry_after = HOLD_PAUSE.max(bar.unwrap_or_default());
            return LeaseAnswer::Refused { retry_after };
        }
        LeaseAnswer::Leased {
            tokens: granted,
            life: HOLD_LIFE,
            wait: Nanos::ZERO,
            spacing: Nanos::ZERO,
            receipt: Receipt::default(),
            owed: Default::default(),
        }
    }

    /// How many of the slots are to be this node's.
    fn share(&self, now: Mono, node: u64, own: &Hold, slots: u32) -> u32 {
        let want = |hold: &Hold| Want {
            tokens: match hold.wants_until > now {
                true => hold.wants,
                false => hold.counted.min(hold.wants),
            },
            least: hold.least,
        };
        let since = |hold: &Hold| match hold.turn_ends > now {
            true => Mono(0),
            false => hold.turn_ends,
        };
        let mut order: Vec<(Mono, u64, Want)> = self
            .by_node
            .iter()
            .map(|(node, hold)| (since(hold), *node, want(hold)))
            .collect();
        let mine = Want {
            tokens: own.wants,
            least: own.least,
        };
        order.push((since(own), node, mine));
        order.sort_by_key(|&(since, node, _)| (since, node));
        let wants: Vec<Want> = order.iter().map(|&(_, _, want)| want).collect();
        let place = order.iter().position(|&(_, other, _)| other == node);
        let shares = slots::shares(slots, &wants);
        place
            .and_then(|place| shares.get(place))
            .copied()
            .unwrap_or(0)
    }
}
