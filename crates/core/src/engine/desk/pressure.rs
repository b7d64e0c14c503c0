//! Blocks, and what the other accounts of a pool may do meanwhile.
//!
//! Nothing is swept: a cap is made when its account first sends in an episode,
//! from what it had sent by the episode's beginning, and is forgotten when the
//! account is next looked at after the end. A send costs two additions.

use std::collections::BTreeSet;

use super::super::account_limits::Owner;
use super::slots::Slots;
use super::{Account, Desk};
use crate::handle::{AccountId, PoolId};
use crate::limit::spec::LimitSpec;
use crate::policy::applied::Applied;
use crate::pressure::episode::WORTH;
use crate::pressure::{Before, Cap, Recent, Sender, UnderPressure};
use crate::time::{Mono, NANOS_PER_SECOND, Nanos, Now};

/// An account that a cap holds is looked at this often: the episode may be over.
const LOOK_AGAIN: Nanos = Nanos::from_secs(5);

/// What an account without any rate is not held below: one a second.
const FLOOR_UNLIMITED: u64 = 60;

/// What an account sent lately, and what it is held to.
#[derive(Clone, Debug, Default)]
pub(super) struct Capped {
    recent: Recent,
    /// The cap, and of which episode.
    cap: Option<(u32, Cap)>,
    /// A minute's worth below which it is not held.
    floor: u64,
    /// What it was held to when the process ended, and until when that is worth
    /// anything.
    recalled: Option<(u32, Mono)>,
    timer: Option<Mono>,
    /// How many it may have in flight, where that is found out.
    pub slots: Option<Slots>,
}

impl Capped {
    /// What it sent in the last minute.
    pub fn sent_in_minute(&self, now: Mono) -> u64 {
        self.recent.count(now)
    }
}

/// When accounts that caps hold are looked at.
#[derive(Debug, Default)]
pub(super) struct Caps {
    timers: BTreeSet<(Mono, AccountId)>,
}

impl Caps {
    pub fn next_wake(&self) -> Mono {
        self.timers.first().map_or(Mono::NEVER, |&(at, _)| at)
    }
}

impl Desk {
    /// Holds an account back until a time: the far end said so.
    pub(in crate::engine) fn block(&mut self, now: Mono, id: AccountId, until: Mono) {
        let Some(account) = self.account_mut(id) else {
            return;
        };
        if account.blocked_until.is_some_and(|old| old >= until) {
            return;
        }
        let pool = account.pool;
        if let Some(old) = account.blocked_until.replace(until) {
            self.blocked.remove(&(old, id));
        }
        self.blocked.insert((until, id));
        self.note_blocked(now, pool, id);
        self.tell_hold(id);
    }

    /// Has the block of an account end now.
    pub(in crate::engine) fn unblock(&mut self, now: Mono, id: AccountId) {
        let account = self.account_mut(id);
        if let Some(until) = account.and_then(|it| it.blocked_until.as_mut())
            && *until > now
        {
            let old = std::mem::replace(until, now);
            self.blocked.remove(&(old, id));
            self.blocked.insert((now, id));
        }
    }

    /// An account of a pool is blocked: if it is the first, an episode begins.
    pub(super) fn note_blocked(&mut self, now: Mono, pool: PoolId, id: AccountId) {
        let side = self.side_mut(pool);
        let (recent, accounts) = (&side.recent, side.accounts.len() as u64);
        side.episode.block(now, id, || Before {
            count: recent.count(now),
            accounts,
            span: recent.span(now),
        });
    }

    /// An account was held to this when the process ended, `age` after that had
    /// begun.
    pub(in crate::engine) fn recall_cap(
        &mut self,
        now: Mono,
        id: AccountId,
        per_minute: u32,
        age: Nanos,
    ) {
        let Some(account) = self.account_mut(id) else {
            return;
        };
        account.capped.recalled = Some((per_minute, now + WORTH.minus(age)));
        let pool = account.pool;
        self.side_mut(pool).episode.recall(now, per_minute, age);
    }

    /// An account that is held to the rate of the minute before from now on,
    /// what that is, and since when.
    pub(in crate::engine) fn next_kept(&mut self) -> Option<(AccountId, u32, Mono)> {
        let (id, per_minute) = self.newly_kept.pop()?;
        let pool = self.account(id)?.pool;
        Some((id, per_minute, self.side(pool).episode.began()))
    }

    /// Whether the pool of an account has one that is not blocked.
    pub(in crate::engine) fn has_another(&self, id: AccountId) -> bool {
        self.account(id).is_some_and(|account| {
            let side = self.side(account.pool);
            side.episode.blocked() < side.accounts.len()
        })
    }

    /// Lets accounts go whose time has come.
    pub(super) fn wake_blocks(&mut self, now: Mono) {
        while let Some(&(at, id)) = self.blocked.first() {
            if at > now {
                return;
            }
            self.blocked.remove(&(at, id));
            let Some(account) = self.account_mut(id) else {
                continue;
            };
            account.blocked_until = None;
            let pool = account.pool;
            // One that is half open is not back yet.
            if !self.breakers.wake_account(now, id) {
                self.side_mut(pool).episode.release(now, id);
            }
            self.tell_hold(id);
        }
    }

    /// A message goes through an account; whether that may shut it.
    pub(super) fn note_sent(&mut self, now: Mono, pool: PoolId, id: AccountId, cost: u32) -> bool {
        let keeps = self.settings.under_pressure == UnderPressure::Keep;
        let Some(side) = self.pools.get_mut(pool.index()) else {
            return false;
        };
        let account = self.accounts.get_mut(id.index()).and_then(Option::as_mut);
        let Some(Account { capped, .. }) = account else {
            return false;
        };
        let episode = &side.episode;
        let is_capped = keeps && episode.is_on();
        if is_capped {
            let number = episode.number();
            if capped.cap.as_ref().is_none_or(|(of, _)| *of != number) {
                let recalled = capped.recalled.take();
                let recalled = recalled.filter(|(_, until)| now < *until);
                let recalled = recalled.map(|(per_minute, _)| per_minute);
                let cap = Cap::new(
                    now,
                    episode.allowed(Sender {
                        count: capped.recent.count(episode.began()),
                        span: capped.recent.span(now),
                        floor: capped.floor,
                        kept: recalled,
                    }),
                );
                // What is written down already is not written again.
                if recalled != Some(cap.per_minute()) && cap.per_minute() < u32::MAX {
                    self.newly_kept.push((id, cap.per_minute()));
                }
                capped.cap = Some((number, cap));
            }
            if let Some((_, cap)) = &mut capped.cap {
                cap.take(now, cost, episode.growth(now));
            }
        }
        capped.recent.add(now, cost);
        side.recent.add(now, cost);
        let Some(slots) = &mut capped.slots else {
            return is_capped;
        };
        slots.note_sent();
        is_capped || slots.is_full()
    }

    /// Whether an account is shut, whatever its limits say: a cap holds it now,
    /// which sets the time to look again, or all its slots are in use.
    pub(super) fn is_shut(&mut self, now: Mono, pool: PoolId, id: AccountId) -> bool {
        let slots = self.account(id).and_then(|it| it.capped.slots.as_ref());
        if slots.is_some_and(Slots::is_full) {
            return true;
        }
        let Some(opens) = self.cap_opens_at(pool, id).filter(|at| *at > now) else {
            return false;
        };
        let at = opens.min(now + LOOK_AGAIN);
        if let Some(account) = self.account_mut(id) {
            let old = account.capped.timer.replace(at);
            if let Some(old) = old {
                self.caps.timers.remove(&(old, id));
            }
            self.caps.timers.insert((at, id));
        }
        true
    }

    /// When the cap of an account lets the next message through, if one holds.
    pub(in crate::engine) fn cap_opens_at(&self, pool: PoolId, id: AccountId) -> Option<Mono> {
        let episode = &self.side(pool).episode;
        if !episode.is_on() {
            return None;
        }
        let (of, cap) = self.account(id)?.capped.cap.as_ref()?;
        (*of == episode.number()).then(|| cap.opens_at())
    }

    /// What an account keeps to in a minute while others of its pool are blocked.
    pub(super) fn kept_by(&self, pool: PoolId, id: AccountId, now: Mono) -> Option<u64> {
        let episode = &self.side(pool).episode;
        let (of, cap) = self.account(id)?.capped.cap.as_ref()?;
        let is_kept = episode.is_on() && *of == episode.number() && cap.per_minute() < u32::MAX;
        is_kept.then(|| u64::from(cap.per_minute()) * episode.growth(now) / 1_000)
    }

    /// Looks at accounts that caps held.
    pub(super) fn wake_caps(&mut self, now: &Now) {
        while let Some(&(at, id)) = self.caps.timers.first() {
            if at > now.mono {
                return;
            }
            self.caps.timers.remove(&(at, id));
            if let Some(account) = self.account_mut(id) {
                account.capped.timer = None;
            }
            self.refresh(now, Owner::Account(id));
        }
    }

    /// Notes below what an account is not held: a tenth of its slowest rate.
    pub(super) fn set_floor(&mut self, id: AccountId, applied: &[Applied]) {
        // Quotas are no rates: a quota of the day is used up, not kept to.
        let rates = applied.iter().filter_map(|limit| match limit.spec {
            LimitSpec::TokenBucket { rate, .. } | LimitSpec::LeakyBucket { rate } => Some(rate),
            _ => None,
        });
        let per_minute = rates.map(|rate| {
            let minute = u128::from(60 * NANOS_PER_SECOND) * u128::from(rate.count);
            u64::try_from(minute / u128::from(rate.per.0.max(1))).unwrap_or(u64::MAX)
        });
        let floor = per_minute.min().map_or(FLOOR_UNLIMITED, |rate| rate / 10);
        if let Some(account) = self.account_mut(id) {
            account.capped.floor = floor;
        }
    }
}
