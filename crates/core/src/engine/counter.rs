//! The counter: where a flow's head is looked at once more and goes out.
//!
//! The schedule calls it when a flow has passed every limit. Here heads that
//! expired are settled, heads whose recipient or retry budget says "later" step
//! aside without an attempt, and the rest become deliveries.

use super::Settings;
use super::action::{Action, Delivery, Record};
use super::appends::Appends;
use super::budgets::Budgets;
use super::desk::{Desk, Taken};
use super::flows::Flows;
use super::limits::Maker;
use super::permits::{Permit, Permits};
use super::recipients::Recipients;
use crate::class::Class;
use crate::handle::{AccountId, FlowId, LaneId};
use crate::message::{Head, State};
use crate::policy::set::Policies;
use crate::schedule::Outlet;
use crate::time::{Mono, Now, Wall};

/// Everything a send touches, apart from the schedule itself.
#[derive(Debug)]
pub(super) struct Counter {
    pub settings: Settings,
    pub flows: Flows,
    pub desk: Desk,
    pub permits: Permits,
    pub appends: Appends,
    pub budgets: Budgets,
    pub recipients: Recipients,
    pub policies: Policies,
    pub maker: Maker,
    /// The account that the pool matched with the lane being served.
    pub matched: Option<AccountId>,
    /// Whether nothing more is sent: shutting down.
    pub draining: bool,
    pub actions: Vec<Action>,
    pub sends: u64,
}

impl Counter {
    /// Whether anything may be sent at all.
    pub fn is_open(&self) -> bool {
        !self.draining && !self.appends.is_held()
    }

    /// Hands a record to the store.
    pub fn append(&mut self, record: Record) {
        self.appends.append(record, &mut self.actions);
    }

    /// When a head must step aside, and until when; or that it has expired.
    fn obstacle(&mut self, now: &Now, flow: FlowId, head: &Head) -> Option<Obstacle> {
        if head.expires_at <= now.wall {
            return Some(Obstacle::Expired);
        }
        let flow = self.flows.get(flow)?;
        let class = flow.key.class;
        let mut until = Mono(0);
        if let Some(rules) = &flow.recipient_rules
            && let Err(at) = self
                .recipients
                .admits(now, rules, head.recipient, class, head.cost)
        {
            until = until.max(at);
        }
        if head.attempts > 0
            && let Err(at) = self.budgets.may_retry(flow.budgets, now.mono)
        {
            until = until.max(at);
        }
        (until > now.mono).then(|| Obstacle::Later(now.wall_at(until)))
    }
}

/// What keeps a head from being sent.
enum Obstacle {
    Expired,
    Later(Wall),
}

impl Outlet for Counter {
    fn gate_open(&self, lane: LaneId, class: Class, cost: u32) -> bool {
        self.is_open() && self.desk.can_take(lane, class, cost)
    }

    fn prepare(&mut self, now: &Now, id: FlowId) -> Option<u32> {
        loop {
            let head = *self.flows.get(id)?.heads.front()?;
            let Some(obstacle) = self.obstacle(now, id, &head) else {
                return Some(head.cost);
            };
            let seq = head.seq;
            self.append(match obstacle {
                Obstacle::Expired => Record::Settlement {
                    flow: id,
                    seq,
                    state: State::Expired,
                    account: None,
                    error: None,
                },
                Obstacle::Later(until) => Record::Deferral {
                    flow: id,
                    seq,
                    until,
                    attempt: None,
                },
            });
            let flow = self.flows.get_mut(id)?;
            flow.heads.pop_front();
            flow.page(id, &mut self.actions);
        }
    }

    fn send(&mut self, now: &Now, id: FlowId) -> Option<u32> {
        let flow = self.flows.get_mut(id)?;
        let lane = flow.lane?;
        let class = flow.key.class;
        let head = *flow.heads.front()?;
        let taken = self
            .desk
            .take(now, lane, class, head.cost, self.matched.take());
        let Taken {
            account,
            session,
            held,
        } = taken.expect("a gate that is open has an account to give");
        let flow = self.flows.get_mut(id)?;
        flow.heads.pop_front();
        flow.in_flight += 1;
        if head.attempts == 0 {
            self.budgets.first_attempt(flow.budgets, now.mono);
        } else {
            self.budgets.take(flow.budgets, now.mono);
        }
        if let Some(rules) = &flow.recipient_rules {
            self.recipients
                .take(now, rules, head.recipient, class, head.cost);
        }
        let slots = flow.slots.clone();
        flow.page(id, &mut self.actions);
        let next = flow.heads.front().map(|head| head.cost);
        let permit = Permit {
            flow: id,
            account,
            session,
            head,
            sent_at: now.mono,
            slots,
            held,
        };
        let deadline = now.mono + self.settings.delivery_deadline;
        let permit = self.permits.issue(permit, deadline);
        self.sends += 1;
        let delivery = Delivery {
            permit,
            session,
            account,
            flow: id,
            head,
        };
        self.actions.push(Action::Deliver(delivery));
        next
    }
}
