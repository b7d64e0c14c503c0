//! The limits that flows pass themselves, by key; and how any limit is made.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::action::Hold;
use super::feed::Feed;
use super::learners::{Learners, Lore};
use crate::handle::PlaceId;
use crate::limit::saved::Saved;
use crate::limit::spec::{Headroom, LimitSpec};
use crate::limit::{Fill, Limit};
use crate::name::Name;
use crate::policy::applied::Applied;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::schedule::Schedule;
use crate::schedule::place::Holder;
use crate::time::{Mono, Nanos, Now, Wall};

/// How long a limit that was lent from is kept for the next borrower.
const LENT_KEPT: Nanos = Nanos::from_secs(60);

/// What the journal knew of a limit when the engine started.
#[derive(Clone, Debug)]
pub struct SavedLimit {
    /// Its state at the last reservation.
    pub saved: Saved,
    /// Tokens reserved since that state was saved.
    pub reserved_since: u64,
}

/// How the engine starts.
#[derive(Clone, Debug)]
pub enum Start {
    /// For the first time: limits are full.
    Fresh,
    /// Again, so long after it ended. What was reserved counts as spent, and
    /// short buckets start empty: a restart never sends faster.
    Again {
        /// What the journal knew of each limit.
        limits: BTreeMap<LimitKey, SavedLimit>,
        /// When what it knew of others was lost, if it was: what they have of a
        /// time that is not over counts as spent.
        counts_lost_at: Option<Wall>,
        /// Which accounts are held, and how.
        holds: BTreeMap<LimitKey, Hold>,
        /// What was learnt of rates.
        adapted: BTreeMap<LimitKey, Lore>,
        /// From the last record to now, at least.
        downtime: Nanos,
    },
}

/// Makes limits as this node must have them.
#[derive(Debug)]
pub(super) struct Maker {
    /// Whether a ledger counts, for the whole fleet.
    leased: bool,
    start: Start,
    started_at: Mono,
    /// Rates that are learnt.
    pub learners: Learners,
}

impl Maker {
    pub fn new(leased: bool, mut start: Start, now: &Now) -> Self {
        let learners = match &mut start {
            Start::Fresh => Learners::default(),
            Start::Again {
                adapted, downtime, ..
            } => Learners::again(now, std::mem::take(adapted), *downtime),
        };
        Self {
            leased,
            start,
            started_at: now.mono,
            learners,
        }
    }

    /// A limit with its feed, if it spends what it is given.
    pub fn make(&mut self, now: &Now, applied: &Applied) -> (Limit, Option<Feed>) {
        if let Some(learner) = self.learners.of(now, applied)
            && let Some(limit) = self.learners.limit(now, learner, self.fill())
        {
            return (limit, None);
        }
        let limit = self.make_limit(now, applied);
        let feed = Feed::of(&limit, &applied.key, applied.when_away);
        (limit, feed)
    }

    /// What a counter that is not saved starts with: a restart never sends
    /// faster.
    pub fn fill(&self) -> Fill {
        match self.start {
            Start::Fresh => Fill::Full,
            Start::Again { .. } => Fill::Empty,
        }
    }

    fn make_limit(&mut self, now: &Now, applied: &Applied) -> Limit {
        let (spec, headroom) = (applied.spec.clone(), applied.headroom);
        if self.leased {
            let limit = Limit::leased(spec, headroom);
            let Start::Again {
                limits, downtime, ..
            } = &mut self.start
            else {
                return limit.with_account();
            };
            let Some(known) = limits.remove(&applied.key) else {
                return limit.with_account();
            };
            // What went by since the start is downtime too.
            let downtime = *downtime + now.mono.since(self.started_at);
            let (saved, since) = (&known.saved, known.reserved_since);
            return limit.with_saved_account(saved, since, now, downtime);
        }
        self.make_owned(now, &applied.key, applied)
    }

    /// A limit that this node alone decides on, under a key of its own.
    pub fn make_owned(&mut self, now: &Now, key: &LimitKey, applied: &Applied) -> Limit {
        let (spec, headroom) = (applied.spec.clone(), applied.headroom);
        let Start::Again {
            limits,
            downtime,
            counts_lost_at,
            ..
        } = &mut self.start
        else {
            return Limit::owned(spec, headroom, now, Fill::Full);
        };
        let at_start = Now {
            mono: self.started_at,
            ..*now
        };
        if let Some(known) = limits.remove(key) {
            let since = known.reserved_since;
            return Limit::restore(spec, headroom, &known.saved, since, &at_start, *downtime);
        }
        if let Some(lost_at) = *counts_lost_at
            && may_be_spent(&spec, now, lost_at)
        {
            // What is lost was taken from the calendar's window of that time,
            // and a window that began since is whole.
            let when_lost = Now {
                wall: lost_at.min(now.wall),
                ..at_start
            };
            return Limit::owned(spec, headroom, &when_lost, Fill::Empty);
        }
        // A limit that reserves and has no record was never used.
        let fresh = Limit::owned(spec.clone(), headroom, now, Fill::Full);
        if fresh.needs_reserve() || matches!(spec, LimitSpec::Concurrency { .. }) {
            return fresh;
        }
        Limit::owned(spec, headroom, &at_start, Fill::Empty)
    }

    /// How an account was held before the start; told once.
    pub fn hold_of(&mut self, account: &Name, facet: Facet) -> Option<Hold> {
        let Start::Again { holds, .. } = &mut self.start else {
            return None;
        };
        holds.remove(&LimitKey::new([(Scope::Account, account.clone())], facet))
    }

    /// Until when breakers of accounts at a destination were open before the
    /// start.
    pub fn broken_pairs(&self) -> impl Iterator<Item = (&LimitKey, Wall)> {
        let holds = match &self.start {
            Start::Again { holds, .. } => Some(holds),
            Start::Fresh => None,
        };
        let pairs = holds.into_iter().flatten();
        pairs
            .filter(|(key, _)| *key.facet() == Facet::Breaker && key.parts().len() > 1)
            .map(|(key, hold)| (key, hold.until))
    }

    /// The limits that the journal knew, of recipients or all others, each with
    /// the time by which a fresh one knows as much.
    pub fn known(&self, of_recipients: bool) -> Vec<(Mono, LimitKey)> {
        let Start::Again { limits, .. } = &self.start else {
            return Vec::new();
        };
        let meant = limits
            .iter()
            .filter(|(key, _)| key.name(Scope::Recipient).is_some() == of_recipients);
        let until = |lasts_for| self.started_at + Nanos(lasts_for);
        meant
            .map(|(key, known)| (until(known.saved.lasts_for), key.clone()))
            .collect()
    }

    /// Drops what the journal knew of a limit; whether nobody had asked for it.
    pub fn drop_known(&mut self, key: &LimitKey) -> bool {
        match &mut self.start {
            Start::Again { limits, .. } => limits.remove(key).is_some(),
            Start::Fresh => false,
        }
    }
}

/// One limit at a place.
#[derive(Debug)]
pub(super) struct FlowLimit {
    pub key: Arc<LimitKey>,
    pub feed: Option<Feed>,
    users: u32,
    /// Whether it stands in the list of those that no flow passes.
    is_listed: bool,
    /// When it was last lent from, if nobody passes it himself.
    lent_at: Option<Mono>,
}

/// All limits that flows pass themselves.
#[derive(Debug, Default)]
pub(super) struct FlowLimits {
    by_key: BTreeMap<Arc<LimitKey>, PlaceId>,
    by_place: BTreeMap<PlaceId, FlowLimit>,
    /// Limits that no flow passes any more, kept until they would know nothing
    /// that a new one does not: who takes a policy away and puts it back gets no
    /// second burst, and slots of what is in flight come back to where they were
    /// taken.
    unused: VecDeque<PlaceId>,
    /// The last request for tokens of all that were forgotten: an answer that
    /// comes late must not find a successor.
    last_request: u32,
}

impl FlowLimits {
    /// The place of a limit, made if need be; its numbers are brought up to date.
    pub fn join(
        &mut self,
        now: &Now,
        applied: &Applied,
        schedule: &mut Schedule,
        maker: &mut Maker,
    ) -> PlaceId {
        if let Some(&place) = self.by_key.get(&applied.key) {
            if let Some(limit) = self.by_place.get_mut(&place) {
                limit.users += 1;
                if let Some(feed) = &mut limit.feed {
                    feed.when_away = applied.when_away;
                }
            }
            if maker.learners.of(now, applied).is_some() {
                return place;
            }
            schedule.set_headroom(place, applied.headroom);
            let changed = schedule
                .limit(place)
                .is_some_and(|limit| *limit.spec() != applied.spec);
            if changed {
                schedule.reconfigure(now, place, applied.spec.clone());
                if let Some(feed) = self
                    .by_place
                    .get_mut(&place)
                    .and_then(|it| it.feed.as_mut())
                {
                    feed.renumber();
                }
                // A slower bucket may have to reserve what it spends from now on.
                let feed = schedule
                    .limit(place)
                    .and_then(|limit| Feed::of(limit, &applied.key, applied.when_away));
                if let Some(known) = self.by_place.get_mut(&place)
                    && known.feed.is_none()
                {
                    known.feed = feed;
                }
            }
            return place;
        }
        let (limit, mut feed) = maker.make(now, applied);
        if let Some(feed) = &mut feed {
            feed.number_after(self.last_request);
        }
        let place = schedule.add_place(Holder::Limit(Box::new(limit)));
        schedule.group_waits(place, applied.key.scopes());
        let key = Arc::new(applied.key.clone());
        self.by_key.insert(Arc::clone(&key), place);
        self.by_place.insert(
            place,
            FlowLimit {
                key,
                feed,
                users: 1,
                is_listed: false,
                lent_at: None,
            },
        );
        place
    }

    /// One flow less passes a limit.
    pub fn leave(&mut self, place: PlaceId) {
        if let Some(limit) = self.by_place.get_mut(&place) {
            limit.users -= 1;
            if limit.users == 0 {
                self.list(place);
            }
        }
    }

    /// Puts a limit that no flow passes in the list of those.
    fn list(&mut self, place: PlaceId) {
        if let Some(limit) = self.by_place.get_mut(&place)
            && !std::mem::replace(&mut limit.is_listed, true)
        {
            self.unused.push_back(place);
        }
    }

    /// Somebody borrows of a limit: it is not forgotten at once, also if it is
    /// idle, since what was reserved for him would be lost.
    pub fn note_lent(&mut self, now: Mono, place: PlaceId) {
        if let Some(limit) = self.by_place.get_mut(&place) {
            limit.lent_at = Some(now);
        }
    }

    /// Looks at some of the limits that no flow passes, and forgets those that
    /// are idle: their keys, and whether the journal knows of them.
    pub fn tidy(
        &mut self,
        now: &Now,
        looks: usize,
        schedule: &mut Schedule,
    ) -> Vec<(Arc<LimitKey>, bool)> {
        let mut forgotten = Vec::new();
        for _ in 0..looks.min(self.unused.len()) {
            let Some(place) = self.unused.pop_front() else {
                break;
            };
            let Some(limit) = self.by_place.get_mut(&place).filter(|it| it.is_listed) else {
                continue;
            };
            limit.is_listed = false;
            if limit.users > 0 {
                continue;
            }
            let is_lent = limit
                .lent_at
                .is_some_and(|at| now.mono.since(at) < LENT_KEPT);
            let is_asking = limit.feed.as_ref().is_some_and(Feed::is_asking);
            let is_idle = schedule.limit(place).is_none_or(|it| it.is_idle(now));
            if is_lent || is_asking || !is_idle || !schedule.is_at_rest(place) {
                self.list(place);
                continue;
            }
            if let Some(gone) = self.by_place.remove(&place) {
                let is_written = schedule.limit(place).is_some_and(Limit::needs_reserve);
                let asked = gone.feed.map_or(0, |feed| feed.last_request());
                self.last_request = self.last_request.max(asked);
                self.by_key.remove(&gone.key);
                schedule.remove_place(place);
                forgotten.push((gone.key, is_written));
            }
        }
        forgotten
    }

    /// Limits that no flow passes.
    pub fn unused(&self) -> usize {
        self.unused.len()
    }

    pub fn get(&self, place: PlaceId) -> Option<&FlowLimit> {
        self.by_place.get(&place)
    }

    pub fn get_mut(&mut self, place: PlaceId) -> Option<&mut FlowLimit> {
        self.by_place.get_mut(&place)
    }

    /// All limits with their places, in order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<LimitKey>, PlaceId)> {
        self.by_key.iter().map(|(key, &place)| (key, place))
    }

    pub fn find(&self, key: &LimitKey) -> Option<PlaceId> {
        self.by_key.get(key).copied()
    }

    /// How many limits there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }
}

/// Whether what was taken of a limit until `lost_at` can still matter.
fn may_be_spent(spec: &LimitSpec, now: &Now, lost_at: Wall) -> bool {
    let then = Now {
        wall: lost_at,
        ..*now
    };
    let spent = Limit::owned(spec.clone(), Headroom::default(), &then, Fill::Empty);
    let lasts_for = Nanos(spent.save(&then).lasts_for);
    spent.needs_reserve() && now.wall.since(lost_at) < lasts_for
}
