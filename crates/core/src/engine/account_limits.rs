//! The limits of accounts, and of accounts at a destination.
//!
//! Flows do not wait at these: with 500 accounts they would wait at 500 places.
//! Instead each limit opens and shuts its account, or its account's pair with a
//! lane, by class, and the pool matches what is open. One timer per owner says
//! when it opens for the next class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::feed::Feed;
use crate::class::Class;
use crate::handle::{AccountId, AccountLimitId, LaneId};
use crate::limit::need::Need;
use crate::limit::{Kind, Limit, Until};
use crate::policy::key::LimitKey;
use crate::pool::ClassMask;
use crate::time::{Mono, Now};

/// What a limit opens and shuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    Account(AccountId),
    Pair(AccountId, LaneId),
}

/// One limit of an owner.
#[derive(Debug)]
pub(super) struct AccountLimit {
    pub key: Arc<LimitKey>,
    pub limit: Limit,
    pub feed: Option<Feed>,
    /// Usually one; an IP or a brand may be that of several accounts.
    pub owners: Vec<Owner>,
    pub cost_max: u32,
}

/// The limits of one owner.
#[derive(Debug, Default)]
struct Owned {
    limits: Vec<AccountLimitId>,
    timer: Option<Mono>,
    /// When one of its feeds wants a look, whatever else happens.
    look_at: Option<Mono>,
}

/// All limits of accounts and pairs.
#[derive(Debug, Default)]
pub(super) struct AccountLimits {
    slab: Vec<Option<AccountLimit>>,
    by_key: BTreeMap<Arc<LimitKey>, AccountLimitId>,
    owners: BTreeMap<Owner, Owned>,
    /// How many pairs have limits.
    limited_pairs: usize,
    timers: BTreeSet<(Mono, Owner)>,
    /// Limits that spend granted tokens and need a look.
    hungry: Vec<AccountLimitId>,
    /// Owners that share a limit which another owner took from.
    changed: Vec<Owner>,
}

impl AccountLimits {
    pub fn get(&self, id: AccountLimitId) -> Option<&AccountLimit> {
        self.slab.get(id.index()).and_then(Option::as_ref)
    }

    pub fn get_mut(&mut self, id: AccountLimitId) -> Option<&mut AccountLimit> {
        self.slab.get_mut(id.index()).and_then(Option::as_mut)
    }

    /// The limit of this key, if there is one.
    pub fn find(&self, key: &LimitKey) -> Option<AccountLimitId> {
        self.by_key.get(key).copied()
    }

    /// Adds a limit that nobody owns yet.
    pub fn add(&mut self, limit: AccountLimit) -> AccountLimitId {
        let id = AccountLimitId(u32::try_from(self.slab.len()).expect("fewer than 2^32 limits"));
        self.by_key.insert(Arc::clone(&limit.key), id);
        if limit.feed.is_some() {
            self.hungry.push(id);
        }
        self.slab.push(Some(limit));
        id
    }

    /// Makes these the limits of an owner, and no others.
    pub fn assign(&mut self, owner: Owner, limits: Vec<AccountLimitId>) {
        for &id in &limits {
            if let Some(entry) = self.get_mut(id)
                && !entry.owners.contains(&owner)
            {
                entry.owners.push(owner);
            }
        }
        let is_pair = usize::from(matches!(owner, Owner::Pair(..)));
        let old = if limits.is_empty() {
            let Some(owned) = self.owners.remove(&owner) else {
                return;
            };
            self.limited_pairs -= is_pair;
            if let Some(at) = owned.timer {
                self.timers.remove(&(at, owner));
            }
            owned.limits
        } else {
            if !self.owners.contains_key(&owner) {
                self.limited_pairs += is_pair;
            }
            let owned = self.owners.entry(owner).or_default();
            std::mem::replace(&mut owned.limits, limits.clone())
        };
        for id in old.into_iter().filter(|id| !limits.contains(id)) {
            self.disown(id, owner);
        }
    }

    fn disown(&mut self, id: AccountLimitId, owner: Owner) {
        let Some(entry) = self.get_mut(id) else {
            return;
        };
        entry.owners.retain(|&other| other != owner);
        if entry.owners.is_empty()
            && let Some(gone) = self.slab.get_mut(id.index()).and_then(Option::take)
        {
            self.by_key.remove(&gone.key);
        }
    }

    /// Forgets an owner with all its limits.
    pub fn remove(&mut self, owner: Owner) {
        self.assign(owner, Vec::new());
    }

    /// The limits of an owner.
    pub fn of(&self, owner: Owner) -> impl Iterator<Item = &AccountLimit> {
        let limits = self.owners.get(&owner).map(|owned| owned.limits.as_slice());
        let limits = limits.unwrap_or_default().iter();
        limits.filter_map(|&id| self.get(id))
    }

    /// All limits, in order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &AccountLimit> {
        self.by_key.values().filter_map(|&id| self.get(id))
    }

    /// Whether an owner has limits at all.
    pub fn has(&self, owner: Owner) -> bool {
        self.owners
            .get(&owner)
            .is_some_and(|owned| !owned.limits.is_empty())
    }

    /// Takes a message's cost from all limits of an owner.
    pub fn take(&mut self, now: &Now, owner: Owner, class: Class, cost: u32) {
        let Some(owned) = self.owners.get(&owner) else {
            return;
        };
        for &id in &owned.limits {
            if let Some(entry) = self.slab.get_mut(id.index()).and_then(Option::as_mut) {
                entry.limit.take(now, class, cost);
                if entry.owners.len() > 1 {
                    self.changed
                        .extend(entry.owners.iter().filter(|&&other| other != owner));
                }
                if let Some(feed) = &mut entry.feed {
                    feed.note_taken(cost);
                    self.hungry.push(id);
                }
            }
        }
    }

    /// A delivery ended: slots come back.
    pub fn release(&mut self, owner: Owner, cost: u32) -> bool {
        let Some(owned) = self.owners.get(&owner) else {
            return false;
        };
        let mut any = false;
        for &id in &owned.limits {
            if let Some(entry) = self.slab.get_mut(id.index()).and_then(Option::as_mut)
                && entry.limit.shape().kind == Kind::Concurrency
            {
                entry.limit.release(cost);
                any = true;
            }
        }
        any
    }

    /// Learns a cost that an owner may be asked for; whether it is a larger one.
    pub fn expect_cost(&mut self, owner: Owner, cost: u32) -> bool {
        let Some(owned) = self.owners.get(&owner) else {
            return false;
        };
        let mut larger = false;
        for &id in &owned.limits {
            if let Some(entry) = self.slab.get_mut(id.index()).and_then(Option::as_mut)
                && cost > entry.cost_max
            {
                entry.cost_max = cost.min(entry.limit.largest_cost());
                entry.limit.expect_cost(cost);
                larger = true;
                if entry.limit.reservation_due().is_some() {
                    self.hungry.push(id);
                }
            }
        }
        larger
    }

    /// The largest cost that an owner's limits can ever take.
    pub fn cost_max(&self, owner: Owner) -> u32 {
        let limits = self.owners.get(&owner).map(|owned| owned.limits.as_slice());
        let entries = limits
            .unwrap_or_default()
            .iter()
            .filter_map(|&id| self.get(id));
        entries
            .map(|entry| entry.limit.largest_cost())
            .min()
            .unwrap_or(u32::MAX)
    }

    /// The next owner that another one's send may have shut.
    pub fn pop_changed(&mut self) -> Option<Owner> {
        self.changed.pop()
    }

    /// For which classes an owner is open now; sets its timer for the next.
    /// None if it has no limits.
    pub fn open_for(&mut self, now: &Now, owner: Owner) -> Option<ClassMask> {
        let owned = self.owners.get(&owner)?;
        let mut open = ClassMask::ALL;
        let mut next = None;
        // The least urgent class needs the most: if it fits, all do.
        for class in Class::ALL.into_iter().rev() {
            match self.opens_at(now, &owned.limits, class) {
                None => break,
                Some(at) => {
                    open = open.minus(ClassMask::of(class));
                    if at != Mono::NEVER {
                        next = Some(at);
                    }
                }
            }
        }
        // Leased tokens shut it again when their life ends.
        let lapses = owned
            .limits
            .iter()
            .filter_map(|&id| self.get(id)?.limit.lapses_at(now));
        let next = next.into_iter().chain(lapses).chain(owned.look_at).min();
        let owned = self.owners.get_mut(&owner)?;
        if owned.timer != next {
            if let Some(at) = std::mem::replace(&mut owned.timer, next) {
                self.timers.remove(&(at, owner));
            }
            if let Some(at) = next {
                self.timers.insert((at, owner));
            }
        }
        Some(open)
    }

    /// When all limits fit for a class; none if they do now.
    fn opens_at(&self, now: &Now, limits: &[AccountLimitId], class: Class) -> Option<Mono> {
        let mut at = None;
        for &id in limits {
            let Some(entry) = self.get(id) else { continue };
            let need = Need::whole(entry.cost_max) + entry.limit.floor(now, class, entry.cost_max);
            if entry.limit.fits(now, class, need) {
                continue;
            }
            let opens = match entry.limit.until_above_floor(
                now,
                class,
                Need::whole(entry.cost_max),
                entry.cost_max,
            ) {
                Until::At(time) => time,
                // A reply or a grant will open it.
                Until::Now | Until::Released | Until::Granted | Until::Never => Mono::NEVER,
            };
            at = at.max(Some(opens));
        }
        at
    }

    /// The next owner whose time has come.
    pub fn pop_ripe(&mut self, now: Mono) -> Option<Owner> {
        let &(at, owner) = self.timers.first()?;
        if at > now {
            return None;
        }
        self.timers.remove(&(at, owner));
        if let Some(owned) = self.owners.get_mut(&owner) {
            owned.timer = None;
            owned.look_at = owned.look_at.filter(|&at| at > now);
        }
        Some(owner)
    }

    /// The next limit that spends granted tokens and needs a look.
    pub fn pop_hungry(&mut self) -> Option<AccountLimitId> {
        self.hungry.pop()
    }

    /// Looks at the owners of a limit again at this time.
    pub fn wake_at(&mut self, id: AccountLimitId, at: Mono) {
        let owners = self
            .get(id)
            .map(|entry| entry.owners.clone())
            .unwrap_or_default();
        for owner in owners {
            let Some(owned) = self.owners.get_mut(&owner) else {
                continue;
            };
            if at == Mono::NEVER {
                continue;
            }
            owned.look_at = Some(owned.look_at.map_or(at, |other| other.min(at)));
            if owned.timer.is_none_or(|timer| at < timer) {
                if let Some(old) = owned.timer.replace(at) {
                    self.timers.remove(&(old, owner));
                }
                self.timers.insert((at, owner));
            }
        }
    }

    /// The owners of a limit are to be looked at.
    pub fn note_changed(&mut self, id: AccountLimitId) {
        if let Some(entry) = self.slab.get(id.index()).and_then(Option::as_ref) {
            self.changed.extend(&entry.owners);
            if entry.limit.reservation_due().is_some() {
                self.hungry.push(id);
            }
        }
    }

    /// A limit that spends what it is given has other numbers.
    pub fn note_fed(&mut self, id: AccountLimitId) {
        if self.get(id).is_some_and(|entry| entry.feed.is_some()) {
            self.hungry.push(id);
        }
    }

    /// Puts all fed limits of an owner on the list to be looked at.
    pub fn note_hungry(&mut self, owner: Owner) {
        if let Some(owned) = self.owners.get(&owner) {
            for &id in &owned.limits {
                if self.get(id).is_some_and(|entry| entry.feed.is_some()) {
                    self.hungry.push(id);
                }
            }
        }
    }

    /// When the next owner wants a look.
    pub fn next_wake(&self) -> Mono {
        if !self.hungry.is_empty() || !self.changed.is_empty() {
            return Mono(0);
        }
        self.timers.first().map_or(Mono::NEVER, |&(at, _)| at)
    }

    /// How many limits there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }
}
