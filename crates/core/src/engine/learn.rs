//! What replies teach of rates, and how limits follow.

use std::sync::Arc;

use super::Engine;
use super::action::{Action, Alert, Record};
use super::command::Tune;
use super::learners::{Due, Told};
use super::permits::Permit;
use crate::adapt::Signal;
use crate::destination::Destination;
use crate::flow::FlowKey;
use crate::handle::{AccountId, LaneId, LearnerId};
use crate::limit::Limit;
use crate::name::Name;
use crate::outcome::{Outcome, ReplyScope};
use crate::policy::applied::Applied;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::policy::scope_set::ScopeSet;
use crate::policy::text::Part;
use crate::reply::{Reply, Stage};
use crate::time::{Mono, Nanos, Now};

/// A far end that asks us to wait within this time of the last wait has more to
/// say than that.
const ASKED_LATELY: Nanos = Nanos::from_secs(15 * 60);

const DESTINATION: ScopeSet = ScopeSet::of(&[Scope::Isp, Scope::Carrier, Scope::Push, Scope::Host]);
const SENDER: ScopeSet = ScopeSet::of(&[Scope::Account, Scope::Ip, Scope::Brand]);

/// Whether a reply that speaks of `scope` speaks of what these scopes name. What
/// one destination says of a sender says nothing of that sender elsewhere.
fn speaks_of(scope: ReplyScope, scopes: ScopeSet) -> bool {
    let is_there = !scopes.and(ScopeSet::DESTINATIONS).is_empty();
    match scope {
        ReplyScope::Account => is_there && !scopes.and(SENDER).is_empty(),
        ReplyScope::WholeAccount => {
            !is_there && (scopes.has(Scope::Account) || scopes.has(Scope::Ip))
        }
        ReplyScope::SendingDomain => is_there && scopes.has(Scope::SenderDomain),
        ReplyScope::Tenant => scopes.has(Scope::Tenant),
        ReplyScope::Destination => scopes.len() == 1 && !scopes.and(DESTINATION).is_empty(),
        ReplyScope::Recipient | ReplyScope::Message | ReplyScope::Session => false,
    }
}

/// Who was refused, and where.
pub(super) struct Refused {
    pub account: AccountId,
    pub key: Arc<FlowKey>,
}

impl Refused {
    /// What is said of the whole account is said of no destination.
    fn of(account: AccountId, key: &Arc<FlowKey>, scope: ReplyScope) -> Self {
        match scope {
            ReplyScope::WholeAccount => Self::anywhere(account),
            _ => Self {
                account,
                key: Arc::clone(key),
            },
        }
    }

    /// An account, wherever it sends.
    pub fn anywhere(account: AccountId) -> Self {
        let nobody = Destination::unresolved(Name::from(""));
        let key = Arc::new(FlowKey::to(nobody));
        Self { account, key }
    }
}

impl Engine {
    /// Lets a reply teach those whom it concerns. What was refused for the rate
    /// or for our standing, where nobody learns yet, is learnt from now on.
    pub(super) fn teach(&mut self, now: &Now, permit: &Permit, reply: &Reply, outcome: &Outcome) {
        let code = match reply {
            Reply::Said { code, .. } => *code,
            Reply::Network { .. } | Reply::Uncertain | Reply::Damaged { .. } => 0,
        };
        let signal = self.signal(now, permit.account, outcome, code);
        let is_refused = matches!(signal, Signal::Refused { .. });
        let stops_for = outcome.stops_for();
        let is_held = stops_for.is_some();
        if permit.lessons.is_empty() && !is_refused && !is_held {
            return;
        }
        let mut heard = None;
        for id in permit.lessons.iter() {
            let learners = &mut self.counter.maker.learners;
            let Some(learner) = learners.get(id) else {
                continue;
            };
            let is_meant = speaks_of(outcome.scope, learner.scopes);
            if is_meant && (is_refused || is_held) {
                heard = Some(id);
            }
            let signal = match signal {
                // It says nothing about the others.
                Signal::Refused { .. } if !is_meant => Signal::Silent,
                signal => signal,
            };
            learners.replied(now, id, permit.sent_at, signal);
        }
        if !is_refused && !is_held {
            return;
        }
        let learner = heard.or_else(|| {
            let flow = self.counter.flows.get(permit.flow)?;
            let refused = Refused::of(permit.account, &flow.key, outcome.scope);
            let id = self.begin_learning(now, &refused, outcome.scope, is_held)?;
            let learners = &mut self.counter.maker.learners;
            learners.replied(now, id, permit.sent_at, signal);
            Some(id)
        });
        if let (Some(id), Some(lasts)) = (learner, stops_for) {
            self.counter.maker.learners.hold(now, id, lasts);
        }
    }

    /// A delivery ended that says nothing of whoever was to carry it.
    pub(super) fn teach_nothing(&mut self, now: &Now, permit: &Permit) {
        let learners = &mut self.counter.maker.learners;
        for id in permit.lessons.iter() {
            learners.replied(now, id, permit.sent_at, Signal::Silent);
        }
    }

    /// Lets the words that a session was refused with teach whoever they speak
    /// of. No message was sent; but one would have been.
    pub(super) fn teach_opening(
        &mut self,
        now: &Now,
        (account, lane, since): (AccountId, LaneId, Mono),
        reply: &Reply,
        outcome: &Outcome,
    ) {
        let &Reply::Said { code, stage, .. } = reply else {
            return;
        };
        let signal = self.signal(now, account, outcome, code);
        // Nobody has said yet who sends, or for whom.
        let is_known = matches!(
            outcome.scope,
            ReplyScope::Account | ReplyScope::WholeAccount | ReplyScope::Destination
        );
        // Who cannot log in only backs off: once the password is right, mail is
        // to flow at once.
        let is_login = stage == Stage::Auth && !outcome.is_own;
        let stops_for = outcome.stops_for().filter(|_| !is_login);
        if !is_known || !(stops_for.is_some() || matches!(signal, Signal::Refused { .. })) {
            return;
        }
        let key = Arc::clone(&self.counter.desk.lane(lane).facts);
        let refused = Refused::of(account, &key, outcome.scope);
        let is_held = stops_for.is_some();
        if let Some(id) = self.begin_learning(now, &refused, outcome.scope, is_held) {
            let learners = &mut self.counter.maker.learners;
            learners.refused_at_door(now, id, since, signal);
            if let Some(lasts) = stops_for {
                learners.hold(now, id, lasts);
            }
        }
    }

    /// What a reply says about the rate. Where the far end says for how long to
    /// stay away, that is done and says it all. If it must say so again soon, it
    /// counts as refused too; but only to the first that hears it, since the
    /// others were on their way already. An account that is to pause has used
    /// something up, and that is no matter of the rate either.
    fn signal(&self, now: &Now, account: AccountId, outcome: &Outcome, code: u16) -> Signal {
        let signal = Signal::of(outcome, code);
        let account = self.counter.desk.account(account);
        let is_again = account.is_some_and(|account| {
            let lately = account.asked_until.map(|until| now.mono.since(until));
            account.blocked_until.is_none() && lately.is_some_and(|since| since < ASKED_LATELY)
        });
        match signal {
            Signal::Refused { .. } if outcome.asked.is_some() => match is_again {
                true => signal,
                false => Signal::Silent,
            },
            Signal::Refused { .. } if outcome.blocks_account_for().is_some() => Signal::Silent,
            signal => signal,
        }
    }

    /// Begins to learn the rate of whatever a reply speaks of.
    pub(super) fn begin_learning(
        &mut self,
        now: &Now,
        refused: &Refused,
        scope: ReplyScope,
        is_held: bool,
    ) -> Option<LearnerId> {
        let parts = self.parts_of(refused, scope)?;
        let key = LimitKey::new(parts.iter().cloned(), Facet::Learnt);
        if let Some(id) = self.counter.maker.learners.find(&key) {
            // The policy that had it learnt may be gone: what it learnt holds on.
            let learning = self.counter.maker.learners.get(id)?.learning;
            if !self.counter.policies.has_learnt(&key) {
                self.counter.policies.learn(key, learning);
                self.relimit(now, refused, scope);
            }
            return Some(id);
        }
        // Whom a rule holds is held, also where nothing else is to be learnt.
        if !self.counter.settings.learns && !is_held {
            return None;
        }
        let learning = self.learning(now, &key);
        let applied = Applied::learnt(parts, learning);
        let id = self.counter.maker.learners.of(now, &applied)?;
        self.counter.policies.learn(key, learning);
        self.relimit(now, refused, scope);
        Some(id)
    }

    /// What a reply spoke of has one more limit.
    fn relimit(&mut self, now: &Now, refused: &Refused, scope: ReplyScope) {
        match scope {
            ReplyScope::Account => self.limit_pairs(now, refused),
            ReplyScope::WholeAccount => {
                let (counter, id) = (&mut self.counter, refused.account);
                let (policies, maker) = (&counter.policies, &mut counter.maker);
                counter.desk.relimit_account(now, id, policies, maker);
            }
            _ => self.review_flows(),
        }
    }

    /// The account's pairs with this destination have one more limit.
    fn limit_pairs(&mut self, now: &Now, refused: &Refused) {
        let (counter, key) = (&mut self.counter, &refused.key);
        let Some(pool) = counter.desk.account(refused.account).map(|it| it.pool) else {
            return;
        };
        let lanes: Vec<LaneId> = counter.desk.lanes_to(pool, &key.destination).collect();
        for lane in lanes {
            let (policies, maker) = (&counter.policies, &mut counter.maker);
            counter
                .desk
                .relimit_pair(now, refused.account, lane, policies, maker);
        }
    }

    /// What a reply of this scope speaks of.
    pub(super) fn parts_of(&self, refused: &Refused, scope: ReplyScope) -> Option<Vec<Part>> {
        let key = &refused.key;
        let to = || {
            let scope = Scope::of_destination(key.destination.kind)?;
            Some((scope, key.destination.name.clone()))
        };
        let account = || {
            let account = self.counter.desk.account(refused.account)?;
            Some((Scope::Account, account.spec.id.clone()))
        };
        match scope {
            ReplyScope::Account => Some(vec![account()?, to()?]),
            ReplyScope::WholeAccount => Some(vec![account()?]),
            ReplyScope::SendingDomain => {
                let domain = key.sender_domain.clone()?;
                Some(vec![(Scope::SenderDomain, domain), to()?])
            }
            ReplyScope::Tenant => Some(vec![(Scope::Tenant, key.tenant.clone())]),
            ReplyScope::Destination => Some(vec![to()?]),
            ReplyScope::Recipient | ReplyScope::Message | ReplyScope::Session => None,
        }
    }

    /// An operator takes a rate in hand, or lets go of it.
    pub(super) fn tune(&mut self, now: &Now, key: &LimitKey, tune: Tune) {
        let learners = &mut self.counter.maker.learners;
        if let Some(id) = learners.find_or_recall(now, key) {
            // Where a policy says where it begins, it begins there.
            let by_policy = self.counter.policies.for_key(key);
            let mut by_policy = by_policy.iter();
            if tune == Tune::Reset && !by_policy.any(|it| it.learning.is_some()) {
                learners.begin_at_most(now, id);
            }
            learners.change(id, |controller| match tune {
                Tune::Pin { rate, until } => {
                    let until = until.map(|until| now.mono_at(until));
                    controller.pin(now, rate.in_a_second(), until);
                }
                Tune::Unpin => controller.unpin(now),
                Tune::Reset => controller.reset(now),
            });
        }
    }

    /// Has limits go at the pace of their learners, writes down what was
    /// learnt, and tells people.
    pub(super) fn follow_learners(&mut self, now: &Now) {
        while let Some((key, due)) = self.counter.maker.learners.pop_due(now) {
            let Due { pace, lore, news } = due;
            if let Some(pace) = pace {
                self.set_pace(now, &key, pace);
            }
            if let Some(lore) = lore {
                let lore = Box::new(lore);
                self.counter.append(Record::Adapted { key, lore });
            }
            if let Some(news) = news {
                let alert = Alert::Adapted(Box::new(news));
                self.counter.actions.push(Action::Alert { alert });
            }
        }
    }

    fn set_pace(&mut self, now: &Now, key: &LimitKey, pace: Told) {
        if let Some(place) = self.limits.find(key) {
            self.schedule.reconfigure(now, place, pace.spec());
            if let Some(limit) = self.schedule.limit_mut(place) {
                set_gate(now, limit, pace);
            }
            self.schedule.mark(place);
        }
        let desk = &mut self.counter.desk;
        if let Some(id) = desk.limits.find(key) {
            if let Some(entry) = desk.limits.get_mut(id) {
                entry.limit.reconfigure(now, pace.spec());
                set_gate(now, &mut entry.limit, pace);
            }
            desk.limits.note_changed(id);
            desk.refresh_changed(now);
        }
    }
}

/// Opens or shuts a limit.
fn set_gate(now: &Now, limit: &mut Limit, pace: Told) {
    limit.unblock();
    match pace {
        Told::Flow(_) => {}
        Told::One => limit.refill(now),
        Told::Stop(until) => limit.block_until(until),
    }
}
