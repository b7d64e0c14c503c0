//! The desk: lanes, accounts and pools, and the limits between them.
//!
//! It translates limits into the bits that a pool matches, takes an account's
//! tokens when a message goes out, and tells the schedule which gates to serve.
//!
//! A lane is pool x destination. A tenant that has accounts of its own in the
//! pool has lanes of its own beside it, at which they and the shared accounts
//! serve; the shared lanes see the shared accounts only.
//!
//! In `pools` and `lanes`: pools and lanes come and go. In `accounts`: accounts come, change and go. In `limits`: their limits as
//! bits. In `cost`: what an account must have room for. In `connects`: how fast
//! it may connect. In `breakers`: whom to leave alone. In `pressure`: blocks, and what the others may do meanwhile. In
//! `slots`: how many requests at once. In `held`: who is held by what.

mod accounts;
mod breakers;
mod connects;
mod cost;
mod gates;
mod held;
mod lanes;
mod limits;
mod pool_set;
mod pools;
mod pressure;
mod slots;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use self::breakers::Breakers;
pub(super) use self::breakers::{Heard, Standstills, Turn};
use self::connects::Connects;
use self::cost::Regime;
use self::pool_set::PoolSet;
use self::pressure::{Capped, Caps};
use super::account_limits::{AccountLimits, Owner};
use super::counts::Places;
use super::holdups::{AtGates, ByClass, Holdups};
use super::lessons::Lessons;
use crate::account::AccountSpec;
use crate::breaker::BreakerSettings;
use crate::class::Class;
use crate::destination::Destination;
use crate::flow::FlowKey;
use crate::free_numbers::FreeNumbers;
use crate::handle::{AccountId, AccountLimitId, LaneId, PlaceId, PoolId, SessionRef};
use crate::name::Name;
use crate::pool::{ClassMask, Pool, PoolSettings};
use crate::pressure::{Episode, Recent};
use crate::time::{Mono, Now};

/// One lane: pool x destination.
#[derive(Debug)]
pub(super) struct Lane {
    pub pool: PoolId,
    pub destination: Destination,
    /// Where its flows wait for an account.
    pub gate: PlaceId,
    /// A flow key that stands for the lane where policies are asked.
    pub facts: Arc<FlowKey>,
    /// Whose lane it is, if accounts are kept for that tenant.
    tenant: Option<Name>,
    /// Where it stands among the lanes of its pool.
    at: u32,
    /// Flows in it, and deliveries under way.
    flows: u32,
    in_flight: u32,
    /// Whether it stands in the list of lanes that nobody uses, and since when
    /// that is so.
    is_listed: bool,
    idle_since: Mono,
    /// Heads at its gate, as the desk was last told.
    standing: ByClass,
    /// Deliveries so far.
    pub sent: u64,
    /// What the heaviest of its first messages costs.
    heaviest: u32,
    /// The largest cost that one of its accounts can ever take, and of which
    /// state of the pool's limits that is true.
    largest: Option<(u64, u32)>,
}

/// One account.
#[derive(Debug)]
pub(super) struct Account {
    pub spec: AccountSpec,
    pub pool: PoolId,
    /// The far end asked us to wait, or a pause holds it.
    pub blocked_until: Option<Mono>,
    /// Until when it is so by what is written down.
    pub block_written: Option<Mono>,
    pub paused: bool,
    holdups: Holdups,
    /// Its limits at destinations are not all known yet.
    pub settling: bool,
    /// Where its replies are counted, once there was one.
    pub tallies: Option<Places>,
    /// Until when the far end last asked us to wait.
    pub asked_until: Option<Mono>,
    /// What it sent lately, and what it is held to.
    capped: Capped,
    /// The one message that its breaker let through is under way.
    probing: bool,
}

impl Account {
    fn is_held(&self) -> bool {
        self.blocked_until.is_some() || self.paused || self.settling || self.probing
    }
}

/// A pool and what the desk keeps beside it.
#[derive(Debug)]
struct Side {
    name: Name,
    pool: Pool,
    /// When the pool wants to be woken, as is written down.
    wakes_at: Mono,
    accounts: BTreeSet<AccountId>,
    lanes: Vec<LaneId>,
    /// Tenants with accounts of their own, and how many.
    dedicated: BTreeMap<Name, u32>,
    regime: Regime,
    /// Changes when what an account can ever take does.
    sizes: u64,
    /// The classes that wanted accounts when their limits were last told so.
    told: ClassMask,
    /// Fed limits that found nobody who wants their tokens.
    sated: BTreeSet<AccountLimitId>,
    /// What its accounts sent lately.
    recent: Recent,
    /// Which of them are blocked.
    episode: Episode,
}

/// A message's way out.
#[derive(Debug)]
pub(super) struct Taken {
    pub account: AccountId,
    pub session: SessionRef,
    /// Limits of the account that hold a slot for it.
    pub held: Box<[AccountLimitId]>,
    /// What its reply teaches of the account's rates.
    pub lessons: Lessons,
}

/// Lanes, accounts and pools.
#[derive(Debug, Default)]
pub(super) struct Desk {
    settings: PoolSettings,
    pools: Vec<Side>,
    pool_names: BTreeMap<Name, PoolId>,
    free_pools: FreeNumbers,
    /// Pools that may have neither accounts nor lanes.
    idle_pools: VecDeque<PoolId>,
    pool_wakes: BTreeSet<(Mono, PoolId)>,
    lanes: Vec<Option<Lane>>,
    free_lanes: FreeNumbers,
    /// Lanes that nobody uses.
    idle_lanes: VecDeque<LaneId>,
    lane_keys: BTreeMap<(PoolId, Destination, Option<Name>), LaneId>,
    accounts: Vec<Option<Account>>,
    account_names: BTreeMap<Name, AccountId>,
    tenants: BTreeMap<Name, u32>,
    pub limits: AccountLimits,
    connects: Connects,
    caps: Caps,
    breakers: Breakers,
    blocked: BTreeSet<(Mono, AccountId)>,
    /// Pools in which the cost to have room for is looked at again.
    regimes: BTreeSet<(Mono, PoolId)>,
    /// Pairs that are paused.
    held_pairs: BTreeSet<(AccountId, LaneId)>,
    /// Pools in which something may be matched, opened or closed.
    touched: PoolSet,
    /// Heads at the gates of each pool.
    at_gates: Vec<AtGates>,
    /// Accounts whose limits shut since the desk was last told of the gates.
    newly_shut: Vec<AccountId>,
    /// Accounts that keep to the rate of the minute before from now on, and what
    /// that is.
    newly_kept: Vec<(AccountId, u32)>,
}

impl Desk {
    pub fn new(settings: PoolSettings, breaker: BreakerSettings) -> Self {
        Self {
            settings,
            breakers: Breakers::new(breaker),
            ..Self::default()
        }
    }

    /// The name of a pool, if it is there already.
    pub fn pool_name(&self, name: &Name) -> Option<&Name> {
        self.pool_names.get_key_value(name).map(|(known, _)| known)
    }

    pub fn account(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(id.index()).and_then(Option::as_ref)
    }

    pub fn account_mut(&mut self, id: AccountId) -> Option<&mut Account> {
        self.accounts.get_mut(id.index()).and_then(Option::as_mut)
    }

    pub fn accounts(&self) -> impl Iterator<Item = (AccountId, &Account)> {
        self.accounts
            .iter()
            .enumerate()
            .filter_map(|(index, account)| Some((AccountId(index as u32), account.as_ref()?)))
    }

    pub fn find_account(&self, name: &Name) -> Option<AccountId> {
        let id = self.account_names.get(name).copied()?;
        self.account(id).map(|_| id)
    }

    fn side(&self, id: PoolId) -> &Side {
        self.pools.get(id.index()).expect("a pool of this desk")
    }

    fn side_mut(&mut self, id: PoolId) -> &mut Side {
        self.pools.get_mut(id.index()).expect("a pool of this desk")
    }

    pub fn pool(&self, id: PoolId) -> &Pool {
        &self.side(id).pool
    }

    pub fn pool_mut(&mut self, id: PoolId) -> &mut Pool {
        self.touched.insert(id);
        &mut self.side_mut(id).pool
    }

    /// Whether some account can take a message of this lane and class now.
    pub fn can_send(&self, lane: LaneId, class: Class) -> bool {
        self.can_take(lane, class, 1)
    }

    /// Whether some account can take a message of this cost now. An account
    /// that is open has room for all costs up to that of the regime.
    pub fn can_take(&self, lane: LaneId, class: Class, cost: u32) -> bool {
        let side = self.side(self.lane(lane).pool);
        side.regime.covers(cost) && side.pool.can_send_cost(lane, class, cost)
    }

    /// Chooses an account and takes its limits; the one that was matched if any.
    pub fn take(
        &mut self,
        now: &Now,
        lane: LaneId,
        class: Class,
        cost: u32,
        matched: Option<AccountId>,
    ) -> Option<Taken> {
        let id = self.lane(lane).pool;
        let pool = self.pool_mut(id);
        let from_match = matched.and_then(|account| {
            Some((
                account,
                pool.take_from(now.mono, account, lane, class, cost)?,
            ))
        });
        let (account, session) = from_match.or_else(|| pool.take(now.mono, lane, class, cost))?;
        if let Some(lane) = self.lane_mut(lane) {
            lane.sent += 1;
            lane.in_flight += 1;
        }
        let is_capped = self.note_sent(now.mono, id, account, cost);
        let (mut held, mut lessons) = (Vec::new(), Lessons::default());
        for owner in [Owner::Account(account), Owner::Pair(account, lane)] {
            if is_capped && owner == Owner::Account(account) && !self.limits.has(owner) {
                self.refresh(now, owner);
            }
            if self.limits.has(owner) {
                self.limits
                    .take(now, owner, class, cost, &mut held, &mut lessons);
                self.refresh(now, owner);
            }
        }
        self.refresh_changed(now);
        if !self.breakers.is_empty() {
            self.note_probe(now.mono, account, lane);
        }
        Some(Taken {
            account,
            session: SessionRef { pool: id, session },
            held: held.into_boxed_slice(),
            lessons,
        })
    }

    /// The clocks parted: leases are void, and accounts may be shut for it.
    pub fn clocks_parted(&mut self, now: &Now) {
        self.limits.clocks_parted(now);
        self.refresh_changed(now);
    }

    /// A delivery ended: its session and the slots it held come back.
    pub fn released(
        &mut self,
        now: &Now,
        session: SessionRef,
        held: &[AccountLimitId],
        cost: u32,
        lives: bool,
    ) {
        self.pool_mut(session.pool)
            .released(now.mono, session.session, lives);
        if !held.is_empty() {
            self.limits.release(held, cost);
            self.refresh_changed(now);
        }
    }

    /// Pauses an account or lifts its pause.
    pub fn set_paused(&mut self, id: AccountId, paused: bool) {
        if let Some(account) = self.accounts.get_mut(id.index()).and_then(Option::as_mut) {
            account.paused = paused;
            self.tell_hold(id);
        }
    }

    /// Tells the pool whether an account is held, for whatever reason.
    fn tell_hold(&mut self, id: AccountId) {
        let Some(account) = self.account(id) else {
            return;
        };
        let (pool, held) = (account.pool, account.is_held());
        let pool = self.pool_mut(pool);
        if held {
            pool.block_account(id);
        } else {
            pool.unblock_account(id);
            self.note_let_go(id);
        }
    }

    /// Pauses an account at a destination, or lifts that pause.
    pub fn set_pair_paused(&mut self, id: AccountId, lane: LaneId, paused: bool) {
        let changed = if paused {
            self.held_pairs.insert((id, lane))
        } else {
            self.held_pairs.remove(&(id, lane))
        };
        if changed {
            self.tell_pair(id, lane);
        }
    }

    /// Lets time pass: timers of limits, blocks and sessions.
    pub fn wake(&mut self, now: &Now) {
        while let Some(owner) = self.limits.pop_ripe(now.mono) {
            self.limits.note_hungry(owner);
            self.refresh(now, owner);
        }
        self.refresh_changed(now);
        self.wake_connects(now);
        self.wake_regimes(now);
        self.wake_blocks(now.mono);
        self.wake_caps(now);
        self.wake_breakers(now.mono);
        self.wake_pools(now.mono);
    }

    /// When [`Desk::wake`] wants to be called.
    pub fn next_wake(&self) -> Mono {
        if !self.touched.is_empty() {
            return Mono(0);
        }
        let blocked = self.blocked.first().map_or(Mono::NEVER, |&(at, _)| at);
        let pools = self.next_pool_wake();
        let regimes = self.regimes.first().map_or(Mono::NEVER, |&(at, _)| at);
        let limits = self.limits.next_wake().min(self.connects.next_wake());
        let limits = limits.min(self.caps.next_wake());
        let limits = limits.min(self.breakers.next_wake());
        limits.min(blocked).min(pools).min(regimes)
    }

    /// Sessions, open or opening, of all pools.
    pub fn sessions(&self) -> u64 {
        self.pools
            .iter()
            .map(|side| u64::from(side.pool.counts().live()))
            .sum()
    }

    /// A pool in which something may be matched, opened or closed.
    pub fn first_touched(&self) -> Option<PoolId> {
        self.touched.first()
    }

    /// The next account and lane to be matched in a pool.
    pub fn next_match(&mut self, id: PoolId) -> Option<(AccountId, LaneId, Class)> {
        self.pools.get_mut(id.index())?.pool.next_match()
    }
}
