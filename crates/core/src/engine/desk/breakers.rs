//! The breakers of accounts, and of accounts at a destination.
//!
//! Only those are kept of whom something bad was heard lately: a healthy account
//! costs a look at two empty maps. An account whose breaker is open is blocked;
//! one that is so at a destination is held there. In a pool with one lane the
//! two are the same, and the account is blocked. An account of several lanes
//! breaks as a whole if it fails at more than one of them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::account_limits::Owner;
use super::super::action::Standstill;
use super::super::recall::BREAKER_FORGOTTEN;
use super::Desk;
use crate::breaker::{Breaker, BreakerSettings, Change, Refusals, Signal, State};
use crate::handle::{AccountId, LaneId, PoolId};
use crate::time::{Mono, Nanos};

/// From this many on, those that nothing was heard of lately are forgotten.
const TIDY_FROM: usize = 512;

/// A reply, as far as breakers go.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Heard {
    pub account: AccountId,
    pub lane: Option<LaneId>,
    pub sent_at: Mono,
    pub signal: Signal,
    pub refused: bool,
}

/// What became of an account, or of one at a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Turn {
    Broken {
        lane: Option<LaneId>,
        until: Mono,
        why: Standstill,
    },
    Restored {
        lane: Option<LaneId>,
    },
}

/// How many breakers are not closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Tripped {
    pub open: u32,
    pub half_open: u32,
}

impl Tripped {
    fn add(&mut self, state: State) {
        match state {
            State::Open { .. } => self.open += 1,
            State::HalfOpen { .. } => self.half_open += 1,
            State::Closed => {}
        }
    }
}

/// All breakers that are not closed.
#[derive(Debug, Default)]
pub(in crate::engine) struct Standstills {
    lanes: BTreeMap<LaneId, Tripped>,
    pools: BTreeMap<PoolId, Tripped>,
}

impl Standstills {
    /// Those that concern a lane of a pool.
    pub fn at(&self, lane: LaneId, pool: PoolId) -> Tripped {
        let here = self.lanes.get(&lane).copied().unwrap_or_default();
        let everywhere = self.pools.get(&pool).copied().unwrap_or_default();
        Tripped {
            open: here.open + everywhere.open,
            half_open: here.half_open + everywhere.half_open,
        }
    }
}

#[derive(Debug, Default)]
struct OfAccount {
    breaker: Breaker,
    /// Where it failed first since something went well.
    first: Option<LaneId>,
    /// Whether it failed elsewhere, too.
    elsewhere: bool,
}

#[derive(Debug, Default)]
struct OfPair {
    breaker: Breaker,
    refusals: Refusals,
    stopped_until: Option<Mono>,
}

impl OfPair {
    fn is_held(&self) -> bool {
        self.stopped_until.is_some() || !self.breaker.may_send()
    }

    fn is_idle(&mut self, now: Mono) -> bool {
        !self.is_held() && self.breaker.is_idle(now) && self.refusals.is_idle(now)
    }
}

/// All breakers that know something.
#[derive(Debug, Default)]
pub(super) struct Breakers {
    settings: BreakerSettings,
    accounts: BTreeMap<AccountId, OfAccount>,
    pairs: BTreeMap<(AccountId, LaneId), OfPair>,
    timers: BTreeSet<(Mono, AccountId, LaneId)>,
    tidy_at: usize,
}

impl Breakers {
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            tidy_at: TIDY_FROM,
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.pairs.is_empty()
    }

    pub fn next_wake(&self) -> Mono {
        self.timers.first().map_or(Mono::NEVER, |&(at, ..)| at)
    }

    /// The time of a block is over; whether the account is half open.
    pub fn wake_account(&mut self, now: Mono, id: AccountId) -> bool {
        let entry = self.accounts.get_mut(&id);
        entry.is_some_and(|entry| entry.breaker.wake(now))
    }

    pub fn remove(&mut self, id: AccountId) {
        self.accounts.remove(&id);
        self.pairs.retain(|(of, _), _| *of != id);
    }

    fn tidy(&mut self, now: Mono) {
        if self.pairs.len() + self.accounts.len() < self.tidy_at {
            return;
        }
        self.accounts.retain(|_, it| !it.breaker.is_idle(now));
        self.pairs.retain(|_, it| !it.is_idle(now));
        self.tidy_at = (2 * (self.pairs.len() + self.accounts.len())).max(TIDY_FROM);
    }

    /// Forgets of an account at a destination what is long over.
    fn forget_pair(&mut self, now: Mono, id: AccountId, lane: LaneId) {
        let pair = self.pairs.get_mut(&(id, lane));
        if pair.is_some_and(|pair| pair.is_idle(now)) {
            self.pairs.remove(&(id, lane));
        }
    }

    /// Whether something of an account at a destination is not over yet, where
    /// nothing was sent for so long. Who would let one message ask then has
    /// nothing to say any more.
    pub fn knows_of_pair(
        &mut self,
        now: Mono,
        (id, lane): (AccountId, LaneId),
        unused_for: Nanos,
    ) -> bool {
        self.forget_pair(now, id, lane);
        let Some(pair) = self.pairs.get(&(id, lane)) else {
            return false;
        };
        if pair.is_held() || unused_for < BREAKER_FORGOTTEN {
            return true;
        }
        self.pairs.remove(&(id, lane));
        false
    }

    /// The breaker of an account.
    pub fn of_account(&self, id: AccountId) -> State {
        let entry = self.accounts.get(&id);
        entry.map_or(State::Closed, |entry| entry.breaker.state())
    }

    /// The breakers of accounts at lanes, and until when those stop that were
    /// refused too often.
    pub fn of_pairs(&self) -> impl Iterator<Item = (AccountId, LaneId, State, Option<Mono>)> {
        let pairs = self.pairs.iter();
        pairs.map(|(&(id, lane), pair)| (id, lane, pair.breaker.state(), pair.stopped_until))
    }

    /// Whether the breaker of an account at a lane is not closed.
    fn is_tripped(&self, id: AccountId, lane: LaneId) -> bool {
        let pair = self.pairs.get(&(id, lane));
        pair.is_some_and(|pair| pair.breaker.state() != State::Closed)
    }

    /// Whether an account is held at a lane.
    fn holds(&self, id: AccountId, lane: LaneId) -> bool {
        self.pairs.get(&(id, lane)).is_some_and(OfPair::is_held)
    }
}

impl Desk {
    /// A reply came. What became of whoever carried it.
    pub(in crate::engine) fn heard(&mut self, now: Mono, heard: Heard) -> Vec<Turn> {
        let is_bad = heard.signal == Signal::Failed || heard.refused;
        if !self.breakers.settings.enabled || (!is_bad && self.breakers.is_empty()) {
            return Vec::new();
        }
        let Some(account) = self.account(heard.account) else {
            return Vec::new();
        };
        let sent = match is_bad {
            true => account.capped.sent_in_minute(now),
            false => 0,
        };
        let is_alone = self.side(account.pool).lanes.len() <= 1;
        if is_bad {
            self.breakers.tidy(now);
        }
        let mut turns = Vec::new();
        turns.extend(self.heard_of_refusals(now, &heard, is_alone, sent));
        // One that is not closed was recalled, or opened while there were others.
        let is_heard = |lane: &LaneId| !is_alone || self.breakers.is_tripped(heard.account, *lane);
        if let Some(lane) = heard.lane.filter(is_heard) {
            turns.extend(self.heard_of_pair(now, &heard, lane, sent));
        }
        turns.extend(self.heard_of_account(now, &heard, is_alone, sent));
        if !is_bad && let Some(lane) = heard.lane {
            self.breakers.forget_pair(now, heard.account, lane);
        }
        turns
    }

    fn heard_of_refusals(
        &mut self,
        now: Mono,
        heard: &Heard,
        is_alone: bool,
        sent: u64,
    ) -> Option<Turn> {
        let key = (heard.account, heard.lane?);
        let Breakers {
            settings, pairs, ..
        } = &mut self.breakers;
        let pair = if heard.refused {
            let pair = pairs.entry(key).or_default();
            if pair.refusals.is_idle(now) {
                // This one is among those that were sent.
                pair.refusals = Refusals::new(now, sent.saturating_sub(1));
            }
            pair
        } else {
            pairs.get_mut(&key)?
        };
        if pair.stopped_until.is_some() {
            return None;
        }
        let until = pair.refusals.replied(settings, now, heard.refused)?;
        let why = Standstill::Refusals;
        if is_alone {
            self.block(now, heard.account, until);
            let lane = None;
            return Some(Turn::Broken { lane, until, why });
        }
        pair.stopped_until = Some(until);
        self.breakers.timers.insert((until, key.0, key.1));
        self.tell_pair(key.0, key.1);
        let lane = Some(key.1);
        Some(Turn::Broken { lane, until, why })
    }

    fn heard_of_pair(&mut self, now: Mono, heard: &Heard, lane: LaneId, sent: u64) -> Option<Turn> {
        let key = (heard.account, lane);
        let Breakers {
            settings, pairs, ..
        } = &mut self.breakers;
        if heard.signal == Signal::Failed {
            let pair = pairs.entry(key).or_default();
            if pair.breaker.is_idle(now) {
                pair.breaker = Breaker::new(now, sent);
            }
        }
        let breaker = &mut pairs.get_mut(&key)?.breaker;
        let change = breaker.replied(settings, now, heard.sent_at, heard.signal, true)?;
        if let Change::Opened { until } = change {
            self.breakers.timers.insert((until, key.0, lane));
        }
        self.tell_pair(key.0, lane);
        turn_of(change, Some(lane))
    }

    fn heard_of_account(
        &mut self,
        now: Mono,
        heard: &Heard,
        is_alone: bool,
        sent: u64,
    ) -> Option<Turn> {
        let id = heard.account;
        let Breakers {
            settings, accounts, ..
        } = &mut self.breakers;
        if heard.signal == Signal::Failed {
            let entry = accounts.entry(id).or_default();
            if entry.breaker.is_idle(now) {
                entry.breaker = Breaker::new(now, sent);
            }
        }
        let entry = accounts.get_mut(&id)?;
        match heard.signal {
            Signal::Fine => (entry.first, entry.elsewhere) = (None, false),
            Signal::Failed => {
                entry.first = entry.first.or(heard.lane);
                entry.elsewhere |= heard.lane != entry.first;
            }
            Signal::Silent => {}
        }
        let may_open = is_alone || entry.elsewhere;
        let breaker = &mut entry.breaker;
        let change = breaker.replied(settings, now, heard.sent_at, heard.signal, may_open);
        if breaker.is_idle(now) {
            accounts.remove(&id);
        }
        let change = change?;
        let account = self.account_mut(id)?;
        account.probing = false;
        let (pool, is_blocked) = (account.pool, account.blocked_until.is_some());
        match change {
            Change::Opened { until } => self.block(now, id, until),
            Change::Closed if !is_blocked => self.side_mut(pool).episode.release(now, id),
            Change::Closed | Change::ProbeAgain => {}
        }
        self.tell_hold(id);
        turn_of(change, None)
    }

    /// The breaker of an account was open until a time when the process ended.
    pub(in crate::engine) fn recall_breaker(&mut self, now: Mono, id: AccountId, until: Mono) {
        if !self.breakers.settings.enabled {
            return;
        }
        let entry = self.breakers.accounts.entry(id).or_default();
        entry.breaker = Breaker::opened_until(until);
        self.block(now, id, until);
    }

    /// The same, of an account at a lane.
    pub(in crate::engine) fn recall_pair(&mut self, id: AccountId, lane: LaneId, until: Mono) {
        if !self.breakers.settings.enabled {
            return;
        }
        let pair = self.breakers.pairs.entry((id, lane)).or_default();
        pair.breaker = Breaker::opened_until(until);
        self.breakers.timers.insert((until, id, lane));
        self.tell_pair(id, lane);
    }

    /// A message goes out: it may be the one that a breaker lets through.
    pub(super) fn note_probe(&mut self, now: Mono, id: AccountId, lane: LaneId) {
        let entry = self.breakers.accounts.get_mut(&id);
        if entry.is_some_and(|entry| entry.breaker.sent(now)) {
            if let Some(account) = self.account_mut(id) {
                account.probing = true;
            }
            self.tell_hold(id);
        }
        let pair = self.breakers.pairs.get_mut(&(id, lane));
        if pair.is_some_and(|pair| pair.breaker.sent(now)) {
            self.tell_pair(id, lane);
        }
    }

    /// Lets go whom a breaker held at a destination for its time.
    pub(super) fn wake_breakers(&mut self, now: Mono) {
        while let Some(&(at, id, lane)) = self.breakers.timers.first() {
            if at > now {
                return;
            }
            self.breakers.timers.remove(&(at, id, lane));
            if let Some(pair) = self.breakers.pairs.get_mut(&(id, lane)) {
                pair.stopped_until = pair.stopped_until.filter(|&until| until > now);
                pair.breaker.wake(now);
                self.tell_pair(id, lane);
            }
        }
    }

    /// Tells the pool whether an account is held at a destination.
    pub(super) fn tell_pair(&mut self, id: AccountId, lane: LaneId) {
        let held = self.held_pairs.contains(&(id, lane)) || self.breakers.holds(id, lane);
        let pool = self.lane(lane).pool;
        self.pool_mut(pool).hold_pair(id, lane, held);
        if !held {
            self.limits.note_hungry(Owner::Pair(id, lane));
        }
    }

    /// How an account's breakers stand at a lane, and until when it is left
    /// alone, if that is known. Closed if none holds it.
    pub(in crate::engine) fn broken(&self, id: AccountId, lane: LaneId) -> (State, Option<Mono>) {
        let of_account = self.breakers.accounts.get(&id);
        let pair = self.breakers.pairs.get(&(id, lane));
        let states = [
            of_account.map(|it| it.breaker.state()),
            pair.map(|it| it.breaker.state()),
            pair.and_then(|it| it.stopped_until)
                .map(|until| State::Open { until }),
        ];
        let mut worst = State::Closed;
        for state in states.into_iter().flatten() {
            worst = match (worst, state) {
                (State::Open { until: a }, State::Open { until: b }) => {
                    State::Open { until: a.max(b) }
                }
                (State::Open { .. }, _) | (_, State::Closed) => worst,
                (_, state) => state,
            };
        }
        let until = match worst {
            State::Open { until } => Some(until),
            State::Closed | State::HalfOpen { .. } => None,
        };
        (worst, until)
    }

    /// Who is left alone: by lane, those that are so at it, and by pool, those
    /// that are so everywhere.
    pub(in crate::engine) fn standstills(&self) -> Standstills {
        let mut found = Standstills::default();
        for (&(_, lane), pair) in &self.breakers.pairs {
            let stopped = pair.stopped_until.map(|until| State::Open { until });
            let state = stopped.unwrap_or(pair.breaker.state());
            found.lanes.entry(lane).or_default().add(state);
        }
        for (&id, entry) in &self.breakers.accounts {
            if let Some(account) = self.account(id) {
                let of_pool = found.pools.entry(account.pool).or_default();
                of_pool.add(entry.breaker.state());
            }
        }
        found
    }

    /// Whether any breaker knows anything.
    pub(in crate::engine) fn has_breakers(&self) -> bool {
        !self.breakers.is_empty()
    }
}

fn turn_of(change: Change, lane: Option<LaneId>) -> Option<Turn> {
    let why = Standstill::Failures;
    match change {
        Change::Opened { until } => Some(Turn::Broken { lane, until, why }),
        Change::Closed => Some(Turn::Restored { lane }),
        Change::ProbeAgain => None,
    }
}
