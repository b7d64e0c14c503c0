//! The desk: lanes, accounts and pools, and the limits between them.
//!
//! It translates limits into the bits that a pool matches, takes an account's
//! tokens when a message goes out, and tells the schedule which gates to serve.

mod gates;
mod limits;

use std::collections::{BTreeMap, BTreeSet};

use super::account_limits::{AccountLimits, Owner};
use super::holdups::{AtGates, ByClass, Holdups};
use super::limits::Maker;
use crate::account::AccountSpec;
use crate::class::Class;
use crate::destination::Destination;
use crate::flow::FlowKey;
use crate::handle::{AccountId, LaneId, PlaceId, PoolId, SessionRef};
use crate::name::Name;
use crate::policy::set::Policies;
use crate::pool::{Pool, PoolSettings, SessionCaps};
use crate::time::{Mono, Nanos, Now};

/// One lane: pool x destination.
#[derive(Debug)]
pub(super) struct Lane {
    pub pool: PoolId,
    pub destination: Destination,
    /// Where its flows wait for an account.
    pub gate: PlaceId,
    /// A flow key that stands for the lane where policies are asked.
    facts: FlowKey,
    /// Heads at its gate, as the desk was last told.
    standing: ByClass,
}

/// One account.
#[derive(Debug)]
pub(super) struct Account {
    pub spec: AccountSpec,
    pub pool: PoolId,
    /// The far end asked us to wait, or a pause holds it.
    pub blocked_until: Option<Mono>,
    pub paused: bool,
    holdups: Holdups,
}

/// Lanes, accounts and pools.
#[derive(Debug, Default)]
pub(super) struct Desk {
    settings: PoolSettings,
    pools: Vec<Pool>,
    pool_names: BTreeMap<Name, PoolId>,
    lanes: Vec<Lane>,
    lane_keys: BTreeMap<(PoolId, Destination), LaneId>,
    accounts: Vec<Option<Account>>,
    account_names: BTreeMap<Name, AccountId>,
    pub limits: AccountLimits,
    blocked: BTreeSet<(Mono, AccountId)>,
    /// Pools in which something may be matched, opened or closed.
    touched: BTreeSet<PoolId>,
    /// Heads at the gates of each pool.
    at_gates: Vec<AtGates>,
    /// Accounts whose limits shut since the desk was last told of the gates.
    newly_shut: Vec<AccountId>,
}

impl Desk {
    pub fn new(settings: PoolSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    pub fn pool_id(&mut self, name: &Name) -> PoolId {
        if let Some(&id) = self.pool_names.get(name) {
            return id;
        }
        let id = PoolId(u32::try_from(self.pools.len()).expect("fewer than 2^32 pools"));
        self.pools.push(Pool::new(self.settings));
        self.at_gates.push(AtGates::default());
        self.pool_names.insert(name.clone(), id);
        id
    }

    pub fn find_lane(&self, pool: PoolId, destination: &Destination) -> Option<LaneId> {
        self.lane_keys.get(&(pool, destination.clone())).copied()
    }

    /// The id that the next lane gets.
    pub fn next_lane(&self) -> LaneId {
        LaneId(u32::try_from(self.lanes.len()).expect("fewer than 2^32 lanes"))
    }

    /// Adds a lane with its gate.
    pub fn add_lane(
        &mut self,
        now: &Now,
        key: &FlowKey,
        pool: PoolId,
        gate: PlaceId,
        policies: &Policies,
        maker: &mut Maker,
    ) -> LaneId {
        let id = self.next_lane();
        let destination = key.destination.clone();
        self.lane_keys.insert((pool, destination.clone()), id);
        self.lanes.push(Lane {
            pool,
            destination,
            gate,
            facts: key.clone(),
            standing: ByClass::default(),
        });
        if let Some(pool) = self.pools.get_mut(pool.index()) {
            pool.add_lane(id);
        }
        self.touched.insert(pool);
        let accounts: Vec<AccountId> = self
            .accounts()
            .filter(|(_, account)| account.pool == pool)
            .map(|(account, _)| account)
            .collect();
        for account in accounts {
            self.relimit_pair(now, account, id, policies, maker);
        }
        id
    }

    pub fn lane(&self, id: LaneId) -> &Lane {
        self.lanes.get(id.index()).expect("a lane of this desk")
    }

    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    pub fn account(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(id.index()).and_then(Option::as_ref)
    }

    pub fn accounts(&self) -> impl Iterator<Item = (AccountId, &Account)> {
        self.accounts
            .iter()
            .enumerate()
            .filter_map(|(index, account)| Some((AccountId(index as u32), account.as_ref()?)))
    }

    pub fn account_count(&self, pool: PoolId) -> usize {
        self.accounts()
            .filter(|(_, account)| account.pool == pool)
            .count()
    }

    pub fn find_account(&self, name: &Name) -> Option<AccountId> {
        self.account_names.get(name).copied()
    }

    fn pool(&self, id: PoolId) -> &Pool {
        self.pools.get(id.index()).expect("a pool of this desk")
    }

    pub fn pool_mut(&mut self, id: PoolId) -> &mut Pool {
        self.touched.insert(id);
        self.pools.get_mut(id.index()).expect("a pool of this desk")
    }

    /// Adds an account or changes one.
    pub fn set_account(
        &mut self,
        now: &Now,
        spec: AccountSpec,
        policies: &Policies,
        maker: &mut Maker,
    ) -> AccountId {
        let pool = self.pool_id(&spec.pool);
        let known = self.find_account(&spec.id);
        if let Some(id) = known
            && self.account(id).is_some_and(|account| account.pool != pool)
        {
            self.remove_account(now, &spec.id);
        }
        let id = self.find_account(&spec.id).unwrap_or_else(|| {
            AccountId(u32::try_from(self.accounts.len()).expect("fewer than 2^32 accounts"))
        });
        if self.accounts.len() <= id.index() {
            self.accounts.resize_with(id.index() + 1, || None);
        }
        self.account_names.insert(spec.id.clone(), id);
        let caps = caps_of(&spec, policies);
        let (blocked_until, paused, holdups) = self
            .account(id)
            .map(|old| (old.blocked_until, old.paused, old.holdups))
            .unwrap_or_default();
        if let Some(slot) = self.accounts.get_mut(id.index()) {
            *slot = Some(Account {
                spec,
                pool,
                blocked_until,
                paused,
                holdups,
            });
        }
        self.pool_mut(pool).add_account(id, caps);
        self.pool_mut(pool).set_room(id, true);
        self.relimit_account(now, id, policies, maker);
        id
    }

    /// Takes an account out.
    pub fn remove_account(&mut self, now: &Now, name: &Name) {
        let Some(id) = self.account_names.remove(name) else {
            return;
        };
        let Some(account) = self.accounts.get_mut(id.index()).and_then(Option::take) else {
            return;
        };
        self.pool_mut(account.pool).remove_account(now.mono, id);
        self.limits.remove(Owner::Account(id));
        for index in 0..self.lanes.len() {
            self.limits.remove(Owner::Pair(id, LaneId(index as u32)));
        }
    }

    /// Whether some account can take a message of this lane and class now.
    pub fn can_send(&self, lane: LaneId, class: Class) -> bool {
        self.pool(self.lane(lane).pool).can_send(lane, class)
    }

    /// Chooses an account and takes its limits; the one that was matched if any.
    pub fn take(
        &mut self,
        now: &Now,
        lane: LaneId,
        class: Class,
        cost: u32,
        matched: Option<AccountId>,
    ) -> Option<(AccountId, SessionRef)> {
        let id = self.lane(lane).pool;
        let pool = self.pool_mut(id);
        let from_match = matched.and_then(|account| {
            Some((
                account,
                pool.take_from(now.mono, account, lane, class, cost)?,
            ))
        });
        let (account, session) = from_match.or_else(|| pool.take(now.mono, lane, class, cost))?;
        for owner in [Owner::Account(account), Owner::Pair(account, lane)] {
            if self.limits.has(owner) {
                self.limits.take(now, owner, class, cost);
                self.refresh(now, owner);
            }
        }
        while let Some(owner) = self.limits.pop_changed() {
            self.refresh(now, owner);
        }
        Some((account, SessionRef { pool: id, session }))
    }

    /// A delivery ended.
    pub fn released(
        &mut self,
        now: &Now,
        account: AccountId,
        lane: LaneId,
        session: SessionRef,
        cost: u32,
        lives: bool,
    ) {
        self.pool_mut(session.pool)
            .released(now.mono, session.session, lives);
        for owner in [Owner::Account(account), Owner::Pair(account, lane)] {
            if self.limits.has(owner) && self.limits.release(owner, cost) {
                self.refresh(now, owner);
            }
        }
    }

    /// Holds an account back until a time: the far end said so.
    pub fn block(&mut self, id: AccountId, until: Mono) {
        let Some(account) = self.accounts.get_mut(id.index()).and_then(Option::as_mut) else {
            return;
        };
        if account.blocked_until.is_some_and(|old| old >= until) {
            return;
        }
        if let Some(old) = account.blocked_until.replace(until) {
            self.blocked.remove(&(old, id));
        }
        self.blocked.insert((until, id));
        let pool = account.pool;
        self.pool_mut(pool).block_account(id);
    }

    /// Pauses an account or lifts its pause.
    pub fn set_paused(&mut self, id: AccountId, paused: bool) {
        let Some(account) = self.accounts.get_mut(id.index()).and_then(Option::as_mut) else {
            return;
        };
        account.paused = paused;
        let (pool, blocked) = (account.pool, account.blocked_until.is_some());
        if paused {
            self.pool_mut(pool).block_account(id);
        } else if !blocked {
            self.pool_mut(pool).unblock_account(id);
        }
    }

    /// Lets time pass: timers of limits, blocks and sessions.
    pub fn wake(&mut self, now: &Now) {
        while let Some(owner) = self.limits.pop_ripe(now.mono) {
            self.limits.note_hungry(owner);
            self.refresh(now, owner);
        }
        while let Some(owner) = self.limits.pop_changed() {
            self.refresh(now, owner);
        }
        while let Some(&(at, id)) = self.blocked.first() {
            if at > now.mono {
                break;
            }
            self.blocked.remove(&(at, id));
            if let Some(account) = self.accounts.get_mut(id.index()).and_then(Option::as_mut) {
                account.blocked_until = None;
                let (pool, paused) = (account.pool, account.paused);
                if !paused {
                    self.pool_mut(pool).unblock_account(id);
                }
            }
        }
        for index in 0..self.pools.len() {
            let id = PoolId(index as u32);
            if self.pool(id).next_wake().is_some_and(|at| at <= now.mono) {
                self.pool_mut(id).wake(now.mono);
            }
        }
    }

    /// When [`Desk::wake`] wants to be called.
    pub fn next_wake(&self) -> Mono {
        if !self.touched.is_empty() {
            return Mono(0);
        }
        let blocked = self.blocked.first().map_or(Mono::NEVER, |&(at, _)| at);
        let pools = self
            .pools
            .iter()
            .filter_map(Pool::next_wake)
            .min()
            .unwrap_or(Mono::NEVER);
        self.limits.next_wake().min(blocked).min(pools)
    }

    /// Sessions, open or opening, of all pools.
    pub fn sessions(&self) -> u64 {
        self.pools
            .iter()
            .map(|pool| u64::from(pool.counts().live()))
            .sum()
    }

    /// A pool in which something may be matched, opened or closed.
    pub fn first_touched(&self) -> Option<PoolId> {
        self.touched.first().copied()
    }

    /// Nothing is left to do in a pool.
    pub fn untouch(&mut self, id: PoolId) {
        self.touched.remove(&id);
    }

    /// The next account and lane to be matched in a pool.
    pub fn next_match(&mut self, id: PoolId) -> Option<(AccountId, LaneId, Class)> {
        self.pools.get_mut(id.index())?.next_match()
    }
}

/// What the pool must know of an account's sessions.
fn caps_of(spec: &AccountSpec, policies: &Policies) -> SessionCaps {
    let slowest = policies
        .for_account(spec)
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
        rate_milli: slowest.unwrap_or(1_000_000),
    }
}
