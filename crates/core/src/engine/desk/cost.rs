//! What an account must have room for to count as open.
//!
//! If an account were open as soon as it had one token, light messages would
//! take each token the moment it accrues and heavy ones would never go. So an
//! account is open if the heaviest message that waits at a gate of its pool, or
//! did so lately, fits; whoever is matched with it then finds room. An account
//! that can never take that much is open when it is full, and is not asked for
//! more than it can take. What this gives up: while heavy messages are about, the
//! last tokens of a window, fewer than the heaviest costs, stay unused.
//!
//! The cost rises at once and falls slowly: a change has every account of the
//! pool looked at, and must not come with every message.

use std::collections::BTreeMap;

use super::super::account_limits::Owner;
use super::Desk;
use crate::handle::{AccountId, LaneId, PoolId};
use crate::schedule::GateCosts;
use crate::time::{Nanos, Now};

/// For so long a cost that was seen is expected again.
const MEMORY: Nanos = Nanos::from_secs(10);

/// The cost for which the accounts of a pool are open.
#[derive(Debug)]
pub(super) struct Regime {
    cost: u32,
    /// The costs above 1 of the heaviest first message of each lane.
    waiting: BTreeMap<u32, u32>,
    /// The largest cost seen since it was last looked at.
    seen: u32,
    is_timed: bool,
}

impl Default for Regime {
    fn default() -> Self {
        Self {
            cost: 1,
            waiting: BTreeMap::new(),
            seen: 1,
            is_timed: false,
        }
    }
}

impl Regime {
    /// Whether an account that is open has room for this cost.
    pub fn covers(&self, cost: u32) -> bool {
        cost <= self.cost
    }

    fn heaviest_waiting(&self) -> u32 {
        self.waiting.last_key_value().map_or(1, |(&cost, _)| cost)
    }

    /// A lane whose heaviest first message cost this is gone.
    pub fn leave(&mut self, heaviest: u32) {
        self.shift(heaviest, 0);
    }

    fn shift(&mut self, old: u32, new: u32) {
        if new > 1 {
            *self.waiting.entry(new).or_insert(0) += 1;
        }
        if let Some(lanes) = self.waiting.get_mut(&old) {
            *lanes -= 1;
            if *lanes == 0 {
                self.waiting.remove(&old);
            }
        }
    }
}

impl Desk {
    /// What the first messages at a lane's gate cost.
    pub(in crate::engine) fn tell_costs(&mut self, now: &Now, lane: LaneId, costs: GateCosts) {
        let heaviest = costs.heaviest;
        let Some(entry) = self.lane_mut(lane) else {
            return;
        };
        let pool = entry.pool;
        let before = std::mem::replace(&mut entry.heaviest, heaviest);
        if before != heaviest {
            self.side_mut(pool).regime.shift(before, heaviest);
            self.expect_cost_in(now, pool, heaviest);
        }
        self.pool_mut(pool).set_costs(lane, costs.least);
    }

    /// A message of this cost waits in a lane, or will.
    pub(in crate::engine) fn expect_cost(&mut self, now: &Now, lane: LaneId, cost: u32) {
        self.expect_cost_in(now, self.lane(lane).pool, cost);
    }

    fn expect_cost_in(&mut self, now: &Now, pool: PoolId, cost: u32) {
        if cost <= 1 {
            return;
        }
        let regime = &mut self.side_mut(pool).regime;
        regime.seen = regime.seen.max(cost);
        if !std::mem::replace(&mut regime.is_timed, true) {
            self.regimes.insert((now.mono + MEMORY, pool));
        }
        if !self.side(pool).regime.covers(cost) {
            self.set_regime(now, pool, cost);
        }
    }

    /// Forgets costs that were not seen for a while.
    pub(super) fn wake_regimes(&mut self, now: &Now) {
        while let Some(&(at, pool)) = self.regimes.first() {
            if at > now.mono {
                return;
            }
            self.regimes.remove(&(at, pool));
            let regime = &mut self.side_mut(pool).regime;
            let waiting = regime.heaviest_waiting();
            let cost = waiting.max(std::mem::replace(&mut regime.seen, waiting));
            let before = regime.cost;
            regime.is_timed = cost > 1;
            if regime.is_timed {
                self.regimes.insert((now.mono + MEMORY, pool));
            }
            if cost != before {
                self.set_regime(now, pool, cost);
            }
        }
    }

    fn set_regime(&mut self, now: &Now, pool: PoolId, cost: u32) {
        let side = self.side_mut(pool);
        side.regime.cost = cost;
        let accounts: Vec<AccountId> = side.accounts.iter().copied().collect();
        for id in accounts {
            let pairs = self.limits.pairs_of(id).into_iter();
            let pairs = pairs.map(|lane| Owner::Pair(id, lane));
            for owner in pairs.chain([Owner::Account(id)]) {
                if self.limits.has(owner) {
                    self.limits.set_cost(owner, cost);
                    self.refresh(now, owner);
                }
            }
        }
    }

    /// What an owner's pool needs room for.
    pub(super) fn regime_cost(&self, owner: Owner) -> u32 {
        let (Owner::Account(id) | Owner::Pair(id, _)) = owner;
        let pool = self.account(id).map(|account| account.pool);
        pool.map_or(1, |pool| self.side(pool).regime.cost)
    }

    /// The largest cost that some account of a lane can ever take; anything
    /// while it has no account.
    pub(in crate::engine) fn cost_max(&mut self, lane: LaneId) -> u32 {
        let pool = self.lane(lane).pool;
        let side = self.side(pool);
        let known = self.lane(lane).largest;
        if let Some((_, largest)) = known.filter(|&(of, _)| of == side.sizes) {
            return largest;
        }
        let sizes = side.sizes;
        let serving = side.accounts.iter().copied().filter(|&id| {
            let account = self.account(id);
            account.is_some_and(|account| self.serves(account, lane))
        });
        let able = serving.map(|id| {
            let own = self.limits.largest(Owner::Account(id));
            own.min(self.limits.largest(Owner::Pair(id, lane)))
        });
        let largest = able.max().unwrap_or(u32::MAX);
        if let Some(entry) = self.lane_mut(lane) {
            entry.largest = Some((sizes, largest));
        }
        largest
    }
}
