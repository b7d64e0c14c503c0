//! What a far end says of our sessions: that it wants none now, fewer, or shorter
//! ones.

use std::sync::Arc;

use super::Engine;
use super::action::{Action, Alert};
use super::learn::Refused;
use super::permits::Permit;
use crate::handle::{AccountId, LaneId, SessionRef};
use crate::outcome::{Outcome, Reaction};
use crate::reply::Reply;
use crate::time::Now;

impl Engine {
    /// A session could not be opened, and somebody said why. That there are too
    /// many says nothing else; all other words count as those that a message is
    /// told.
    pub(super) fn session_refused(&mut self, now: &Now, session: SessionRef, reply: &Reply) {
        let pool = self.counter.desk.pool_mut(session.pool);
        let Some(opening) = pool.opening_of(session.session) else {
            return pool.session_closed(now.mono, session.session);
        };
        let (account, lane, _) = opening;
        let to = &self.counter.desk.lane(lane).destination;
        let outcome = self.rules.classify(Some(to), reply, 1);
        let pool = self.counter.desk.pool_mut(session.pool);
        if outcome.action == Reaction::FewerConnections {
            let news = pool.session_unwelcome(now.mono, session.session);
            self.tell_unwelcome(news, account, lane, reply);
            return;
        }
        pool.session_failed(now.mono, session.session);
        self.count_opening(now, (account, lane), reply, &outcome);
        self.teach_opening(now, opening, reply, &outcome);
        self.tell_account(now, account, &outcome);
        if outcome.alert {
            let key = Arc::clone(&self.counter.desk.lane(lane).facts);
            let refused = Refused { account, key };
            self.alert(now, &refused, reply, &outcome);
        }
    }

    /// A reply may say that its session is one too many, or carried enough.
    pub(super) fn tell_session(
        &mut self,
        now: &Now,
        permit: &Permit,
        reply: &Reply,
        outcome: &Outcome,
    ) {
        let session = permit.session.session;
        let pool = match outcome.action {
            Reaction::FewerConnections | Reaction::ShorterConnections => {
                self.counter.desk.pool_mut(permit.session.pool)
            }
            _ => return,
        };
        let news = match outcome.action {
            Reaction::FewerConnections => pool.session_crowded(now.mono, session, permit.sent_at),
            _ => pool.session_full(now.mono, session),
        };
        self.tell_unwelcome(news, permit.account, permit.lane, reply);
    }

    fn tell_unwelcome(&mut self, news: Option<u32>, id: AccountId, lane: LaneId, reply: &Reply) {
        let desk = &self.counter.desk;
        let (lane_id, lane) = (lane, desk.lane(lane));
        let welcome = desk.pool(lane.pool).welcome_of(id, lane_id);
        if news.is_some()
            && let Some(welcome) = welcome
            && let Some(account) = desk.account(id)
        {
            let alert = Alert::Unwelcome {
                account: account.spec.id.clone(),
                destination: lane.destination.clone(),
                welcome,
                reply: Box::new(reply.clone()),
            };
            self.counter.actions.push(Action::Alert { alert });
        }
    }
}
