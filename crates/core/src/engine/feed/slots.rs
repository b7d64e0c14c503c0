//! Slots of a concurrency limit that a fleet shares: held while they are used,
//! asked for again in time, given back when nobody wants them.

use super::{Asked, Demand, Feed, Wanted};
use crate::class::Class;
use crate::engine::action::Action;
use crate::handle::LimitId;
use crate::limit::Limit;
use crate::limit::need::Need;
use crate::time::{Mono, Nanos, Now};

/// Who lacks slots asks again after this long: somebody may have given back.
const LACK_PAUSE: Nanos = Nanos::from_millis(25);
/// Slots that nobody wants are kept for so long: the next message may be near.
const IDLE_KEPT: Nanos = Nanos::from_millis(200);

impl Feed {
    /// Asks for slots if they are wanted, or must be asked for again. When to
    /// look again.
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
        let renew_at = ends_at - Nanos(self.life.0 / 2);
        let lacks = demand.is_some_and(|it| !limit.fits(now, it.class, Need::whole(it.cost)));
        let Some(wanted) = wanted(limit, in_use, demand) else {
            // Nobody wants any and none is in use: back they go.
            let idle_at = self.retry_at + IDLE_KEPT;
            if slots == 0 {
                return Mono::NEVER;
            }
            if now.mono < idle_at {
                return idle_at.min(ends_at);
            }
            let nothing = Wanted {
                class: Class::Critical,
                out_of_turn: false,
                earned: false,
                tokens: 0,
                at_least: 0,
                held: 0,
            };
            limit.hold(0, now.mono);
            return self.ask(now, id, limit, nothing, actions);
        };
        let ask_at = if lacks {
            self.retry_at
        } else {
            renew_at.max(self.retry_at)
        };
        if now.mono < ask_at {
            return ask_at;
        }
        self.ask(now, id, limit, wanted, actions)
    }

    /// The ledger lets this node hold so many slots.
    pub(super) fn held(
        &mut self,
        now: &Now,
        asked: &Asked,
        limit: &mut Limit,
        slots: u32,
        life: Nanos,
    ) -> Mono {
        self.retry_at = now.mono + LACK_PAUSE;
        if asked.is_trustworthy(now, life) {
            limit.hold(slots, asked.at + life);
        }
        self.retry_at
    }
}

/// What is in use and what would be if all who wait were served.
fn wanted(limit: &Limit, in_use: u32, demand: Option<Demand>) -> Option<Wanted> {
    let waiting = demand.map_or(0, |demand| {
        let flows = u32::try_from(demand.flows).unwrap_or(u32::MAX).max(1);
        flows.saturating_mul(demand.cost)
    });
    let tokens = in_use.saturating_add(waiting);
    (tokens > 0).then(|| Wanted {
        // Slots serve whoever takes them.
        out_of_turn: false,
        earned: false,
        class: demand.map_or(Class::Critical, |demand| demand.class),
        tokens: tokens.min(limit.spec().capacity()).max(in_use),
        at_least: demand.map_or(0, |demand| demand.cost),
        held: in_use,
    })
}
