//! What a far end says outright of its limits is done.
//!
//! It speaks of the account, wherever that sends: the rate of `account:NAME` is
//! what it says, and a quota that is used up stops the account until it starts
//! anew. Who says nothing costs nothing.

use super::Engine;
use super::bounds::MOST;
use super::learn::Refused;
use crate::adapt::Explicit;
use crate::allowance::{Allowance, Left};
use crate::handle::AccountId;
use crate::limit::spec::Rate;
use crate::outcome::ReplyScope;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::time::{Nanos, Now};

/// A quota that starts anew by this much later than was known is news.
const USED_UP_NEWS: Nanos = Nanos::from_secs(1);

impl Engine {
    /// Does what the far end said outright of its limits, for the whole account.
    pub(super) fn obey(&mut self, now: &Now, id: AccountId, allows: &Allowance) {
        if let Some(Left {
            count: 0,
            resets_in,
        }) = allows.left
        {
            let account = self.counter.desk.account(id);
            let known = account.and_then(|account| account.blocked_until);
            let until = now.mono + resets_in;
            // Those under way all say it: one of them is enough.
            let known = known.unwrap_or(now.mono);
            if until.since(known) > USED_UP_NEWS {
                self.block_account(now, id, resets_in);
            }
        }
        if let Some(rate) = allows.rate {
            self.hold_to(now, id, rate);
        }
    }

    /// Has an account send no faster than its provider says. Where something
    /// else holds it to less already, there is nothing to do.
    fn hold_to(&mut self, now: &Now, account: AccountId, rate: Rate) {
        let scope = ReplyScope::WholeAccount;
        let told = Refused::anywhere(account);
        let Some(parts) = self.parts_of(&told, scope) else {
            return;
        };
        let key = LimitKey::new(parts, Facet::Learnt);
        let is_known = self.counter.maker.learners.find(&key).is_some();
        let most = || self.most_of(&key).unwrap_or(MOST);
        if !is_known && most().in_a_second() <= rate.in_a_second() {
            return;
        }
        let Some(id) = self.begin_learning(now, &told, scope, true) else {
            return;
        };
        let rate = rate.in_a_second();
        let learners = &mut self.counter.maker.learners;
        let known = learners.get(id).and_then(|it| it.controller.told());
        if known != Some(rate) {
            learners.change(id, |it| it.explicit(now, Explicit::Rate(rate)));
        }
    }
}
