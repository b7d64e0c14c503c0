//! How many requests an account may have in flight, found from latency.
//!
//! Only for accounts of request slots for which no limit says it, and only if
//! that is set. An account that has as many in flight is shut like one whose
//! limits are used up; a reply opens it.

use super::super::account_limits::Owner;
use super::Desk;
use crate::account::SessionKind;
use crate::adapt::gradient::Gradient;
use crate::handle::AccountId;
use crate::limit::spec::Kind;
use crate::policy::applied::Applied;
use crate::time::{Mono, Now};

/// With so many in flight an account begins.
const START: u32 = 8;

/// What was found for one account.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    gradient: Gradient,
    in_flight: u32,
}

impl Slots {
    /// Whether as many are in flight as may be.
    pub fn is_full(&self) -> bool {
        self.in_flight >= self.gradient.limit()
    }

    /// One more is in flight.
    pub fn note_sent(&mut self) {
        self.in_flight = self.in_flight.saturating_add(1);
    }
}

impl Desk {
    /// Begins to look for an account's concurrency, or stops to.
    pub(super) fn set_slots(&mut self, id: AccountId, applied: &[Applied]) {
        let adapts = self.settings.adapt_concurrency;
        let Some(account) = self.account_mut(id) else {
            return;
        };
        let sessions = account.spec.sessions;
        let kinds = applied.iter().map(|limit| limit.spec.shape().kind);
        let is_said = kinds.into_iter().any(|kind| kind == Kind::Concurrency);
        let slots = &mut account.capped.slots;
        if !adapts || sessions.kind != SessionKind::Slots || is_said {
            *slots = None;
            return;
        }
        let most = sessions.max_connections;
        match slots {
            Some(slots) => slots.gradient.set_most(most),
            None => {
                *slots = Some(Slots {
                    gradient: Gradient::new(START, most),
                    in_flight: 0,
                });
            }
        }
    }

    /// A message that was sent at `sent_at` through an account was answered.
    pub(in crate::engine) fn note_reply(&mut self, now: &Now, id: AccountId, sent_at: Mono) {
        let account = self.accounts.get_mut(id.index()).and_then(Option::as_mut);
        let Some(slots) = account.and_then(|account| account.capped.slots.as_mut()) else {
            return;
        };
        let was_full = slots.is_full();
        let in_flight = slots.in_flight;
        let took = now.mono.since(sent_at);
        slots.gradient.replied(now.mono, took, in_flight);
        slots.in_flight = in_flight.saturating_sub(1);
        if was_full || slots.is_full() {
            self.refresh(now, Owner::Account(id));
        }
    }
}
