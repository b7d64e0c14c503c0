//! Rates that are learnt: a controller for each thing of which the far end was
//! found to take less than it was sent, or of which a policy says that its rate
//! is to be learnt.
//!
//! A learner owns no limit. It says at which pace the limit of its key goes, and
//! the engine tells the limit when that changes. So learnt limits are waited at
//! like any others, and everything else that is limited still is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::lessons::Lessons;
pub use super::lore::{Adapted, Lore, Turn};
use crate::adapt::{Controller, Evidence, Explicit, Mode, Pace, Profile, Settings, Signal};
use crate::handle::LearnerId;
use crate::limit::spec::{LimitSpec, Rate};
use crate::limit::{Fill, Limit};
use crate::policy::applied::{Applied, Learning};
use crate::policy::key::LimitKey;
use crate::policy::scope_set::ScopeSet;
use crate::time::{Mono, Nanos, Now};

/// Things whose rate is learnt; about 600 bytes each.
pub(super) const LEARNERS_MAX: usize = 50_000;
/// How often what flows is looked at while nothing else changes: after idling
/// it rises by itself.
const LOOK: Nanos = Nanos::from_secs(1);
/// What is in use is written down so often at least: what is not written down
/// counts as idle after a restart, and goes on slowly.
const WRITTEN_AGAIN: Nanos = Nanos::from_secs(300);
/// A limit that is stopped until a reply comes is looked at again after this.
const STOPPED_MAX: Nanos = Nanos::from_secs(24 * 3_600);
/// Paces that differ by less are the same.
const SAME: f64 = 0.002;
/// Rates that differ by less are not worth a line in the audit.
const NOTED: f64 = 0.05;

/// What a limit was told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Told {
    Flow(f64),
    One,
    Stop(Mono),
}

impl Told {
    fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Flow(one), Self::Flow(two)) => (one - two).abs() <= SAME * one.min(two),
            (one, two) => one == two,
        }
    }

    /// The numbers of a limit at this pace.
    pub fn spec(self) -> LimitSpec {
        match self {
            Self::Flow(rate) => {
                let rate = Rate::of_per_second(rate);
                let burst = rate.default_burst();
                LimitSpec::TokenBucket { rate, burst }
            }
            Self::One | Self::Stop(_) => LimitSpec::TokenBucket {
                rate: Rate {
                    count: 1,
                    per: STOPPED_MAX,
                },
                burst: 1,
            },
        }
    }
}

/// One key, and what was learnt of it.
#[derive(Debug)]
pub(super) struct Learner {
    pub key: Arc<LimitKey>,
    pub scopes: ScopeSet,
    pub learning: Learning,
    pub controller: Controller,
    told: Told,
    looked_at: Mono,
    wake: Option<Mono>,
    /// Whether it stands in the list of those that need a look.
    is_listed: bool,
    /// As it was last written down, and when.
    written: Option<(u32, Mode, Option<Mono>)>,
    written_at: Mono,
    /// As people were last told.
    noted: (Mode, f64),
    is_new: bool,
    /// Whether people were told that it stands still for hours.
    told_long: bool,
    /// What it went by when it last changed.
    evidence: Evidence,
}

impl Learner {
    fn new(
        now: &Now,
        key: Arc<LimitKey>,
        learning: Learning,
        controller: Controller,
        is_new: bool,
    ) -> Self {
        // Before anything was learnt, the slowest of the other limits held.
        let noted = match is_new {
            true => (controller.mode(), learning.most.in_a_second()),
            false => (controller.mode(), controller.limit()),
        };
        Self {
            scopes: key.scopes(),
            key,
            learning,
            told: told(now, &controller),
            controller,
            looked_at: now.mono,
            wake: None,
            is_listed: false,
            written: None,
            written_at: now.mono,
            noted,
            is_new,
            told_long: false,
            evidence: Evidence::default(),
        }
    }

    /// What is worth telling since people were last told.
    fn news(&mut self, now: &Now) -> Option<Adapted> {
        let (mode, rate) = (self.controller.mode(), self.controller.limit());
        let (mode_before, rate_before) = self.noted;
        let turn = match (mode_before.is_stop(), mode.is_stop()) {
            _ if self.is_new => Turn::Learnt,
            (false, true) => Turn::Stopped,
            (true, false) => Turn::Resumed,
            (true, true) if self.controller.holds_long() && !self.told_long => Turn::Stopped,
            (true, true) => return None,
            (false, false) if rate < rate_before * (1.0 - NOTED) => Turn::Cut,
            (false, false) if rate > rate_before * (1.0 + NOTED) => Turn::Raised,
            (false, false) => return None,
        };
        if self.is_new {
            self.evidence = self.controller.evidence();
        }
        self.is_new = false;
        self.told_long = mode.is_stop() && self.controller.holds_long();
        self.noted = (mode, rate);
        let shown = |mode: Mode, rate| Rate::of_per_second(if mode.is_stop() { 0.0 } else { rate });
        Some(Adapted {
            key: Arc::clone(&self.key),
            turn,
            from: shown(mode_before, rate_before),
            to: shown(mode, rate),
            mode,
            evidence: self.evidence,
            sentence: self.controller.sentence(now),
        })
    }
}

fn told(now: &Now, controller: &Controller) -> Told {
    match controller.pace(now) {
        Pace::Flow(rate) => Told::Flow(rate),
        Pace::One => Told::One,
        Pace::Stop(until) => Told::Stop(until.min(now.mono + STOPPED_MAX)),
    }
}

/// What is to be done about a learner that changed.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Its limit goes at another pace.
    pub pace: Option<Told>,
    /// It is to be written down.
    pub lore: Option<Lore>,
    /// People are to be told.
    pub news: Option<Adapted>,
}

/// All rates that are learnt.
#[derive(Debug, Default)]
pub(super) struct Learners {
    slab: Vec<Learner>,
    by_key: BTreeMap<Arc<LimitKey>, LearnerId>,
    wakes: BTreeSet<(Mono, LearnerId)>,
    listed: Vec<LearnerId>,
    /// What the journal knew when the engine started, and for how long nobody
    /// was there.
    known: BTreeMap<LimitKey, Lore>,
    downtime: Nanos,
    started_at: Mono,
}

impl Learners {
    /// Goes on from what was written down.
    pub fn again(now: &Now, known: BTreeMap<LimitKey, Lore>, downtime: Nanos) -> Self {
        Self {
            known,
            downtime,
            started_at: now.mono,
            ..Self::default()
        }
    }

    pub fn get(&self, id: LearnerId) -> Option<&Learner> {
        self.slab.get(id.index())
    }

    pub fn find(&self, key: &LimitKey) -> Option<LearnerId> {
        self.by_key.get(key).copied()
    }

    /// The same, also if it is known from the journal and nobody sent since.
    pub fn find_or_recall(&mut self, now: &Now, key: &LimitKey) -> Option<LearnerId> {
        if let Some(id) = self.find(key) {
            return Some(id);
        }
        let learning = self.known.get(key)?.learning;
        let parts = key.parts().iter().cloned();
        self.of(now, &Applied::learnt(parts, learning))
    }

    /// What is known from the journal, of which nobody sent since the start.
    pub fn known(&self, now: &Now) -> impl Iterator<Item = (Arc<LimitKey>, Controller, Limit)> {
        self.known.iter().filter_map(|(key, lore)| {
            let controller = self.restored(now, lore)?;
            let limit = Limit::learnt(told(now, &controller).spec(), now, Fill::Empty);
            Some((Arc::new(key.clone()), controller, limit))
        })
    }

    fn restored(&self, now: &Now, lore: &Lore) -> Option<Controller> {
        let downtime = self.downtime + now.mono.since(self.started_at);
        let settings = settings(lore.learning);
        Controller::restore(now, settings, &lore.controller, downtime).ok()
    }

    /// If it begins anew, then at the most it may: nothing is known against it.
    pub fn begin_at_most(&mut self, now: &Now, id: LearnerId) {
        if let Some(learner) = self.slab.get_mut(id.index()) {
            learner.learning.start = learner.learning.most;
            learner.controller.set(now, settings(learner.learning));
        }
    }

    /// Whether one more may be made, beside those that are known.
    pub fn has_room(&self) -> bool {
        self.slab.len() + self.known.len() < LEARNERS_MAX
    }

    /// The learner of a limit that policies or replies want learnt, made if
    /// need be; its bounds are brought up to date.
    pub fn of(&mut self, now: &Now, applied: &Applied) -> Option<LearnerId> {
        let learning = applied.learning?;
        let settings = settings(learning);
        if let Some(&id) = self.by_key.get(&applied.key) {
            let learner = self.slab.get_mut(id.index())?;
            learner.learning = learning;
            if *learner.controller.settings() != settings {
                learner.controller.set(now, settings);
                self.list(id);
            }
            return Some(id);
        }
        let known = self.known.remove(&applied.key);
        if known.is_none() && !self.has_room() {
            return None;
        }
        let id = LearnerId(u32::try_from(self.slab.len()).ok()?);
        let key = Arc::new(applied.key.clone());
        let restored = known.and_then(|mut lore| {
            lore.learning = learning;
            self.restored(now, &lore)
        });
        let is_new = restored.is_none();
        let controller = restored.unwrap_or_else(|| Controller::new(now, settings));
        self.slab.push(Learner::new(
            now,
            Arc::clone(&key),
            learning,
            controller,
            is_new,
        ));
        self.by_key.insert(key, id);
        self.list(id);
        Some(id)
    }

    /// A limit at the pace of its learner.
    pub fn limit(&self, now: &Now, id: LearnerId, fill: Fill) -> Option<Limit> {
        let learner = self.get(id)?;
        // The one message that asks goes, also after a restart.
        let fill = match learner.told {
            Told::One => Fill::Full,
            Told::Flow(_) | Told::Stop(_) => fill,
        };
        let mut limit = Limit::learnt(learner.told.spec(), now, fill);
        if let Told::Stop(until) = learner.told {
            limit.block_until(until);
        }
        Some(limit)
    }

    /// A message of these is sent.
    pub fn sent(&mut self, now: &Now, ids: &Lessons) {
        for id in ids.iter() {
            let Some(learner) = self.slab.get_mut(id.index()) else {
                continue;
            };
            learner.controller.sent(now);
            if learner.controller.mode().is_stop() || now.mono.since(learner.looked_at) > LOOK {
                self.list(id);
            }
        }
    }

    /// A session that was begun at `since` was refused, so that no message was
    /// sent. If one was to ask, this was the answer.
    pub fn refused_at_door(&mut self, now: &Now, id: LearnerId, since: Mono, signal: Signal) {
        let Some(learner) = self.slab.get_mut(id.index()) else {
            return;
        };
        if learner.controller.pace(now) == Pace::One {
            learner.controller.sent(now);
            self.replied(now, id, now.mono, signal);
        } else {
            self.replied(now, id, since, signal);
        }
    }

    /// A message that was sent at `sent_at` was answered.
    pub fn replied(&mut self, now: &Now, id: LearnerId, sent_at: Mono, signal: Signal) {
        let Some(learner) = self.slab.get_mut(id.index()) else {
            return;
        };
        let mut evidence = learner.controller.evidence();
        let was_stopped = learner.controller.mode().is_stop();
        if learner.controller.replied(now, sent_at, signal) {
            if let Signal::Refused { code, .. } = signal {
                evidence.refused += 1;
                evidence.replies += 1;
                evidence.code = code;
            }
            learner.evidence = evidence;
            self.list(id);
        } else if was_stopped {
            self.list(id);
        }
    }

    /// Changes a learner from outside: an operator, or the far end outright.
    pub fn change(&mut self, id: LearnerId, change: impl FnOnce(&mut Controller)) {
        if let Some(learner) = self.slab.get_mut(id.index()) {
            change(&mut learner.controller);
            // Written down again whatever the modes say.
            learner.written = None;
            self.list(id);
        }
    }

    /// Nothing is to flow for so long: the far end said so, or a rule.
    pub fn hold(&mut self, now: &Now, id: LearnerId, lasts: Nanos) {
        self.change(id, |it| it.explicit(now, Explicit::Wait(lasts)));
    }

    /// Lets time pass.
    pub fn wake(&mut self, now: &Now) {
        while let Some(&(at, id)) = self.wakes.first() {
            if at > now.mono {
                return;
            }
            self.wakes.pop_first();
            if let Some(learner) = self.slab.get_mut(id.index()) {
                learner.wake = None;
                learner.evidence = learner.controller.evidence();
                learner.controller.woke(now);
                self.list(id);
            }
        }
    }

    /// When one of them wants to be woken.
    pub fn next_wake(&self) -> Mono {
        if !self.listed.is_empty() {
            return Mono(0);
        }
        self.wakes.first().map_or(Mono::NEVER, |&(at, _)| at)
    }

    fn list(&mut self, id: LearnerId) {
        if let Some(learner) = self.slab.get_mut(id.index())
            && !std::mem::replace(&mut learner.is_listed, true)
        {
            self.listed.push(id);
        }
    }

    /// The next learner that needs a look, and what is due about it.
    pub fn pop_due(&mut self, now: &Now) -> Option<(Arc<LimitKey>, Due)> {
        let id = self.listed.pop()?;
        let learner = self.slab.get_mut(id.index())?;
        learner.is_listed = false;
        learner.looked_at = now.mono;
        let mut due = Due::default();
        let told = told(now, &learner.controller);
        if !told.is_same(learner.told) {
            learner.told = told;
            due.pace = Some(told);
        }
        // What is due and waits for somebody to send is not waited for.
        let next = learner.controller.next_wake();
        let next = next.filter(|at| *at > now.mono);
        if learner.wake != next {
            if let Some(at) = std::mem::replace(&mut learner.wake, next) {
                self.wakes.remove(&(at, id));
            }
            if let Some(at) = next {
                self.wakes.insert((at, id));
            }
        }
        let mode = learner.controller.mode();
        let stopped_until = learner.controller.next_wake().filter(|_| mode.is_stop());
        let state = Some((learner.controller.epoch(), mode, stopped_until));
        let is_old = now.mono.since(learner.written_at) >= WRITTEN_AGAIN;
        if learner.written != state || is_old {
            (learner.written, learner.written_at) = (state, now.mono);
            due.lore = Some(Lore {
                learning: learner.learning,
                controller: learner.controller.save(now),
            });
        }
        due.news = learner.news(now);
        Some((Arc::clone(&learner.key), due))
    }
}

pub(super) fn settings(learning: Learning) -> Settings {
    let (start, most) = (learning.start.in_a_second(), learning.most.in_a_second());
    Settings::new(start, most, Profile::Seek)
}
