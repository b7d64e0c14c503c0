//! "Why has this message not been sent yet, and when will it be?"
//!
//! Answered from live state, without changing it: which limits stand before the
//! message, how many messages are ahead of it, and the earliest time at which
//! it could go. Where the engine cannot know, it says so.

use std::sync::Arc;

use super::Engine;
use crate::handle::FlowId;
use crate::limit::Until;
use crate::limit::need::Need;
use crate::policy::key::LimitKey;
use crate::time::{Mono, Nanos, Now, Wall};

/// What stands before a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Obstacle {
    /// A limit is used up until a time.
    Limit {
        key: Arc<LimitKey>,
        until: Option<Wall>,
    },
    /// No account of the pool can take it now: all are busy, blocked or at
    /// their limits.
    NoAccountReady,
    /// The pool has no account at all.
    NoAccount,
    /// Nobody knows yet who hosts the domain.
    Unresolved,
    /// Somebody paused it.
    Paused,
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

impl Engine {
    /// Explains a waiting message: the flow it is in, and how many of that
    /// flow's messages are before it (the store knows).
    pub fn explain(&self, now: &Now, id: FlowId, ahead_in_flow: u64) -> Option<Explanation> {
        let flow = self.counter.flows.get(id)?;
        let mut waiting_on = Vec::new();
        let mut earliest = Some(now.mono);
        let mut flows_waiting = 0;
        if flow.pauses > 0 {
            waiting_on.push(Obstacle::Paused);
            earliest = None;
        }
        if self.counter.appends.is_held() {
            waiting_on.push(Obstacle::StoreFailing);
            earliest = None;
        }
        if self.counter.draining {
            waiting_on.push(Obstacle::Draining);
            earliest = None;
        }
        let Some(lane) = flow.lane else {
            waiting_on.push(Obstacle::Unresolved);
            return Some(Explanation {
                waiting_on,
                ahead_in_flow,
                flows_waiting,
                earliest: None,
            });
        };
        let cost = flow.heads.front().map_or(1, |head| head.cost);
        for &place in &flow.limits {
            let class = flow.key.class;
            let Some(limit) = self.schedule.limit(place) else {
                continue;
            };
            let Some(key) = self.limits.get(place).map(|limit| Arc::clone(&limit.key)) else {
                continue;
            };
            let others = self.schedule.waiting_at(place, class);
            let need = Need::whole(cost) + limit.floor(now, class, cost);
            let fits = limit.fits(now, class, need);
            if fits && others == 0 && ahead_in_flow == 0 {
                continue;
            }
            // Those before it each take at least as much as it does.
            let rate = limit.shape().rate;
            let tokens = ahead_in_flow.saturating_mul(u64::from(cost));
            let burst = u64::from(limit.shape().capacity);
            let spacing = rate.map_or(Nanos::ZERO, |rate| {
                rate.time_for(tokens.saturating_sub(burst))
            });
            let at = match limit.until_above_floor(now, class, Need::whole(cost), cost) {
                Until::Now => Some(now.mono),
                Until::At(at) if at != Mono::NEVER => Some(at),
                _ => None,
            };
            let at = at.map(|at| at + spacing);
            earliest = earliest.zip(at).map(|(a, b)| a.max(b));
            flows_waiting = flows_waiting.max(others);
            if !fits || others > 0 {
                waiting_on.push(Obstacle::Limit {
                    key,
                    until: at.map(|at| now.wall_at(at)),
                });
            }
        }
        if !self.counter.desk.can_send(lane, flow.key.class) {
            let pool = self.counter.desk.lane(lane).pool;
            if self.counter.desk.account_count(pool) == 0 {
                waiting_on.push(Obstacle::NoAccount);
                earliest = None;
            } else {
                waiting_on.push(Obstacle::NoAccountReady);
                // A reply or a connection brings it; nobody knows when, but not
                // before the accounts' own limits open.
                earliest = earliest
                    .zip(self.desk_opens(now, lane))
                    .map(|(a, b)| a.max(b));
            }
        }
        let earliest = earliest.map(|at| now.wall_at(at));
        Some(Explanation {
            waiting_on,
            ahead_in_flow,
            flows_waiting,
            earliest,
        })
    }

    /// When the first account of a lane's pool opens again, if time alone does it.
    fn desk_opens(&self, now: &Now, lane: crate::handle::LaneId) -> Option<Mono> {
        let pool = self.counter.desk.lane(lane).pool;
        self.counter
            .desk
            .accounts()
            .filter(|(_, account)| account.pool == pool && !account.paused)
            .map(|(_, account)| account.blocked_until.unwrap_or(now.mono))
            .min()
    }
}
