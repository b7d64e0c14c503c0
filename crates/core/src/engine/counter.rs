//! The counter: where a flow's head is looked at once more and goes out.
//!
//! The schedule calls it when a flow has passed every limit. Here heads that
//! expired are settled, heads whose recipient or retry budget says "later" step
//! aside without an attempt, and the rest become deliveries.

use std::sync::Arc;

use super::Settings;
use super::action::{Action, Delivery, Record};
use super::appends::Appends;
use super::budgets::Budgets;
use super::desk::{Desk, Taken};
use super::flows::Flows;
use super::limits::Maker;
use super::permits::{Permit, Permits};
use super::recipients::{Admission, Recipients, Visit};
use super::replies::too_large;
use crate::class::Class;
use crate::flow::FlowKey;
use crate::handle::{AccountId, FlowId, LaneId};
use crate::message::{Head, State};
use crate::policy::set::Policies;
use crate::schedule::Outlet;
use crate::time::{Now, Wall};

/// Everything a send touches, apart from the schedule itself.
#[derive(Debug)]
pub(super) struct Counter {
    pub settings: Settings,
    pub flows: Flows,
    /// The facts of the flow that was made last.
    pub last_opened: Option<Arc<FlowKey>>,
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
        for flow in Self::flows_of(&record).into_iter().flatten() {
            self.hold_flow(flow);
        }
        self.appends.append(record, &mut self.actions);
    }

    /// When a head must step aside, and until when; or that it has expired.
    fn obstacle(&mut self, now: &Now, flow: FlowId, head: &Head) -> Option<Obstacle> {
        if head.expires_at <= now.wall {
            return Some(Obstacle::Expired);
        }
        let flow = self.flows.get(flow)?;
        let class = flow.key.class;
        let mut later = None;
        if let Some(rules) = &flow.recipient_rules {
            let visit = Visit {
                rules,
                recipient: head.recipient,
                class,
                cost: head.cost,
            };
            let (appends, actions) = (&mut self.appends, &mut self.actions);
            let journal = &mut |record| appends.append(record, actions);
            match self
                .recipients
                .admits(now, &visit, &mut self.maker, journal)
            {
                Admission::Now => {}
                Admission::Later(at) => later = Some(at),
                Admission::Never => return Some(Obstacle::TooLarge),
            }
        }
        if head.attempts > 0
            && let Err(at) = self.budgets.may_retry(flow.budgets, now.mono)
        {
            later = later.max(Some(at));
        }
        later.map(|at| Obstacle::Later(now.wall_at(at)))
    }
}

/// What keeps a head from being sent.
enum Obstacle {
    Expired,
    Later(Wall),
    TooLarge,
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
                Obstacle::TooLarge => too_large(now, id, &head),
            });
            let flow = self.flows.get_mut(id)?;
            flow.heads.pop_front();
            flow.page(id, &self.appends, &mut self.actions);
            self.flows.rest(id);
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
            mut lessons,
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
            let visit = Visit {
                rules,
                recipient: head.recipient,
                class,
                cost: head.cost,
            };
            self.recipients.take(now, &visit);
        }
        let slots = flow.slots.clone();
        for id in flow.lessons.iter() {
            lessons.add(id);
        }
        self.maker.learners.sent(now, &lessons);
        flow.page(id, &self.appends, &mut self.actions);
        let next = flow.heads.front().map(|head| head.cost);
        let permit = Permit {
            flow: id,
            lane,
            account,
            session,
            head,
            sent_at: now.mono,
            slots,
            held,
            lessons,
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
