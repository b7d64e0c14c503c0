//! What is counted of every reply: for its destination, tenant, campaign and
//! sending domain, and for its account, IP and brand.

use std::sync::Arc;

use super::Engine;
use super::account_limits::Owner;
use super::pair::ByPair;
use super::permits::Permit;
use crate::account::AccountSpec;
use crate::flow::FlowKey;
use crate::free_numbers::FreeNumbers;
use crate::handle::{AccountId, LaneId};
use crate::name::Name;
use crate::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};
use crate::policy::aliases;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::reply::Reply;
use crate::tally::{Counter, Tallies, Tally, TallyRef, Teller};
use crate::time::{Mono, Nanos, Now};

/// Keys that are counted apart; about 5 KB each, less of those heard of once.
const KEYS_MAX: usize = 4_096;

/// Pairs of an account and a destination that are counted apart.
const PAIRS_MAX: usize = 1_024;

/// Those of them with a quota by the calendar: how their day went decides about
/// the next, so that they do not depend on what room the others leave.
const QUOTA_PAIRS_MAX: usize = 1_024;

/// A pair that found no place is given one after this, if there is room then.
const ROOM_AGAIN: Nanos = Nanos::from_secs(60);

/// Pairs whose place is remembered: then all are looked for anew.
const PLACES_MAX: usize = 16_384;

/// The most counters that one reply moves.
const MOVED_MAX: usize = 5;

/// Things that one flow, or one account, is counted for.
const PARTS_MAX: usize = 4;

/// Where the parts of a flow, or of an account, are counted. Names are looked
/// for once, and after that only where a place was lost or there is new room.
pub(super) type Places = Box<[Option<TallyRef>; PARTS_MAX]>;

/// What a flow, or an account, is counted for.
type Parts<'a> = [Option<(Scope, &'a Name)>; PARTS_MAX];

/// All counts.
#[derive(Debug)]
pub(super) struct Counts {
    all: Tallies<Arc<LimitKey>>,
    /// Of accounts at destinations, apart: there may be many, and they are to
    /// crowd out nobody else.
    pairs: Tallies<Arc<LimitKey>>,
    quota_pairs: Tallies<Arc<LimitKey>>,
    /// Where destinations are counted, by lane.
    lanes: Vec<Option<TallyRef>>,
    places: ByPair<PairPlace>,
}

/// Where a pair is counted.
#[derive(Clone, Copy, Debug)]
enum PairPlace {
    At {
        has_quota: bool,
        place: TallyRef,
    },
    /// Nowhere: there was no room, and is looked for again then.
    Nowhere {
        until: Mono,
    },
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            all: Tallies::new(KEYS_MAX),
            pairs: Tallies::new(PAIRS_MAX),
            quota_pairs: Tallies::new(QUOTA_PAIRS_MAX),
            lanes: Vec::new(),
            places: ByPair::default(),
        }
    }
}

impl Counts {
    /// Finds a place for each part.
    fn places(&mut self, now: Mono, parts: &Parts<'_>, lane: Option<LaneId>) -> Places {
        let mut places = [None; PARTS_MAX];
        let known = lane.and_then(|lane| *self.lanes.get(lane.index())?);
        for (place, part) in places.iter_mut().zip(parts) {
            let Some(part) = part else { continue };
            *place = match known {
                Some(known) if self.is_at(known, *part) => Some(known),
                _ => self.find(now, *part),
            };
        }
        Box::new(places)
    }

    /// Whether this is where a part is counted.
    fn is_at(&self, place: TallyRef, (scope, name): (Scope, &Name)) -> bool {
        let key = self.all.key_at(place);
        key.is_some_and(|key| matches!(key.parts(), [(of, it)] if *of == scope && it == name))
    }

    fn find(&mut self, now: Mono, (scope, name): (Scope, &Name)) -> Option<TallyRef> {
        let name = aliases::canonical(scope, name);
        let compare = |known: &Arc<LimitKey>| known.cmp_one(scope, &name);
        let make = || Arc::new(LimitKey::of(scope, name.clone()));
        self.all.find_by(now, compare, make)
    }

    /// Remembers where the destination of a lane is counted: its flows need not
    /// look for it.
    fn note_lane(&mut self, lane: LaneId, place: Option<TallyRef>) {
        if self.lanes.len() <= lane.index() {
            self.lanes.resize(lane.index() + 1, None);
        }
        if let Some(known) = self.lanes.get_mut(lane.index()) {
            *known = place;
        }
    }

    fn count(&mut self, now: Mono, places: &mut Places, parts: &Parts<'_>, counters: &[Counter]) {
        for (place, part) in places.iter_mut().zip(parts) {
            let Some(part) = part else { continue };
            if place.is_some_and(|place| self.all.add_each(now, place, counters)) {
                continue;
            }
            // It was forgotten while it was silent, or never had room.
            if place.is_some() || !self.all.is_full(now) {
                *place = self.find(now, *part);
            }
            match *place {
                Some(place) => {
                    self.all.add_each(now, place, counters);
                }
                None => self.all.add_other(now, counters),
            }
        }
    }

    /// A lane is gone: its number may be that of another soon.
    pub fn remove_lane(&mut self, lane: LaneId) {
        self.places.remove_lane(lane);
        if let Some(known) = self.lanes.get_mut(lane.index()) {
            *known = None;
        }
        FreeNumbers::cut(&mut self.lanes, 0, Option::is_none);
    }

    /// All keys and their counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<LimitKey>, &Tally)> {
        let pairs = self.quota_pairs.iter().chain(self.pairs.iter());
        self.all.iter().chain(pairs)
    }

    const fn pairs_of(&mut self, has_quota: bool) -> &mut Tallies<Arc<LimitKey>> {
        match has_quota {
            true => &mut self.quota_pairs,
            false => &mut self.pairs,
        }
    }

    /// Counts for an account at a destination whose place is known. Whether it
    /// was.
    fn count_pair(
        &mut self,
        now: Mono,
        (account, lane): (AccountId, LaneId),
        counters: &[Counter],
    ) -> bool {
        match self.places.get(account, lane) {
            Some(&PairPlace::At { has_quota, place }) => {
                self.pairs_of(has_quota).add_each(now, place, counters)
            }
            Some(PairPlace::Nowhere { until }) => now < *until,
            None => false,
        }
    }

    /// Finds a place for an account at a destination, as long as there is room,
    /// and counts there. Without room nothing is looked for with every reply.
    fn place_pair(
        &mut self,
        now: Mono,
        (account, lane): (AccountId, LaneId),
        has_quota: bool,
        key: impl FnOnce() -> Option<LimitKey>,
        counters: &[Counter],
    ) {
        let pairs = self.pairs_of(has_quota);
        let found = match pairs.is_full(now) {
            true => None,
            false => key().and_then(|key| pairs.find(now, &Arc::new(key))),
        };
        let place = match found {
            Some(place) => {
                pairs.add_each(now, place, counters);
                PairPlace::At { has_quota, place }
            }
            None => PairPlace::Nowhere {
                until: now + ROOM_AGAIN,
            },
        };
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
        }
        self.places.insert(account, lane, place);
    }

    /// Counts for a pair by its key.
    fn add_pair(&mut self, now: Mono, key: LimitKey, counter: Counter) {
        let has_quota = self.quota_pairs.get(&key).is_some();
        self.pairs_of(has_quota)
            .add(now, &Arc::new(key), counter, 1);
    }
}

fn pair_key(account: &AccountSpec, flow: &FlowKey) -> Option<LimitKey> {
    let scope = Scope::of_destination(flow.destination.kind)?;
    let parts = [
        (Scope::Account, account.id.clone()),
        (scope, flow.destination.name.clone()),
    ];
    Some(LimitKey::new(parts, Facet::Rate))
}

/// What the replies to a flow are counted for. Its destination stands first.
fn flow_parts(key: &FlowKey) -> Parts<'_> {
    let destination = Scope::of_destination(key.destination.kind);
    let campaign = key.campaign.as_ref();
    let sender_domain = key.sender_domain.as_ref();
    [
        destination.map(|scope| (scope, &key.destination.name)),
        Some((Scope::Tenant, &key.tenant)),
        campaign.map(|name| (Scope::Campaign, name)),
        sender_domain.map(|name| (Scope::SenderDomain, name)),
    ]
}

fn account_parts(spec: &AccountSpec) -> Parts<'_> {
    [
        Some((Scope::Account, &spec.id)),
        spec.ip.as_ref().map(|ip| (Scope::Ip, ip)),
        spec.brand.as_ref().map(|brand| (Scope::Brand, brand)),
        None,
    ]
}

fn keys_of(parts: Parts<'_>) -> impl Iterator<Item = LimitKey> {
    let parts = parts.into_iter().flatten();
    parts.map(|(scope, name)| LimitKey::of(scope, name.clone()))
}

/// Whether we are told that we send too fast. What one mailbox gets, and what
/// one connection carries, say nothing of that.
fn is_too_fast(outcome: &Outcome) -> bool {
    let is_of_us = match outcome.scope {
        ReplyScope::Tenant
        | ReplyScope::Account
        | ReplyScope::WholeAccount
        | ReplyScope::SendingDomain
        | ReplyScope::Destination => true,
        ReplyScope::Recipient | ReplyScope::Message | ReplyScope::Session => false,
    };
    outcome.class == ReplyClass::Rate && outcome.verdict != Verdict::Delivered && is_of_us
}

/// Which counters a reply moves, and how many of them count.
fn moved(reply: &Reply, outcome: &Outcome) -> ([Counter; MOVED_MAX], usize) {
    let mut moved = [Counter::Attempts; MOVED_MAX];
    let mut len = 1;
    let mut note = |counter| {
        if let Some(place) = moved.get_mut(len) {
            *place = counter;
            len += 1;
        }
    };
    match outcome.verdict {
        Verdict::Delivered => note(Counter::Accepted),
        Verdict::Bounced => note(Counter::Bounced),
        Verdict::Retry | Verdict::Blocked | Verdict::Misconfigured | Verdict::Uncertain => {
            note(Counter::Deferred);
        }
    }
    if let Reply::Said { code, .. } = *reply {
        match code {
            400..=499 => note(Counter::Reply4xx),
            500..=599 => note(Counter::Reply5xx),
            _ => {}
        }
        if is_too_fast(outcome) {
            note(Counter::Reply429);
        }
    }
    (moved, len)
}

impl Engine {
    /// Counts a reply for everything that it concerns.
    pub(super) fn count_reply(
        &mut self,
        now: &Now,
        permit: &Permit,
        reply: &Reply,
        outcome: &Outcome,
    ) {
        let (moved, len) = moved(reply, outcome);
        let moved = moved.get(..len).unwrap_or_default();
        let counts = &mut self.counts;
        if let Some(flow) = self.counter.flows.get_mut(permit.flow) {
            let parts = flow_parts(&flow.key);
            let places = flow.tallies.get_or_insert_with(|| {
                let places = counts.places(now.mono, &parts, Some(permit.lane));
                counts.note_lane(permit.lane, places.first().copied().flatten());
                places
            });
            counts.count(now.mono, places, &parts, moved);
        }
        if let Some(account) = self.counter.desk.account_mut(permit.account) {
            let parts = account_parts(&account.spec);
            let places = account
                .tallies
                .get_or_insert_with(|| counts.places(now.mono, &parts, None));
            counts.count(now.mono, places, &parts, moved);
            let pair = (permit.account, permit.lane);
            if !counts.count_pair(now.mono, pair, moved) {
                self.place_pair(now, permit, moved);
            }
        }
    }

    /// Counts for a pair that has no place yet, or had to give it up.
    fn place_pair(&mut self, now: &Now, permit: &Permit, moved: &[Counter]) {
        let desk = &self.counter.desk;
        let account = desk.account(permit.account);
        let (Some(account), Some(flow)) = (account, self.counter.flows.get(permit.flow)) else {
            return;
        };
        let pair = (permit.account, permit.lane);
        let mut limits = desk.limits.of(Owner::Pair(pair.0, pair.1));
        let has_quota = limits.any(|it| matches!(it.key.facet(), Facet::Calendar(..)));
        let key = || pair_key(&account.spec, &flow.key);
        self.counts
            .place_pair(now.mono, pair, has_quota, key, moved);
    }

    /// Counts a session that was refused with words: for its account and its
    /// destination it was an attempt that came to nothing.
    pub(super) fn count_opening(
        &mut self,
        now: &Now,
        (account, lane): (AccountId, LaneId),
        reply: &Reply,
        outcome: &Outcome,
    ) {
        let Reply::Said { .. } = reply else {
            return;
        };
        let (mut moved, len) = moved(reply, outcome);
        // No message was given back: those that wait go on waiting.
        for counter in moved.iter_mut().filter(|it| **it == Counter::Bounced) {
            *counter = Counter::Deferred;
        }
        let Some(account) = self.counter.desk.account(account) else {
            return;
        };
        let facts = &self.counter.desk.lane(lane).facts;
        let destination = Scope::of_destination(facts.destination.kind);
        let destination =
            destination.map(|scope| LimitKey::of(scope, facts.destination.name.clone()));
        let keys: Vec<LimitKey> = keys_of(account_parts(&account.spec))
            .chain(destination)
            .collect();
        let pair = pair_key(&account.spec, facts);
        let counts = &mut self.counts;
        for &counter in moved.get(..len).unwrap_or_default() {
            for key in &keys {
                let key = Arc::new(key.clone());
                counts.all.add(now.mono, &key, counter, 1);
            }
            if let Some(pair) = &pair {
                counts.add_pair(now.mono, pair.clone(), counter);
            }
        }
    }

    /// Counts what was heard of a message later: a bounce, a complaint, that it
    /// was opened.
    pub(super) fn count_later(
        &mut self,
        now: &Now,
        key: &FlowKey,
        account: Option<&Name>,
        (counter, teller): (Counter, Teller),
    ) {
        if teller == Teller::Tenant {
            let key = Arc::new(LimitKey::of(Scope::Tenant, key.tenant.clone()));
            self.counts.all.add(now.mono, &key, counter, 1);
            return;
        }
        let spec = account
            .and_then(|name| self.counter.desk.find_account(name))
            .and_then(|id| self.counter.desk.account(id));
        let keys = spec.map(|account| keys_of(account_parts(&account.spec)));
        let keys = keys.into_iter().flatten();
        let pair = spec.and_then(|account| pair_key(&account.spec, key));
        for key in keys_of(flow_parts(key)).chain(keys) {
            self.counts.all.add(now.mono, &Arc::new(key), counter, 1);
        }
        if let Some(pair) = pair {
            self.counts.add_pair(now.mono, pair, counter);
        }
    }

    /// What was counted lately of this key.
    pub fn tally(&self, key: &LimitKey) -> Option<&Tally> {
        self.counts.all.get(key)
    }

    /// What was counted lately, by key.
    pub fn tallies(&self) -> impl Iterator<Item = (&Arc<LimitKey>, &Tally)> {
        self.counts.iter()
    }
}
