//! Which limits of accounts and pairs want tokens from a ledger, and are to be
//! looked at for it.

use super::{AccountLimits, Owner};
use crate::engine::feed::Feed;
use crate::handle::AccountLimitId;
use crate::time::Mono;

impl AccountLimits {
    /// The next limit that spends granted tokens and needs a look.
    pub fn pop_hungry(&mut self) -> Option<AccountLimitId> {
        let id = self.hungry.pop()?;
        if let Some(entry) = self.get_mut(id) {
            entry.hungry = false;
        }
        Some(id)
    }

    /// Puts a limit on the list to be looked at, if it is fed at all.
    pub fn note_fed(&mut self, id: AccountLimitId) {
        if let Some(entry) = self.get_mut(id)
            && entry.feed.is_some()
            && !std::mem::replace(&mut entry.hungry, true)
        {
            self.hungry.push(id);
        }
    }

    /// Puts all fed limits of an owner on the list to be looked at.
    pub fn note_hungry(&mut self, owner: Owner) {
        self.for_each_limit(owner, &|_| ());
    }

    /// The same when an owner got something to use tokens with.
    pub fn expect_use(&mut self, owner: Owner) {
        self.for_each_limit(owner, &Feed::expect_use);
    }

    /// A limit was granted tokens. If those before were of no use, the ones that its
    /// owners' messages need besides are asked for now, not each at a time of its own.
    pub fn come_along(&mut self, now: Mono, id: AccountLimitId) {
        let entry = self.get(id);
        let in_vain = entry.filter(|it| it.feed.as_ref().is_some_and(Feed::is_in_vain));
        let owners = in_vain.map(|entry| entry.owners.clone());
        for owner in owners.unwrap_or_default() {
            let (Owner::Account(account) | Owner::Pair(account, _)) = owner;
            let tell = |feed: &mut Feed| feed.come_along(now);
            self.for_each_limit(Owner::Account(account), &tell);
            match owner {
                Owner::Pair(..) => self.for_each_limit(owner, &tell),
                Owner::Account(_) => {
                    for lane in self.pairs_of(account) {
                        self.for_each_limit(Owner::Pair(account, lane), &tell);
                    }
                }
            }
        }
    }

    fn for_each_limit(&mut self, owner: Owner, tell: &dyn Fn(&mut Feed)) {
        let mut at = 0;
        while let Some(&id) = self.owners.get(&owner).and_then(|it| it.limits.get(at)) {
            if let Some(feed) = self.get_mut(id).and_then(|it| it.feed.as_mut()) {
                tell(feed);
                self.note_fed(id);
            }
            at += 1;
        }
    }
}
