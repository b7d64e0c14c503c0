//! Pools come with their first account or flow, and go with their last.
//!
//! Messages may name any pool, also one that has no accounts. Its number can be
//! another's once it has no accounts, lanes and sessions; what it knew of
//! sessions stays with the number, so that what is heard late of one is not
//! taken for news of another.

use std::collections::{BTreeMap, BTreeSet};

use super::cost::Regime;
use super::{Desk, Side};
use crate::handle::PoolId;
use crate::name::Name;
use crate::pool::{ClassMask, Pool};
use crate::pressure::{Episode, Recent};
use crate::time::Mono;

impl Side {
    fn new(name: Name, pool: Pool, sizes: u64) -> Self {
        Self {
            name,
            pool,
            wakes_at: Mono::NEVER,
            accounts: BTreeSet::new(),
            lanes: Vec::new(),
            dedicated: BTreeMap::new(),
            regime: Regime::default(),
            sizes,
            told: ClassMask::NONE,
            sated: BTreeSet::new(),
            recent: Recent::default(),
            episode: Episode::default(),
        }
    }
}

impl Desk {
    /// The pool of this name, made if need be.
    pub(in crate::engine) fn pool_id(&mut self, name: &Name) -> PoolId {
        if let Some(&id) = self.pool_names.get(name) {
            return id;
        }
        let id = match self.free_pools.take(self.pools.len()).map(PoolId) {
            Some(id) => {
                let side = self.side_mut(id);
                let pool = std::mem::take(&mut side.pool);
                *side = Side::new(name.clone(), pool, side.sizes + 1);
                id
            }
            None => {
                let id = PoolId(u32::try_from(self.pools.len()).expect("fewer than 2^32 pools"));
                self.at_gates.push(Default::default());
                let pool = Pool::new(self.settings);
                self.pools.push(Side::new(name.clone(), pool, 0));
                id
            }
        };
        self.pool_names.insert(name.clone(), id);
        id
    }

    /// A pool lost an account or a lane: perhaps nobody uses it any more.
    pub(super) fn look_at_pool(&mut self, id: PoolId) {
        let side = self.side(id);
        if side.accounts.is_empty() && side.lanes.is_empty() {
            self.idle_pools.push_back(id);
        }
    }

    /// Pools that nobody uses and that are not gone yet.
    pub(in crate::engine) fn idle_pools(&self) -> usize {
        self.idle_pools.len()
    }

    /// Looks at some pools that nobody uses; whether one is gone.
    pub(in crate::engine) fn tidy_pools(&mut self, looks: usize) -> bool {
        let mut any = false;
        for _ in 0..looks.min(self.idle_pools.len()) {
            let Some(id) = self.idle_pools.pop_front() else {
                break;
            };
            let side = self.side(id);
            let is_used = !side.accounts.is_empty() || !side.lanes.is_empty();
            // It may have stood in the list twice, or be another's by now.
            if is_used || self.pool_names.get(&side.name) != Some(&id) {
                continue;
            }
            if side.pool.counts().live() > 0 || self.touched.contains(id) {
                self.idle_pools.push_back(id);
                continue;
            }
            let name = side.name.clone();
            self.pool_names.remove(&name);
            self.set_wake(id, Mono::NEVER);
            self.free_pools.give(id.0);
            any = true;
        }
        any
    }

    /// Nothing is left to do in a pool.
    pub(in crate::engine) fn untouch(&mut self, id: PoolId) {
        self.touched.remove(id);
        let at = self.pool(id).next_wake().unwrap_or(Mono::NEVER);
        self.set_wake(id, at);
    }

    fn set_wake(&mut self, id: PoolId, at: Mono) {
        let before = std::mem::replace(&mut self.side_mut(id).wakes_at, at);
        if before == at {
            return;
        }
        if before != Mono::NEVER {
            self.pool_wakes.remove(&(before, id));
        }
        if at != Mono::NEVER {
            self.pool_wakes.insert((at, id));
        }
    }

    /// Wakes pools whose time has come. Those that were touched may have
    /// another time than is written down.
    pub(super) fn wake_pools(&mut self, now: Mono) {
        while let Some(&(at, id)) = self.pool_wakes.first() {
            if at > now {
                break;
            }
            self.set_wake(id, Mono::NEVER);
            self.touched.insert(id);
        }
        let mut next = self.touched.first();
        while let Some(id) = next {
            next = self.touched.first_from(id.0 + 1);
            if self.pool(id).next_wake().is_some_and(|at| at <= now) {
                self.pool_mut(id).wake(now);
            }
        }
    }

    /// When a pool wants to be woken next.
    pub(super) fn next_pool_wake(&self) -> Mono {
        self.pool_wakes.first().map_or(Mono::NEVER, |&(at, _)| at)
    }
}
