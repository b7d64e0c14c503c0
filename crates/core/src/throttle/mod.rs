//! The throttle: limits for others, who ask before they act.
//!
//! It decides whether a request may have all its limits now, must wait or is
//! refused, and when. All limits of a request are taken together or none is.
//! Whoever waits stands at one limit, the one that holds them longest; each
//! limit has one timer, so what waits costs nothing. First come, first served
//! within a class; the more urgent class goes first, and one in fifty grants
//! goes to who is passed. Nobody who comes later overtakes who waits.
//!
//! In reading order: [`request`] (what is asked and answered); `index`, `slab`
//! and `parts` (how it is kept), `line` and `entry` (one limit and its
//! waiters), `waiting` (how waiters are served), `permits` (what is held),
//! `keys` (how keys come and go), `feeding` (tokens that a fleet shares), `pauses`, [`cell`] (the same in the words of
//! redis-cell), [`look`] (what can be seen of a limit),
//! `waits` (who was held up).

pub mod cell;
mod entry;
mod feeding;
mod index;
mod keys;
mod line;
pub mod look;
mod parts;
mod pauses;
mod permits;
pub mod request;
mod slab;
#[cfg(test)]
mod tests;
mod waiting;
mod waits;

pub use request::{Key, Outcome, Owner, Permit, Refusal, Request, Ticket, Verdict, Wanted, Why};

use std::collections::{BTreeMap, BTreeSet};

use crate::class::Class;
use crate::engine::action::Action;
use crate::fair::{self, Shares};
use crate::limit::Fill;
use crate::limit::spec::Headroom;
use crate::policy::scope_set::ScopeSet;
use crate::schedule::waits::Waits;
use crate::time::{Clocks, Mono, Nanos, Now};
use entry::{Entry, Hold};
use index::Index;
use line::Rank;
use parts::{Part, Parts};
use pauses::Pauses;
use permits::Permits;
use slab::Slab;
use waiting::Waiter;

/// How a throttle is set up.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What buckets and quotas keep for the classes above.
    pub headroom: Headroom,
    /// How many limits are kept.
    pub keys_max: usize,
    /// How many may wait.
    pub waiters_max: usize,
    /// How many permits may be held.
    pub permits_max: usize,
    /// How limits begin that are not known. After a restart nobody knows what
    /// was used just before, so they begin empty when the process began.
    pub fill: Fill,
    /// Whether limits are shared with a fleet, by a ledger.
    pub leased: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            headroom: Headroom([200, 0, 0, 0]),
            keys_max: 1_000_000,
            waiters_max: 100_000,
            permits_max: 1_000_000,
            fill: Fill::Full,
            leased: false,
        }
    }
}

/// Limits for others.
#[derive(Debug)]
pub struct Throttle {
    settings: Settings,
    started: Now,
    index: Index,
    entries: Slab<Entry>,
    /// How many of them each owner has.
    owned: BTreeMap<Box<str>, u64>,
    /// Where the look for idle limits goes on.
    hand: u32,
    waiters: Slab<Waiter>,
    /// How many of them each owner has.
    waiting: Shares<Owner>,
    deadlines: BTreeSet<(Mono, u32)>,
    /// When which limit is looked at.
    timers: BTreeSet<(Mono, u32)>,
    permits: Permits,
    pauses: Pauses,
    arrivals: u64,
    /// What the ledger is to be asked.
    actions: Vec<Action>,
    /// The highest number of a request to the ledger by a limit that is gone.
    last_request: u32,
    /// How the clocks stood when leases were last looked at.
    clocks: Clocks,
    /// Who was held up, by the scopes of limits.
    waits: Vec<(ScopeSet, Waits)>,
}

impl Throttle {
    /// A throttle that knows no key. The seed is drawn by lot.
    pub fn new(now: &Now, settings: Settings, seed: u64) -> Self {
        Self {
            index: Index::new(settings.keys_max, seed),
            settings,
            started: *now,
            entries: Slab::default(),
            owned: BTreeMap::new(),
            hand: 0,
            waiters: Slab::default(),
            waiting: Shares::of(settings.waiters_max as u64),
            deadlines: BTreeSet::new(),
            timers: BTreeSet::new(),
            permits: Permits::new(seed, settings.permits_max),
            pauses: Pauses::default(),
            arrivals: 0,
            actions: Vec::new(),
            last_request: 0,
            clocks: now.clocks(),
            waits: Vec::new(),
        }
    }

    /// Asks for some limits together. Who waited and need not any more is told
    /// in `outcomes`.
    pub fn acquire(
        &mut self,
        now: &Now,
        request: &Request<'_>,
        outcomes: &mut Vec<Outcome>,
    ) -> Verdict {
        self.void_parted(now);
        let parts = match self.resolve(now, request, outcomes) {
            Ok(parts) => parts,
            Err(refusal) => return Verdict::Refused(refusal),
        };
        self.arrivals += 1;
        let rank = Rank {
            class: request.class,
            no: self.arrivals,
        };
        let Some((part, hold)) = self.hold(now, rank, request.class, &parts) else {
            let held = (request.ttl, request.owner);
            let permit = self.take(now, request.class, &parts, held);
            self.note_passed(now, request.class, &parts);
            return Verdict::Granted(permit);
        };
        self.note_held(part.entry);
        let is_asked = self.ask_for(now, rank, request.class, &parts);
        let mut deadline = now.mono + request.wait.min(request::WAIT_MAX);
        // What the ledger says is worth a moment, also to those who do not wait.
        let is_prompt = is_asked && request.wait == Nanos::ZERO;
        if is_asked {
            deadline = deadline.max(now.mono + feeding::ANSWER_WAIT);
        }
        let refused = |why| {
            Verdict::Refused(Refusal {
                by: usize::from(part.want),
                why,
                retry_after: Some(hold.back_at.since(now.mono)),
            })
        };
        // A limit that knows its time has nothing to give before it.
        let is_late = hold.at > deadline && hold.at != Mono::NEVER;
        if is_late || (request.wait == Nanos::ZERO && !is_asked) {
            return refused(Why::Limited);
        }
        if self.waiting.room(&request.owner) == 0 {
            return refused(match self.waiters.len() < self.settings.waiters_max {
                true => Why::TooManyOwnWaiters,
                false => Why::TooManyWaiters,
            });
        }
        let waiter = Waiter {
            rank,
            class: request.class,
            deadline,
            held: (request.ttl, request.owner),
            parts,
            is_prompt,
            since: now.mono,
            at: part.entry,
        };
        Verdict::Waiting(self.queue(waiter, hold))
    }

    /// Whether a request would be granted now. Takes nothing, and nobody waits.
    pub fn check(
        &mut self,
        now: &Now,
        request: &Request<'_>,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Refusal> {
        let parts = self.resolve(now, request, outcomes)?;
        let rank = Rank {
            class: request.class,
            no: self.arrivals + 1,
        };
        match self.hold(now, rank, request.class, &parts) {
            None => Ok(()),
            Some((part, hold)) => Err(Refusal {
                by: usize::from(part.want),
                why: Why::Limited,
                retry_after: Some(hold.back_at.since(now.mono)),
            }),
        }
    }

    /// What of all its limits holds a request longest; none if nothing does.
    fn hold(&self, now: &Now, rank: Rank, class: Class, parts: &Parts) -> Option<(Part, Hold)> {
        let mut longest: Option<(Part, Hold)> = None;
        for part in parts.iter() {
            let entry = self.entries.get(part.entry)?;
            if let Some(hold) = entry.hold(now, rank, class, part.cost)
                && longest
                    .is_none_or(|(_, other)| (other.at, other.back_at) < (hold.at, hold.back_at))
            {
                longest = Some((part, hold));
            }
        }
        longest
    }

    /// Takes from all limits, which have enough.
    fn take(
        &mut self,
        now: &Now,
        class: Class,
        parts: &Parts,
        (ttl, owner): (Nanos, Owner),
    ) -> Option<Permit> {
        let mut holds = false;
        for part in parts.iter() {
            if let Some(entry) = self.entries.get_mut(part.entry) {
                entry.limit.take(now, class, part.cost);
                entry.is_fresh = true;
                if entry.feed.is_some() {
                    self.note_taken(now, part.entry, class, part.cost);
                }
                holds |= self.holds_slots(part.entry);
            }
        }
        holds.then(|| {
            let slots = parts.iter().filter(|part| {
                let entry = self.entries.get(part.entry);
                entry.is_some_and(Entry::holds_slots)
            });
            let slots = slots.map(|part| (part.entry, part.cost)).collect();
            self.permits
                .hold(slots, now.mono + ttl.min(request::TTL_MAX), owner)
        })
    }

    /// Gives the slots of a permit back; whether it was still held, and `by` this
    /// owner if one is named. Who waited for them is told in `outcomes`.
    pub fn release(
        &mut self,
        now: &Now,
        permit: Permit,
        by: Option<Owner>,
        outcomes: &mut Vec<Outcome>,
    ) -> bool {
        let Some(slots) = self.permits.release(permit, by) else {
            return false;
        };
        self.give_back(now, &slots, outcomes);
        true
    }

    fn give_back(&mut self, now: &Now, slots: &[(u32, u32)], outcomes: &mut Vec<Outcome>) {
        for (entry_id, cost) in slots {
            if let Some(entry) = self.entries.get_mut(*entry_id) {
                entry.limit.release(*cost);
                if entry.feed.is_some() {
                    self.feed(now, *entry_id);
                }
            }
            self.serve(now, *entry_id, outcomes);
        }
    }

    /// Does what is due. When there is more to do.
    pub fn wake(&mut self, now: &Now, outcomes: &mut Vec<Outcome>) -> Mono {
        self.void_parted(now);
        while let Some(slots) = self.permits.ended(now.mono) {
            self.give_back(now, &slots, outcomes);
        }
        while let Some((deadline, who)) = self.deadlines.first().copied()
            && deadline <= now.mono
        {
            self.give_up(now, who, outcomes);
        }
        while let Some((at, entry)) = self.timers.first().copied()
            && at <= now.mono
        {
            self.feed_if_due(now, entry);
            self.set_timer(entry, Mono::NEVER);
            self.serve(now, entry, outcomes);
        }
        self.pauses.forget(now.mono);
        self.next_wake()
    }

    /// When there is something to do.
    pub fn next_wake(&self) -> Mono {
        let timer = self.timers.first().map(|(at, _)| *at);
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let times = [timer, deadline, self.permits.next_end()];
        times.into_iter().flatten().min().unwrap_or(Mono::NEVER)
    }

    /// How many limits are known.
    pub fn keys(&self) -> usize {
        self.entries.len()
    }

    /// How many limits of one owner are known.
    pub fn keys_of(&self, space: &str) -> u64 {
        self.owned.get(space).copied().unwrap_or(0)
    }

    /// How many more limits one owner may have now.
    pub fn room_for(&self, space: &str) -> u64 {
        let (all, max) = (self.entries.len() as u64, self.settings.keys_max as u64);
        match space {
            request::POLICY_SPACE => max.saturating_sub(all),
            space => fair::room(self.keys_of(space), all, max),
        }
    }

    /// How many of one owner's requests wait, and how many more may.
    pub fn waiters_of(&self, owner: Owner) -> (u64, u64) {
        self.waiting.standing(&owner)
    }

    /// How many permits one owner holds, and how many more it may hold now.
    pub fn permits_of(&self, owner: Owner) -> (u64, u64) {
        self.permits.of_owner(owner)
    }

    /// How many wait.
    pub fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// How many permits are held.
    pub fn permits(&self) -> usize {
        self.permits.len()
    }
}
