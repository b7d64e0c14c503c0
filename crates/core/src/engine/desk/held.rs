//! Who is held by what.

use super::super::standing::Holder;
use super::Desk;
use crate::breaker::State;
use crate::handle::{AccountId, LaneId};
use crate::time::Mono;

/// An account that is held, at a lane or everywhere.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Held {
    pub account: AccountId,
    pub lane: Option<LaneId>,
    pub by: Holder,
    pub until: Option<Mono>,
    pub per_minute: Option<u64>,
}

impl Desk {
    /// All accounts that are held beside their limits.
    pub(in crate::engine) fn held(&self, now: Mono) -> Vec<Held> {
        let mut held = Vec::new();
        let mut add = |account, lane, by, until, per_minute| {
            held.push(Held {
                account,
                lane,
                by,
                until,
                per_minute,
            });
        };
        for (id, account) in self.accounts() {
            let breaker = self.breakers.of_account(id);
            match (account.blocked_until, breaker) {
                (Some(until), State::Open { .. }) => {
                    add(id, None, Holder::Breaker, Some(until), None);
                }
                (Some(until), _) => add(id, None, Holder::Asked, Some(until), None),
                (None, State::HalfOpen { .. }) => add(id, None, Holder::Probe, None, None),
                (None, _) => {}
            }
            if account.blocked_until.is_none()
                && let Some(per_minute) = self.kept_by(account.pool, id, now)
            {
                add(id, None, Holder::Pressure, None, Some(per_minute));
            }
        }
        for (id, lane, state, stopped_until) in self.breakers.of_pairs() {
            match (state, stopped_until) {
                (State::Open { until }, _) => {
                    add(id, Some(lane), Holder::Breaker, Some(until), None);
                }
                (_, Some(until)) => add(id, Some(lane), Holder::Refusals, Some(until), None),
                (State::HalfOpen { .. }, _) => add(id, Some(lane), Holder::Probe, None, None),
                (State::Closed, None) => {}
            }
        }
        held
    }
}
