//! What a reply means for the message, its account and its slots.

use std::sync::Arc;

use super::Engine;
use super::action::{Action, Attempt, Hold, Record};
use super::learn::Refused;
use super::permits::Permit;
use crate::flow::FlowKey;
use crate::handle::{AccountId, FlowId, PermitId};
use crate::message::{Head, Seq, State};
use crate::name::Name;
use crate::outcome::{Outcome, ReplyScope, Verdict};
use crate::policy::key::LimitKey;
use crate::policy::scope::Scope;
use crate::reply::Reply;
use crate::retry::dead_letter::{DeadLetter, LastError};
use crate::retry::schedule::{DeathCause, Next};
use crate::time::{Mono, Nanos, Now, Wall};

/// A block that is not longer than this, or than what is written already, is
/// not written down: a restart takes about as long.
const BLOCK_FORGOTTEN_MAX: Nanos = Nanos::from_secs(2);

impl Engine {
    /// A delivery was answered. A second answer finds no permit and is dropped.
    pub(super) fn replied(&mut self, now: &Now, id: PermitId, reply: &Reply, lives: bool) {
        let Some(permit) = self.counter.permits.end(id) else {
            return;
        };
        let mut head = permit.head;
        head.attempts = head.attempts.saturating_add(1);
        if head.first_attempt_at == Wall::NEVER {
            head.first_attempt_at = now.wall_at(permit.sent_at);
        }
        if let Reply::Damaged { text } = reply {
            return self.end_damaged(now, &permit, &head, text, lives);
        }
        let flow = self.counter.flows.get(permit.flow);
        let key = flow.map(|flow| flow.key.clone());
        let to = key.as_ref().map(|key| &key.destination);
        let outcome = self.rules.classify(to, reply, head.attempts);
        if outcome.verdict == Verdict::Uncertain {
            head.uncertain = head.uncertain.saturating_add(1);
        }
        self.tell_session(now, &permit, reply, &outcome);
        self.release(now, &permit, lives);
        let desk = &mut self.counter.desk;
        desk.note_reply(now, permit.account, permit.sent_at);
        self.count_reply(now, &permit, reply, &outcome);
        self.teach(now, &permit, reply, &outcome);
        self.tell_account(now, permit.account, &outcome);
        if let Reply::Said {
            allows: Some(allows),
            ..
        } = reply
        {
            self.obey(now, permit.account, allows);
        }
        self.tell_breakers(now, &permit, &outcome);
        let Some(key) = key else {
            return;
        };
        if outcome.alert {
            let refused = Refused {
                account: permit.account,
                key: Arc::clone(&key),
            };
            self.alert(now, &refused, reply, &outcome);
        }
        let next = self.decide(now, &key, &permit, &head, &outcome);
        let record = self.record(now, &permit, &head, next, reply, &outcome);
        if outcome.suppresses() {
            let (flow, seq) = (permit.flow, head.seq);
            let error = Box::new(LastError::of(reply, &outcome));
            let suppress = Action::Suppress { flow, seq, error };
            self.counter.actions.push(suppress);
        }
        self.counter.append(record);
    }

    /// What was stored of a message does not hold. That says nothing of whoever
    /// was to carry it or to receive it, and no later try would fare better.
    fn end_damaged(&mut self, now: &Now, permit: &Permit, head: &Head, text: &str, lives: bool) {
        self.release(now, permit, lives);
        let desk = &mut self.counter.desk;
        desk.note_reply(now, permit.account, permit.sent_at);
        self.tell_breakers_nothing(now, permit);
        self.teach_nothing(now, permit);
        let cause = DeathCause::StorageDamaged;
        let letter = DeadLetter::new(head, now.wall, cause, LastError::damaged(text));
        self.counter.append(Record::Dead {
            flow: permit.flow,
            seq: head.seq,
            account: None,
            letter: Box::new(letter),
        });
    }

    /// What becomes of a message. One whose account is to wait need not wait as
    /// long as that if another account can take it.
    fn decide(
        &self,
        now: &Now,
        key: &FlowKey,
        permit: &Permit,
        head: &Head,
        outcome: &Outcome,
    ) -> Next {
        let settings = &self.counter.settings;
        let policy = settings.retry.for_message(key.channel, key.class);
        let asked = policy.decide(now, head, outcome, settings.on_uncertain);
        let is_of_account = matches!(
            outcome.scope,
            ReplyScope::Account | ReplyScope::WholeAccount
        );
        let is_asked = is_of_account && outcome.asked.is_some();
        if !is_asked || !self.counter.desk.has_another(permit.account) {
            return asked;
        }
        let free = Outcome {
            retry_after: None,
            ..outcome.clone()
        };
        let elsewhere = policy.decide(now, head, &free, settings.on_uncertain);
        match (asked, elsewhere) {
            (Next::RetryAt { at: later, .. }, Next::RetryAt { at, .. }) if at < later => elsewhere,
            (Next::Dead(DeathCause::Age), Next::RetryAt { .. }) => elsewhere,
            _ => asked,
        }
    }

    fn record(
        &self,
        now: &Now,
        permit: &Permit,
        head: &Head,
        next: Next,
        reply: &Reply,
        outcome: &Outcome,
    ) -> Record {
        let (flow, seq) = (permit.flow, head.seq);
        let account = self.counter.desk.account(permit.account);
        let account = account.map(|account| account.spec.id.clone());
        match next {
            Next::Settle(State::Delivered) => Record::Settlement {
                flow,
                seq,
                state: State::Delivered,
                account,
                error: None,
            },
            Next::Settle(state) => {
                let error = Some(Box::new(LastError::of(reply, outcome)));
                Record::Settlement {
                    flow,
                    seq,
                    state,
                    account,
                    error,
                }
            }
            Next::RetryAt { at, delay } => {
                let error = LastError::of(reply, outcome);
                let (first_attempt_at, attempts) = (head.first_attempt_at, head.attempts);
                let attempt = Attempt {
                    first_attempt_at,
                    attempts,
                    uncertain: head.uncertain,
                    delay,
                    error,
                    account: account.unwrap_or_else(|| Name::from("")),
                };
                Record::Deferral {
                    flow,
                    seq,
                    until: at,
                    attempt: Some(Box::new(attempt)),
                }
            }
            Next::Dead(cause) => {
                let mut error = LastError::of(reply, outcome);
                if cause == DeathCause::Uncertain {
                    error.note_lost(head.uncertain);
                }
                let letter = Box::new(DeadLetter::new(head, now.wall, cause, error));
                Record::Dead {
                    flow,
                    seq,
                    account,
                    letter,
                }
            }
        }
    }

    /// Slots and the session come back.
    fn release(&mut self, now: &Now, permit: &Permit, lives: bool) {
        let cost = permit.head.cost;
        self.counter
            .desk
            .released(now, permit.session, &permit.held, cost, lives);
        for &place in &permit.slots {
            if let Some(limit) = self.schedule.limit_mut(place) {
                limit.release(cost);
                self.schedule.mark(place);
            }
        }
        if let Some(flow) = self.counter.flows.get_mut(permit.flow) {
            flow.in_flight -= 1;
            self.counter.flows.rest(permit.flow);
        }
        self.counter.desk.delivered_in(permit.lane);
    }

    /// A reply that speaks of the account blocks it for as long as was asked;
    /// one that has all of it pause, for as long as its rule says.
    pub(super) fn tell_account(&mut self, now: &Now, id: AccountId, outcome: &Outcome) {
        if let Some(wait) = outcome.blocks_account_for() {
            if outcome.asked.is_some()
                && let Some(account) = self.counter.desk.account_mut(id)
            {
                let until = now.mono + wait;
                account.asked_until = account.asked_until.max(Some(until));
            }
            self.block_account(now, id, wait);
        }
    }

    /// Leaves an account alone for so long, here and in the whole fleet.
    pub(super) fn block_account(&mut self, now: &Now, id: AccountId, wait: Nanos) {
        self.note_block(now, id, wait);
        self.tell_fleet(id, wait);
        self.counter.desk.block(now.mono, id, now.mono + wait);
    }

    /// Has all nodes leave an account alone: the far end meant it, not us.
    fn tell_fleet(&mut self, id: AccountId, lasts: Nanos) {
        if self.counter.settings.leased
            && let Some(account) = self.counter.desk.account(id)
        {
            let key = Arc::new(LimitKey::of(Scope::Account, account.spec.id.clone()));
            let pause = Action::PauseLimit { key, lasts };
            self.counter.actions.push(pause);
        }
    }

    /// Writes a new block down, unless what is written lasts about as long.
    fn note_block(&mut self, now: &Now, id: AccountId, wait: Nanos) {
        let Some(account) = self.counter.desk.account(id) else {
            return;
        };
        let written = account.block_written.unwrap_or(now.mono).max(now.mono);
        if (now.mono + wait).since(written) > BLOCK_FORGOTTEN_MAX {
            self.write_block(now, id, now.mono + wait);
        }
    }

    /// Writes down until when an account is left alone. What it was told before
    /// holds on: the last record counts.
    pub(super) fn write_block(&mut self, now: &Now, id: AccountId, until: Mono) {
        let Some(account) = self.counter.desk.account_mut(id) else {
            return;
        };
        let until = until.max(account.blocked_until.unwrap_or(until));
        account.block_written = Some(until);
        let key = LimitKey::of(Scope::Account, account.spec.id.clone());
        self.counter.append(Record::Held {
            key: Arc::new(key),
            hold: Hold::nothing_until(now.wall_at(until)),
        });
    }

    /// The far end took a message and thought better of it: the receipt says so,
    /// the message stays settled.
    pub(super) fn feedback(&mut self, flow: FlowId, seq: Seq, reply: &Reply) {
        let key = self.flow_key(flow);
        let to = key.map(|key| &key.destination);
        let outcome = self.rules.classify(to, reply, 1);
        let error = Box::new(LastError::of(reply, &outcome));
        self.counter.append(Record::Feedback { flow, seq, error });
    }

    /// A message whose cost can never fit does not wait: it is a dead letter at
    /// once, and says why.
    pub(super) fn refuse_for_good(&mut self, now: &Now, flow: FlowId, head: &Head) {
        self.counter.append(too_large(now, flow, head));
    }
}

/// What is written of a message whose cost can never fit.
pub(super) fn too_large(now: &Now, flow: FlowId, head: &Head) -> Record {
    let error = LastError::oversized(head.cost);
    let letter = Box::new(DeadLetter::new(head, now.wall, DeathCause::TooLarge, error));
    Record::Dead {
        flow,
        seq: head.seq,
        account: None,
        letter,
    }
}
