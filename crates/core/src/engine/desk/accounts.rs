//! Accounts come, change and go.
//!
//! An account keeps its handle when it leaves, so that one that comes back is
//! the same: its limits, its block and its connection rate remember what it has
//! used.

use super::super::limits::Maker;
use super::{Account, Desk};
use crate::account::AccountSpec;
use crate::handle::{AccountId, LaneId, PoolId};
use crate::name::Name;
use crate::policy::set::Policies;
use crate::pool::SessionCaps;
use crate::time::{Nanos, Now};

impl Desk {
    /// Adds an account or changes one. It is held until its limits at
    /// destinations are worked out: call [`Desk::settle`] then.
    pub(in crate::engine) fn set_account(
        &mut self,
        now: &Now,
        spec: AccountSpec,
        policies: &Policies,
        maker: &mut Maker,
    ) -> AccountId {
        let pool = self.pool_id(&spec.pool);
        if let Some(id) = self.find_account(&spec.id)
            && self.account(id).is_some_and(|account| account.pool != pool)
        {
            self.remove_account(now, &spec.id);
        }
        let next = AccountId(u32::try_from(self.accounts.len()).expect("fewer than 2^32 accounts"));
        let id = *self.account_names.entry(spec.id.clone()).or_insert(next);
        if self.accounts.len() <= id.index() {
            self.accounts.resize_with(id.index() + 1, || None);
        }
        let caps = caps_of(&spec, policies);
        let block = self.blocked.iter().find(|(_, of)| *of == id);
        let blocked_until = block.map(|&(at, _)| at);
        let old = self.account(id);
        let paused = old.is_some_and(|old| old.paused);
        let asked_until = old.and_then(|old| old.asked_until);
        let block_written = old.and_then(|old| old.block_written);
        let holdups = old.map(|old| old.holdups).unwrap_or_default();
        let capped = old.map(|old| old.capped.clone()).unwrap_or_default();
        let probing = old.is_some_and(|old| old.probing);
        let old_tenant = old.and_then(|old| old.spec.tenant.clone());
        let tenant = spec.tenant.clone();
        self.connects
            .set(now.mono, id, spec.sessions.connect_rate, maker.fill());
        if let Some(slot) = self.accounts.get_mut(id.index()) {
            *slot = Some(Account {
                spec,
                pool,
                blocked_until,
                block_written,
                paused,
                holdups,
                settling: true,
                tallies: None,
                asked_until,
                capped,
                probing,
            });
        }
        self.side_mut(pool).accounts.insert(id);
        self.count_dedicated(pool, old_tenant.as_ref(), tenant.as_ref());
        let number = tenant.as_ref().map(|name| self.tenant_number(name));
        let to = self.pool_mut(pool);
        to.add_account(id, caps);
        to.keep_for(id, number);
        if blocked_until.is_some() {
            self.note_blocked(now.mono, pool, id);
        }
        self.tell_hold(id);
        self.tell_room(now, id);
        self.relimit_account(now, id, policies, maker);
        id
    }

    /// The limits of an account at all destinations are known: it may send.
    pub(in crate::engine) fn settle(&mut self, id: AccountId) {
        if let Some(account) = self.accounts.get_mut(id.index()).and_then(Option::as_mut) {
            account.settling = false;
            self.tell_hold(id);
        }
    }

    /// Takes an account out.
    pub(in crate::engine) fn remove_account(&mut self, now: &Now, name: &Name) {
        let Some(id) = self.find_account(name) else {
            return;
        };
        let Some(account) = self.accounts.get_mut(id.index()).and_then(Option::take) else {
            return;
        };
        self.pool_mut(account.pool).remove_account(now.mono, id);
        self.count_dedicated(account.pool, account.spec.tenant.as_ref(), None);
        let side = self.side_mut(account.pool);
        side.accounts.remove(&id);
        side.episode.release(now.mono, id);
        side.sizes += 1;
        self.look_at_pool(account.pool);
        self.limits.remove(id);
        self.breakers.remove(id);
        let pairs = (id, LaneId(0))..=(id, LaneId(u32::MAX));
        let held: Vec<_> = self.held_pairs.range(pairs).copied().collect();
        for pair in held {
            self.held_pairs.remove(&pair);
        }
    }

    fn count_dedicated(&mut self, pool: PoolId, old: Option<&Name>, new: Option<&Name>) {
        let dedicated = &mut self.side_mut(pool).dedicated;
        if let Some(name) = new {
            *dedicated.entry(name.clone()).or_insert(0) += 1;
        }
        if let Some(name) = old
            && let Some(count) = dedicated.get_mut(name)
        {
            *count -= 1;
            if *count == 0 {
                dedicated.remove(name);
            }
        }
    }

    /// How many lanes an account's pool has, and one of them.
    pub(in crate::engine) fn lane_at(&self, id: AccountId, index: usize) -> Option<LaneId> {
        let pool = self.account(id)?.pool;
        self.side(pool).lanes.get(index).copied()
    }

    /// The accounts of a lane's pool.
    pub(in crate::engine) fn accounts_of(&self, lane: LaneId) -> Vec<AccountId> {
        let pool = self.lane(lane).pool;
        self.side(pool).accounts.iter().copied().collect()
    }

    /// Whether any pair is paused.
    pub(in crate::engine) fn has_held_pairs(&self) -> bool {
        !self.held_pairs.is_empty()
    }
}

/// What the pool must know of an account's sessions.
fn caps_of(spec: &AccountSpec, policies: &Policies) -> SessionCaps {
    let slowest = policies
        .written_for(spec)
        .iter()
        .filter_map(|applied| applied.spec.shape().rate)
        .map(|rate| {
            let per_1000_s = Nanos::from_secs(1_000_000).0 as u128 * u128::from(rate.count);
            u64::try_from(per_1000_s / u128::from(rate.per.0.max(1))).unwrap_or(u64::MAX)
        })
        .min();
    SessionCaps {
        kind: spec.sessions.kind,
        max_connections: spec.sessions.max_connections,
        per_destination: spec.sessions.per_destination,
        messages_per_session: spec.sessions.messages_per_session,
        idle_timeout: spec.sessions.idle_timeout,
        rate_milli: slowest.unwrap_or(1_000_000),
    }
}
