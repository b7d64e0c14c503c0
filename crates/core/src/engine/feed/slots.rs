//! Slots of a concurrency limit that a fleet shares: held while they are used,
//! asked for again in time, given back when nobody wants them.

use super::{Asked, Demand, Feed, Wanted};
use crate::class::Class;
use crate::engine::action::Action;
use crate::handle::LimitId;
use crate::limit::Limit;
use crate::limit::need::Need;
use crate::pool::ClassMask;
use crate::time::{Mono, Nanos, Now};

/// Who lacks slots asks again after this long: somebody may have given back.
const LACK_PAUSE: Nanos = Nanos::from_millis(25);
/// Slots that nobody wants are kept for so long: the next message may be near.
const IDLE_KEPT: Nanos = Nanos::from_millis(200);

impl Feed {
    /// Asks for slots if they are wanted, must be asked for again, or are to go
    /// to others. When to look again.
    pub(super) fn hold(
        &mut self,
        now: &Now,
        id: (LimitId, u64),
        limit: &mut Limit,
        demand: Option<Demand>,
        actions: &mut Vec<Action>,
    ) -> Mono {
        let Some(holds) = limit.holds() else {
            return Mono::NEVER;
        };
        let (slots, in_use, ends_at) = (holds.slots(now), holds.in_use(), holds.ends_at());
        let lacks = demand.is_some_and(|it| !limit.fits(now, it.class, Need::whole(it.cost)));
        let wanted = wanted(limit, in_use, demand);
        // Slots that the ledger counts and this node does not use any more.
        let owes = self.counted > slots.max(in_use);
        if wanted.tokens == 0 && slots == 0 && !owes {
            return Mono::NEVER;
        }
        let ask_at = if lacks || owes {
            self.retry_at
        } else if slots > wanted.tokens {
            // The next message may be near: not at once.
            ends_at.min(self.retry_at + IDLE_KEPT)
        } else {
            self.retry_at.max(ends_at - Nanos(self.life.0 / 2))
        };
        if now.mono < ask_at {
            // Those that this node is to do without come back with the replies.
            let gives_way = slots < in_use;
            return match gives_way {
                true => ask_at.min(now.mono + LACK_PAUSE),
                false => ask_at,
            };
        }
        // Until the answer is there no more than these may come into use: the
        // ledger counts them.
        let kept = slots.min(wanted.tokens);
        if kept < slots {
            limit.hold(kept, ends_at);
        }
        let held = kept.max(in_use);
        self.ask(now, id, limit, Wanted { held, ..wanted }, actions)
    }

    /// The ledger lets this node hold so many slots: perhaps fewer than it uses,
    /// since others wait.
    pub(super) fn held(
        &mut self,
        now: &Now,
        asked: &Asked,
        limit: &mut Limit,
        slots: u32,
        life: Nanos,
    ) -> Mono {
        self.retry_at = now.mono + LACK_PAUSE;
        self.counted = slots.max(asked.held);
        if asked.is_trustworthy(now, life) {
            limit.hold(slots, asked.at + life);
        }
        self.retry_at
    }
}

/// What is in use and what would be if all who wait were served.
fn wanted(limit: &Limit, in_use: u32, demand: Option<Demand>) -> Wanted {
    let waiting = demand.map_or(0, |demand| {
        let flows = u32::try_from(demand.flows).unwrap_or(u32::MAX).max(1);
        flows.saturating_mul(demand.cost)
    });
    let tokens = in_use.saturating_add(waiting);
    Wanted {
        // Slots serve whoever takes them.
        out_of_turn: false,
        earned: false,
        class: demand.map_or(Class::Critical, |demand| demand.class),
        tokens: tokens.min(limit.spec().capacity()).max(in_use),
        at_least: demand.map_or(0, |demand| demand.cost),
        held: in_use,
        waiting: demand.map_or(ClassMask::NONE, |demand| demand.waiting),
    }
}
