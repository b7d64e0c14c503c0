//! The limits of accounts and pairs, as bits for the pool.

use super::super::account_limits::Owner;
use super::super::feed::Demand;
use super::super::limits::Maker;
use super::{Account, Desk};
use crate::class::Class;
use crate::handle::{AccountId, AccountLimitId, LaneId, PoolId};
use crate::ledger::owed;
use crate::policy::applied::Applied;
use crate::policy::set::Policies;
use crate::pool::ClassMask;
use crate::time::{Mono, Now};

/// Lanes that may want an account's tokens at once, for the size of a lease.
const LANES_GUESSED: usize = 8;

impl Desk {
    /// Works the limits of an account out anew, not those of its pairs.
    pub(in crate::engine) fn relimit_account(
        &mut self,
        now: &Now,
        id: AccountId,
        policies: &Policies,
        maker: &mut Maker,
    ) {
        if let Some(account) = self.account(id) {
            let applied = policies.for_account(&account.spec);
            let written = policies.written_for(&account.spec);
            self.set_floor(id, &written);
            self.set_slots(id, &written);
            self.assign(now, Owner::Account(id), applied, maker);
        }
    }

    /// Works the limits of an account at a destination out.
    pub(in crate::engine) fn relimit_pair(
        &mut self,
        now: &Now,
        id: AccountId,
        lane: LaneId,
        policies: &Policies,
        maker: &mut Maker,
    ) {
        if let Some(account) = self.account(id) {
            let applied = policies.for_pair(&account.spec, &self.lane(lane).facts);
            let owner = Owner::Pair(id, lane);
            if !applied.is_empty() || self.limits.has(owner) {
                self.assign(now, owner, applied, maker);
            }
        }
    }

    fn assign(&mut self, now: &Now, owner: Owner, applied: Vec<Applied>, maker: &mut Maker) {
        let mut ids: Vec<AccountLimitId> = Vec::with_capacity(applied.len());
        let mut sized = vec![owner];
        for applied in applied {
            let id = match self.limits.find(&applied.key) {
                Some(id) if maker.learners.of(now, &applied).is_some() => id,
                Some(id) => {
                    if self.limits.update(now, id, &applied) {
                        let entry = self.limits.get(id);
                        sized.extend(entry.into_iter().flat_map(|entry| entry.owners.clone()));
                    }
                    id
                }
                None => {
                    let (limit, feed) = maker.make(now, &applied);
                    let learner = maker.learners.find(&applied.key);
                    self.limits.add(applied.key, limit, feed, learner)
                }
            };
            ids.push(id);
        }
        self.limits.assign(owner, ids);
        self.limits.set_cost(owner, self.regime_cost(owner));
        for owner in sized {
            self.tell_size(owner);
        }
        self.refresh(now, owner);
        self.refresh_changed(now);
    }
    /// Tells the pool what an account or pair can ever take.
    fn tell_size(&mut self, owner: Owner) {
        let (Owner::Account(id) | Owner::Pair(id, _)) = owner;
        let Some(pool) = self.account(id).map(|account| account.pool) else {
            return;
        };
        let largest = self.limits.largest(owner);
        self.side_mut(pool).sizes += 1;
        let pool = self.pool_mut(pool);
        match owner {
            Owner::Account(id) => pool.set_largest(id, largest),
            Owner::Pair(id, lane) => pool.set_pair_largest(id, lane, largest),
        }
    }

    /// Looks at the owners of limits that another owner, a grant or a reply
    /// changed.
    pub(in crate::engine) fn refresh_changed(&mut self, now: &Now) {
        while let Some(owner) = self.limits.pop_changed() {
            self.refresh(now, owner);
        }
    }

    /// Whether an account may carry messages of a lane.
    pub(super) fn serves(&self, account: &Account, lane: LaneId) -> bool {
        let key = &self.lane(lane).facts;
        let Some(only) = &account.spec.tenant else {
            return true;
        };
        let own = (account.pool, key.destination.clone(), Some(only.clone()));
        self.lane_keys.get(&own) == Some(&lane)
    }

    /// Tells the pool for which classes an account or pair is open.
    pub(in crate::engine) fn refresh(&mut self, now: &Now, owner: Owner) {
        let (Owner::Account(id) | Owner::Pair(id, _)) = owner;
        let pool = self.account(id).map(|account| self.pool(account.pool));
        let owed = pool.map_or(ClassMask::NONE, |pool| pool.owed(id));
        let open = self.limits.open_for(now, owner, owed);
        let open = open.unwrap_or(ClassMask::ALL);
        match owner {
            Owner::Account(id) => {
                if let Some(pool) = self.account(id).map(|account| account.pool) {
                    let ready = if self.is_shut(now.mono, pool, id) {
                        ClassMask::NONE
                    } else {
                        open
                    };
                    self.pool_mut(pool).set_ready(id, ready);
                    self.note_open(id, open);
                }
            }
            Owner::Pair(id, lane) => {
                let pool = self.lane(lane).pool;
                self.pool_mut(pool).set_product_open(id, lane, open);
            }
        }
    }

    /// What the lanes of an account's pool want of its limits, if anything; if
    /// not, when to look again. A limit for which they want nothing is looked at
    /// again when they do.
    pub(in crate::engine) fn demand(
        &mut self,
        now: Mono,
        id: AccountLimitId,
    ) -> Result<Demand, Mono> {
        let usable_from = self.tokens_usable_from(id);
        let demand = self.demand_of_lanes(now, id).ok_or(Mono::NEVER)?;
        match usable_from <= now {
            true => Ok(demand),
            false => Err(usable_from),
        }
    }

    fn demand_of_lanes(&mut self, now: Mono, id: AccountLimitId) -> Option<Demand> {
        let entry = self.limits.get(id)?;
        let owner = *entry.owners.first()?;
        let (Owner::Account(account) | Owner::Pair(account, _)) = owner;
        let most = entry.limit.largest_cost();
        let feed = entry.feed.as_ref();
        let fruitless = feed.and_then(|feed| feed.fruitless(now));
        let is_left = feed.is_some_and(|feed| feed.is_left(now));
        let mut owners = entry.owners.iter();
        let has_session = is_left && owners.any(|owner| self.has_use_for_tokens(*owner));
        let lowest = Class::ALL.into_iter().rev();
        let mut lowest = lowest.filter(|class| feed.is_some_and(|it| it.may_ask_for(now, *class)));
        let lowest = lowest.next();
        let pool = self.account(account)?.pool;
        let side = self.side_mut(pool);
        let wanted = side.pool.wanted();
        let wants = |class: &Class| wanted.contains(*class);
        let mut classes = Class::ALL.into_iter();
        let Some(highest) = classes.find(wants) else {
            side.sated.insert(id);
            return None;
        };
        // Tokens go to the class that they were leased for. So they are leased
        // for one that is owed a turn, too, and for the next one if a class
        // could not use its own.
        let owed = side.pool.owed(account);
        let class = match fruitless {
            Some(class) => class.below().find(wants),
            None => classes.find(|class| wants(class) && owed.contains(*class)),
        };
        let class = class.filter(|class| Some(*class) <= lowest);
        let class = class.unwrap_or(highest);
        Some(Demand {
            class,
            out_of_turn: class != highest,
            earned: class != highest && owed.contains(class),
            cost: self.regime_cost(owner).min(most),
            flows: LANES_GUESSED,
            waiting: wanted,
            has_session,
        })
    }

    /// From when on any owner of a limit can use its tokens. If that is not known,
    /// it is looked at again when a session is opened or an account let go.
    fn tokens_usable_from(&self, id: AccountLimitId) -> Mono {
        let owners = self.limits.get(id).map(|entry| entry.owners.as_slice());
        let mut first = Mono::NEVER;
        for owner in owners.unwrap_or_default() {
            first = first.min(self.usable_from(*owner));
            if first == Mono(0) {
                break;
            }
        }
        first
    }

    /// From when on tokens of an account, or of an account at a lane, are leased.
    pub(in crate::engine) fn usable_from(&self, owner: Owner) -> Mono {
        let (id, lane) = match owner {
            Owner::Account(id) => (id, None),
            Owner::Pair(id, lane) => (id, Some(lane)),
        };
        let pool = self.account(id).map(|account| self.side(account.pool));
        pool.map_or(Mono::NEVER, |side| side.pool.tokens_usable_from(id, lane))
    }

    /// Whether no session is lacking for messages to use an owner's tokens.
    fn has_use_for_tokens(&self, owner: Owner) -> bool {
        let (id, lane) = match owner {
            Owner::Account(id) => (id, None),
            Owner::Pair(id, lane) => (id, Some(lane)),
        };
        let pool = self.account(id).map(|account| self.side(account.pool));
        pool.is_some_and(|side| side.pool.has_use_for_tokens(id, lane))
    }

    /// An account may open sessions again: its limits at lanes, which lease nothing
    /// while it cannot, are looked at.
    pub(super) fn note_let_go(&mut self, id: AccountId) {
        if self.limits.has_pairs() {
            for lane in self.limits.pairs_of(id) {
                self.limits.note_hungry(Owner::Pair(id, lane));
            }
        }
    }

    /// An account opens a session for a lane: from now on it can use tokens.
    pub(super) fn note_opening(&mut self, id: AccountId, lane: LaneId) {
        self.limits.expect_use(Owner::Account(id));
        if self.limits.has_pairs() {
            let (pool, to) = (self.lane(lane).pool, self.lane(lane).destination.clone());
            let lanes: Vec<LaneId> = self.lanes_to(pool, &to).collect();
            for lane in lanes {
                self.limits.expect_use(Owner::Pair(id, lane));
            }
        }
    }

    /// What a fleet owes to classes that want an account's tokens here is earned
    /// there.
    pub(in crate::engine) fn earn(&mut self, id: AccountLimitId, owed: &owed::Tokens) {
        let owner = self.limits.get(id).and_then(|entry| entry.owners.first());
        let Some(&(Owner::Account(account) | Owner::Pair(account, _))) = owner else {
            return;
        };
        if let Some(pool) = self.account(account).map(|it| it.pool) {
            self.side_mut(pool).pool.earn(account, owed);
        }
    }

    /// Has leased limits of a pool's accounts looked at if its lanes want
    /// something again: those that had found that nobody wants anything, and
    /// all accounts if other classes want them than they were told.
    pub(in crate::engine) fn tell_wanted(&mut self, pool: PoolId) {
        let side = self.side_mut(pool);
        let wanted = side.pool.wanted();
        if wanted.is_empty() {
            return;
        }
        let sated = std::mem::take(&mut side.sated);
        let mut accounts = Vec::new();
        if std::mem::replace(&mut side.told, wanted) != wanted {
            accounts.extend(&side.accounts);
        }
        for id in sated {
            self.limits.note_fed(id);
        }
        for id in accounts {
            self.limits.note_hungry(Owner::Account(id));
        }
    }
}
