//! The limits of accounts, and of accounts at a destination.
//!
//! Flows do not wait at these: with 500 accounts they would wait at 500 places.
//! Instead each limit opens and shuts its account, or its account's pair with a
//! lane, by class, and the pool matches what is open. One timer per owner says
//! when it opens for the next class. An owner is open if the largest cost that
//! waits in its pool fits, so that light messages do not starve heavy ones.

mod fed;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::feed::Feed;
use super::lessons::Lessons;
use crate::class::Class;
use crate::handle::{AccountId, AccountLimitId, LaneId, LearnerId};
use crate::limit::need::Need;
use crate::limit::{Kind, Limit, Until};
use crate::policy::applied::Applied;
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
    /// Who says at which pace it goes, if that is learnt.
    pub learner: Option<LearnerId>,
    /// Usually one; several share an IP. None: it counts on until it is idle.
    pub owners: Vec<Owner>,
    /// Whether it stands in the list of limits that need a look.
    hungry: bool,
}

/// The limits of one owner.
#[derive(Debug, Default)]
struct Owned {
    limits: Vec<AccountLimitId>,
    /// What the owner must have room for to be open.
    cost: u32,
    timer: Option<Mono>,
    /// When one of its feeds wants a look, whatever else happens.
    look_at: Option<Mono>,
}

/// All limits of accounts and pairs.
#[derive(Debug, Default)]
pub(super) struct AccountLimits {
    slab: Vec<Option<AccountLimit>>,
    /// Free places of the slab, each with the number of the last request for
    /// tokens from there: an answer that comes late must not find a successor.
    free: Vec<(AccountLimitId, u32)>,
    by_key: BTreeMap<Arc<LimitKey>, AccountLimitId>,
    owners: BTreeMap<Owner, Owned>,
    /// How many pairs have limits.
    limited_pairs: usize,
    timers: BTreeSet<(Mono, Owner)>,
    /// Limits that spend granted tokens and need a look.
    hungry: Vec<AccountLimitId>,
    /// Owners that share a limit which another owner took from.
    changed: Vec<Owner>,
    /// Limits that nobody owns and that were not idle when last looked at.
    orphans: VecDeque<AccountLimitId>,
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
    pub fn add(
        &mut self,
        key: LimitKey,
        limit: Limit,
        mut feed: Option<Feed>,
        learner: Option<LearnerId>,
    ) -> AccountLimitId {
        let (id, last_request) = self.free.pop().unwrap_or_else(|| {
            let next = u32::try_from(self.slab.len()).expect("fewer than 2^32 limits");
            self.slab.push(None);
            (AccountLimitId(next), 0)
        });
        if let Some(feed) = &mut feed {
            feed.number_after(last_request);
        }
        let key = Arc::new(key);
        self.by_key.insert(Arc::clone(&key), id);
        if let Some(slot) = self.slab.get_mut(id.index()) {
            *slot = Some(AccountLimit {
                key,
                limit,
                feed,
                learner,
                owners: Vec::new(),
                hungry: false,
            });
        }
        self.note_fed(id);
        id
    }

    /// Gives a limit the numbers that hold now; whether any changed.
    pub fn update(&mut self, now: &Now, id: AccountLimitId, applied: &Applied) -> bool {
        let Some(entry) = self.get_mut(id) else {
            return false;
        };
        if let Some(feed) = &mut entry.feed {
            feed.set_when_away(applied.when_away);
        }
        let limit = &mut entry.limit;
        if *limit.spec() == applied.spec && limit.headroom() == applied.headroom {
            return false;
        }
        limit.reconfigure(now, applied.spec.clone());
        limit.set_headroom(applied.headroom);
        // Other numbers may need a reserve where the old ones did not.
        if !limit.is_fed() {
            entry.feed = None;
        } else if let Some(feed) = &mut entry.feed {
            feed.renumber();
        } else {
            entry.feed = Some(Feed::new(Arc::clone(&entry.key), applied.when_away));
        }
        self.note_changed(id);
        true
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
            if let Some(entry) = self.get_mut(id) {
                entry.owners.retain(|&other| other != owner);
                if entry.owners.is_empty() {
                    self.orphans.push_back(id);
                }
            }
        }
    }

    /// Forgets limits that nobody owns once they remember nothing: until then
    /// an owner that comes back finds what it had used. A few at a time.
    /// Their keys, and whether the journal knows of them.
    pub fn tidy(&mut self, now: &Now, looks: usize) -> Vec<(Arc<LimitKey>, bool)> {
        let mut forgotten = Vec::new();
        for _ in 0..looks.min(self.orphans.len()) {
            let Some(id) = self.orphans.pop_front() else {
                break;
            };
            let Some(entry) = self.get(id).filter(|entry| entry.owners.is_empty()) else {
                continue;
            };
            if !entry.limit.is_idle(now) {
                self.orphans.push_back(id);
            } else if let Some(gone) = self.slab.get_mut(id.index()).and_then(Option::take) {
                self.by_key.remove(&gone.key);
                let last_request = gone.feed.map_or(0, |feed| feed.last_request());
                self.free.push((id, last_request));
                forgotten.push((gone.key, gone.limit.needs_reserve()));
            }
        }
        forgotten
    }

    /// Limits that nobody owns.
    pub fn orphans(&self) -> usize {
        self.orphans.len()
    }

    /// Forgets an account and its pairs.
    pub fn remove(&mut self, account: AccountId) {
        self.assign(Owner::Account(account), Vec::new());
        for lane in self.pairs_of(account) {
            self.assign(Owner::Pair(account, lane), Vec::new());
        }
    }

    /// The lanes at which an account has limits.
    pub fn pairs_of(&self, account: AccountId) -> Vec<LaneId> {
        if self.limited_pairs == 0 {
            return Vec::new();
        }
        let first = Owner::Pair(account, LaneId(0));
        let last = Owner::Pair(account, LaneId(u32::MAX));
        let pairs = self.owners.range(first..=last);
        let lanes = pairs.filter_map(|(owner, _)| match owner {
            Owner::Pair(_, lane) => Some(*lane),
            Owner::Account(_) => None,
        });
        lanes.collect()
    }

    /// Whether any pair has limits.
    pub fn has_pairs(&self) -> bool {
        self.limited_pairs > 0
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
        if matches!(owner, Owner::Pair(..)) && self.limited_pairs == 0 {
            return false;
        }
        self.owners
            .get(&owner)
            .is_some_and(|owned| !owned.limits.is_empty())
    }

    /// Takes a message's cost from all limits of an owner; those that count
    /// what is in flight join `held`, what is learnt joins `lessons`.
    pub fn take(
        &mut self,
        now: &Now,
        owner: Owner,
        class: Class,
        cost: u32,
        held: &mut Vec<AccountLimitId>,
        lessons: &mut Lessons,
    ) {
        let Some(owned) = self.owners.get(&owner) else {
            return;
        };
        for &id in &owned.limits {
            if let Some(entry) = self.slab.get_mut(id.index()).and_then(Option::as_mut) {
                entry.limit.take(now, class, cost);
                if entry.limit.shape().kind == Kind::Concurrency {
                    held.push(id);
                }
                if let Some(learner) = entry.learner {
                    lessons.add(learner);
                }
                if entry.owners.len() > 1 {
                    self.changed
                        .extend(entry.owners.iter().filter(|&&other| other != owner));
                }
                if let Some(feed) = &mut entry.feed {
                    feed.note_taken(now.mono, cost);
                    if !std::mem::replace(&mut entry.hungry, true) {
                        self.hungry.push(id);
                    }
                }
            }
        }
    }

    /// A delivery ended: the slots that it held come back.
    pub fn release(&mut self, held: &[AccountLimitId], cost: u32) {
        for &id in held {
            if let Some(entry) = self.get_mut(id) {
                entry.limit.release(cost);
                self.note_changed(id);
            }
        }
    }

    /// Says what an owner must have room for to be open.
    pub fn set_cost(&mut self, owner: Owner, cost: u32) {
        let Some(owned) = self.owners.get_mut(&owner) else {
            return;
        };
        owned.cost = cost;
        for index in 0..owned.limits.len() {
            let owned = self.owners.get(&owner);
            let Some(&id) = owned.and_then(|owned| owned.limits.get(index)) else {
                return;
            };
            if let Some(entry) = self.get_mut(id) {
                let most = entry.limit.largest_cost();
                entry.limit.expect_cost(cost.min(most));
            }
            self.note_fed(id);
        }
    }

    /// The largest cost that an owner's limits can ever take.
    pub fn largest(&self, owner: Owner) -> u32 {
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
    /// None if it has no limits. Nothing is kept from those that are owed a turn:
    /// classes above that take each token as it comes would leave none above it.
    pub fn open_for(&mut self, now: &Now, owner: Owner, owed: ClassMask) -> Option<ClassMask> {
        let owned = self.owners.get(&owner)?;
        let mut open = ClassMask::ALL;
        let mut next = None;
        // The least urgent class from which something is kept needs the most: if
        // it fits, all do.
        for class in Class::ALL.into_iter().rev() {
            let is_owed = owed.contains(class);
            match self.opens_at(now, owned, (class, is_owed)) {
                None if is_owed => {}
                None => break,
                Some(at) => {
                    open = open.minus(ClassMask::of(class));
                    if at != Mono::NEVER {
                        next = next.into_iter().chain([at]).min();
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
    fn opens_at(&self, now: &Now, owned: &Owned, (class, is_owed): (Class, bool)) -> Option<Mono> {
        let mut at = None;
        for &id in &owned.limits {
            let Some(entry) = self.get(id) else { continue };
            let cost = owned.cost.max(1).min(entry.limit.largest_cost());
            let (limit, need) = (&entry.limit, Need::whole(cost));
            let floor = match is_owed {
                true => Need::ZERO,
                false => limit.floor(now, class, cost),
            };
            if limit.fits_above(now, class, need, floor) {
                continue;
            }
            let until = match is_owed {
                true => limit.until(now, class, need),
                false => limit.until_above_floor(now, class, need, cost),
            };
            let opens = match until {
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

    /// Voids leases that were asked for before the clocks parted; windows of the
    /// calendar open at another time.
    pub fn clocks_parted(&mut self, now: &Now) {
        let ids: Vec<AccountLimitId> = self.by_key.values().copied().collect();
        for id in ids {
            let is_other = |limit: &mut Limit| {
                limit.void_parted(now) || limit.shape().kind == Kind::CalendarWindow
            };
            if self.get_mut(id).is_some_and(|it| is_other(&mut it.limit)) {
                self.note_changed(id);
            }
        }
    }

    /// A limit and its owners are to be looked at.
    pub fn note_changed(&mut self, id: AccountLimitId) {
        let entry = self.slab.get(id.index()).and_then(Option::as_ref);
        self.changed
            .extend(entry.iter().flat_map(|entry| &entry.owners));
        self.note_fed(id);
    }

    /// When the next owner wants a look.
    pub fn next_wake(&self) -> Mono {
        let is_due = !self.hungry.is_empty() || !self.changed.is_empty();
        let first = self.timers.first().map_or(Mono::NEVER, |&(at, _)| at);
        if is_due { Mono(0) } else { first }
    }

    /// How many limits there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }
}
