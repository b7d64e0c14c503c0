//! The limits of accounts and pairs, as bits for the pool.

use std::sync::Arc;

use super::super::account_limits::{AccountLimit, Owner};
use super::super::feed::Demand;
use super::super::limits::Maker;
use super::Desk;
use crate::class::Class;
use crate::handle::{AccountId, AccountLimitId, LaneId, PoolId};
use crate::policy::applied::Applied;
use crate::policy::set::Policies;
use crate::pool::ClassMask;
use crate::time::Now;

/// Lanes that may want an account's tokens at once, for the size of a lease.
const LANES_GUESSED: usize = 8;

impl Desk {
    /// Works the limits of an account and of its pairs out anew.
    pub(in crate::engine) fn relimit_account(
        &mut self,
        now: &Now,
        id: AccountId,
        policies: &Policies,
        maker: &mut Maker,
    ) {
        let Some(account) = self.account(id) else {
            return;
        };
        let (pool, applied) = (account.pool, policies.for_account(&account.spec));
        self.assign(now, Owner::Account(id), applied, maker);
        let lanes = (0..self.lanes.len()).map(|index| LaneId(index as u32));
        for lane in lanes
            .filter(|&lane| self.lane(lane).pool == pool)
            .collect::<Vec<_>>()
        {
            self.relimit_pair(now, id, lane, policies, maker);
        }
        self.refresh(now, Owner::Account(id));
    }

    /// Works the limits of an account at a destination out.
    pub(super) fn relimit_pair(
        &mut self,
        now: &Now,
        id: AccountId,
        lane: LaneId,
        policies: &Policies,
        maker: &mut Maker,
    ) {
        let owner = Owner::Pair(id, lane);
        if !policies.has_pairs() && !self.limits.has(owner) {
            return;
        }
        let Some(account) = self.account(id) else {
            return;
        };
        let applied = policies.for_pair(&account.spec, &self.lane(lane).facts);
        self.assign(now, owner, applied, maker);
        self.refresh(now, owner);
    }

    pub(super) fn assign(
        &mut self,
        now: &Now,
        owner: Owner,
        applied: Vec<Applied>,
        maker: &mut Maker,
    ) {
        let mut ids: Vec<AccountLimitId> = Vec::with_capacity(applied.len());
        for applied in applied {
            let id = match self.limits.find(&applied.key) {
                Some(id) => {
                    if let Some(entry) = self.limits.get_mut(id)
                        && *entry.limit.spec() != applied.spec
                    {
                        entry.limit.reconfigure(now, applied.spec);
                        self.limits.note_changed(id);
                    }
                    id
                }
                None => {
                    let (limit, feed) = maker.make(now, &applied);
                    let key = Arc::new(applied.key);
                    self.limits.add(AccountLimit {
                        key,
                        limit,
                        feed,
                        owners: Vec::new(),
                        cost_max: 1,
                    })
                }
            };
            ids.push(id);
        }
        self.limits.assign(owner, ids);
    }

    /// Tells the pool for which classes an account or pair is open.
    pub(in crate::engine) fn refresh(&mut self, now: &Now, owner: Owner) {
        let open = self.limits.open_for(now, owner).unwrap_or(ClassMask::ALL);
        match owner {
            Owner::Account(id) => {
                if let Some(pool) = self.account(id).map(|account| account.pool) {
                    self.pool_mut(pool).set_ready(id, open);
                    self.note_open(id, open);
                }
            }
            Owner::Pair(id, lane) => {
                let pool = self.lane(lane).pool;
                self.pool_mut(pool).set_product_open(id, lane, open);
            }
        }
    }

    /// A message of this cost waits in a lane: accounts are open only if it fits.
    pub(in crate::engine) fn expect_cost(&mut self, now: &Now, lane: LaneId, cost: u32) {
        if cost <= 1 {
            return;
        }
        let pool = self.lane(lane).pool;
        let accounts = self.accounts().filter(|(_, account)| account.pool == pool);
        for id in accounts.map(|(id, _)| id).collect::<Vec<_>>() {
            for owner in [Owner::Account(id), Owner::Pair(id, lane)] {
                if self.limits.has(owner) && self.limits.expect_cost(owner, cost) {
                    self.refresh(now, owner);
                }
            }
        }
    }

    /// The largest cost that some account of a lane's pool can ever take.
    pub(in crate::engine) fn cost_max(&self, lane: LaneId) -> u32 {
        let pool = self.lane(lane).pool;
        let accounts = self.accounts().filter(|(_, account)| account.pool == pool);
        let able = accounts.map(|(id, _)| {
            let own = self.limits.cost_max(Owner::Account(id));
            own.min(self.limits.cost_max(Owner::Pair(id, lane)))
        });
        able.max().unwrap_or(u32::MAX)
    }

    /// What the lanes of an account's pool want of its limits, if anything.
    pub(in crate::engine) fn demand(&self, id: AccountLimitId) -> Option<Demand> {
        let entry = self.limits.get(id)?;
        let (Owner::Account(account) | Owner::Pair(account, _)) = *entry.owners.first()?;
        let wanted = self.pool(self.account(account)?.pool).wanted();
        let class = Class::ALL
            .into_iter()
            .find(|&class| wanted.contains(class))?;
        let others_below = class.below().any(|class| wanted.contains(class));
        Some(Demand {
            class,
            cost: entry.cost_max,
            flows: LANES_GUESSED,
            others_below,
        })
    }

    /// Has the limits of a pool's accounts looked at: its lanes want something.
    pub(in crate::engine) fn note_hungry(&mut self, pool: PoolId) {
        let ids = self
            .accounts
            .iter()
            .enumerate()
            .filter_map(|(index, account)| {
                let account = account.as_ref()?;
                (account.pool == pool).then_some(AccountId(index as u32))
            });
        for id in ids.collect::<Vec<_>>() {
            self.limits.note_hungry(Owner::Account(id));
        }
    }
}
