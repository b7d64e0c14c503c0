//! "Why has this message not been sent yet, and when will it be?"
//!
//! Answered from live state, without changing it: which limits stand before the
//! message, how many messages are ahead of it, and the earliest time at which
//! it could go. Where the engine cannot know, it says so. The limits of
//! accounts count where no account can take the message: any one will do, so
//! those of the account that opens first are named.

mod accounts;

use std::sync::Arc;

use super::Engine;
use super::flows::Flow;
use crate::class::Class;
use crate::handle::{AccountId, FlowId, LaneId};
use crate::limit::need::Need;
use crate::limit::{Limit, Until};
use crate::name::Name;
use crate::policy::key::LimitKey;
use crate::time::{Mono, Nanos, Now, Wall};

/// What stands before a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Obstacle {
    /// A limit is used up until a time; of the flow, or of the account that
    /// opens first.
    Limit {
        key: Arc<LimitKey>,
        until: Option<Wall>,
    },
    /// The far end asked this account to wait, and no other opens sooner.
    AccountBlocked { account: Name, until: Wall },
    /// This account failed again and again, or was refused too often, and no
    /// other opens sooner. It is left alone until then; if that is not known,
    /// one message is under way to see whether it is back.
    AccountBroken { account: Name, until: Option<Wall> },
    /// Others of the pool are blocked. This account keeps the rate of the minute
    /// before, and no other opens sooner.
    UnderPressure { account: Name, until: Wall },
    /// No account of the pool has a session for it now: all are busy or being
    /// opened.
    NoAccountReady,
    /// This account has no session for it, and this is why the last one could not
    /// be opened. It is tried again. Told by whoever opens sessions: the engine
    /// itself only knows that no account is ready.
    NoSession { account: Name, why: Arc<str> },
    /// The pool has no account at all.
    NoAccount,
    /// Nobody knows yet who hosts the domain.
    Unresolved,
    /// Somebody paused it, or all accounts that could send it.
    Paused,
    /// Its own time has not come: it was put off.
    Deferred { until: Wall },
    /// The store does not take records: nothing is sent.
    StoreFailing,
    /// The service is shutting down.
    Draining,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Everything that stands before it now.
    pub waiting_on: Vec<Obstacle>,
    /// Messages of the same flow before it; an upper bound after cancels.
    pub ahead_in_flow: u64,
    /// Flows that wait for the same limit before this one, at the worst of them.
    pub flows_waiting: u64,
    /// It cannot go before this; none if that cannot be known.
    pub earliest: Option<Wall>,
}

impl Explanation {
    /// The same for a message that is not to be sent before this: what is over
    /// by then does not count.
    #[must_use]
    pub fn not_before(mut self, until: Wall) -> Self {
        self.waiting_on.retain(|obstacle| match obstacle {
            Obstacle::Limit { until: at, .. } => at.is_none_or(|at| at > until),
            Obstacle::AccountBlocked { until: at, .. }
            | Obstacle::UnderPressure { until: at, .. } => *at > until,
            Obstacle::AccountBroken { until: at, .. } => at.is_none_or(|at| at > until),
            Obstacle::NoAccountReady | Obstacle::NoSession { .. } => false,
            _ => true,
        });
        self.waiting_on.insert(0, Obstacle::Deferred { until });
        self.earliest = self.earliest.map(|at| at.max(until));
        self
    }
}

/// What was found so far.
pub(super) struct Case {
    waiting_on: Vec<Obstacle>,
    flows_waiting: u64,
    earliest: Option<Mono>,
}

impl Case {
    /// Something stands in the way until a time, if anybody knows it.
    fn wait(&mut self, obstacle: Obstacle, until: Option<Mono>) {
        self.waiting_on.push(obstacle);
        self.not_before(until);
    }

    fn not_before(&mut self, at: Option<Mono>) {
        self.earliest = self.earliest.zip(at).map(|(a, b)| a.max(b));
    }

    fn answer(self, now: &Now, ahead_in_flow: u64) -> Explanation {
        Explanation {
            waiting_on: self.waiting_on,
            ahead_in_flow,
            flows_waiting: self.flows_waiting,
            earliest: self.earliest.map(|at| now.wall_at(at)),
        }
    }
}

/// How a limit stands to one message.
struct Hold {
    /// Whether it would let the message pass now, were it the first.
    fits: bool,
    /// When it lets it pass, after those before it; none if nobody knows.
    at: Option<Mono>,
    /// The part of that wait that is due to those before it.
    behind: Nanos,
}

impl Hold {
    /// `ahead` tokens are taken before the message takes its cost.
    fn of(limit: &Limit, now: &Now, class: Class, cost: u32, ahead: u64) -> Self {
        let until = limit.until_above_floor(now, class, Need::whole(cost), cost);
        let fits = until == Until::Now;
        let shape = limit.shape();
        // What it holds lets so many pass at once, the rest comes at its rate.
        let beyond = ahead.saturating_sub(u64::from(shape.capacity));
        let behind = shape.rate.map_or(Nanos::ZERO, |rate| rate.time_for(beyond));
        let at = match until {
            Until::Now => Some(now.mono),
            Until::At(at) if at != Mono::NEVER => Some(at),
            Until::At(_) | Until::Released | Until::Granted | Until::Never => None,
        };
        let at = at.map(|at| at + behind);
        Self { fits, at, behind }
    }

    fn is_open(&self) -> bool {
        self.fits && self.behind == Nanos::ZERO
    }
}

impl Engine {
    /// Explains a waiting message: the flow it is in, and how many of that
    /// flow's messages are before it (the store knows).
    pub fn explain(&self, now: &Now, id: FlowId, ahead_in_flow: u64) -> Option<Explanation> {
        let flow = self.counter.flows.get(id)?;
        let mut case = self.explain_itself(now, flow, ahead_in_flow);
        if let Some(lane) = flow.lane {
            let pool = self.counter.desk.lane(lane).pool;
            let accounts = self.counter.desk.accounts();
            let accounts = accounts.filter(|(_, account)| account.pool == pool);
            let accounts: Vec<_> = accounts.map(|(id, _)| id).collect();
            self.explain_accounts(now, &mut case, flow, lane, &accounts, ahead_in_flow);
        }
        Some(case.answer(now, ahead_in_flow))
    }

    /// What holds the first message of a flow, as far as these accounts go.
    pub(super) fn holds_flow(
        &self,
        now: &Now,
        flow: &Flow,
        lane: LaneId,
        accounts: &[AccountId],
    ) -> Vec<Obstacle> {
        let mut case = self.explain_itself(now, flow, 0);
        self.explain_accounts(now, &mut case, flow, lane, accounts, 0);
        case.waiting_on
    }

    /// What holds a flow apart from accounts.
    fn explain_itself(&self, now: &Now, flow: &Flow, ahead_in_flow: u64) -> Case {
        let mut case = Case {
            waiting_on: Vec::new(),
            flows_waiting: 0,
            earliest: Some(now.mono),
        };
        if flow.pauses > 0 {
            case.wait(Obstacle::Paused, self.paused_until(flow));
        }
        if self.counter.appends.is_held() {
            case.wait(Obstacle::StoreFailing, None);
        }
        if self.counter.draining {
            case.wait(Obstacle::Draining, None);
        }
        if flow.lane.is_none() {
            case.wait(Obstacle::Unresolved, None);
        }
        let class = flow.key.class;
        let cost = flow.heads.front().map_or(1, |head| head.cost);
        let ahead = ahead_in_flow.saturating_mul(u64::from(cost));
        for &place in &flow.limits {
            let (Some(limit), Some(known)) = (self.schedule.limit(place), self.limits.get(place))
            else {
                continue;
            };
            let hold = Hold::of(limit, now, class, cost, ahead);
            let others = self.schedule.waiting_at(place, class);
            case.flows_waiting = case.flows_waiting.max(others);
            if hold.is_open() && others == 0 {
                continue;
            }
            let key = Arc::clone(&known.key);
            let until = hold.at.map(|at| now.wall_at(at));
            case.wait(Obstacle::Limit { key, until }, hold.at);
        }
        case
    }

    /// When the last pause of a flow ends, if all of them do.
    fn paused_until(&self, flow: &Flow) -> Option<Mono> {
        let pauses = self.pauses.values();
        let pauses = pauses.filter(|pause| pause.matches.matches_flow(&flow.key));
        pauses
            .map(|pause| pause.until)
            .try_fold(Mono(0), |last, until| Some(last.max(until?)))
    }
}
