//! Simulated networks: what a far end allows and how it answers.
//!
//! A network is data. Each behaviour stands in a file of its own and decides
//! one thing; this file asks them in the order in which a real server would:
//! is it up, is the connection allowed, is the sender in disgrace, over its
//! quota, too fast, unknown, unlucky. The sender sees replies only, never the
//! numbers behind them.

pub mod bounce;
pub mod connections;
pub mod greylist;
pub mod latency;
pub mod noise;
pub mod outage;
pub mod penalty;
pub mod quota;
pub mod rate;
pub mod reputation;
pub mod shape;
pub mod spec;
pub mod suspension;

use std::collections::BTreeMap;

use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Nanos, Wall};

use crate::random::Random;
use connections::Connections;
use greylist::Greylist;
use outage::{OutageKind, Outages};
use penalty::Penalty;
use quota::Quota;
use rate::HiddenRate;
use reputation::Reputation;
use spec::{Judges, NetworkSpec, Protocol};

/// A session as the network numbers it.
pub type SessionNo = u64;

/// The answer to an attempt to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectAnswer {
    /// How long the sender waits for it.
    pub after: Nanos,
    /// The session, or why there is none.
    pub result: Result<SessionNo, Reply>,
}

/// What the far end gets to see of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// On which session.
    pub session: SessionNo,
    /// To whom.
    pub recipient: u64,
    /// What it costs.
    pub cost: u32,
}

/// The answer to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How long the sender waits for it.
    pub after: Nanos,
    /// What it reads.
    pub reply: Reply,
    /// Whether the far end took the message. Also true where the answer was
    /// lost on the way.
    pub taken: bool,
    /// Whether the session is gone afterwards.
    pub closes_session: bool,
    /// A bounce that comes this long after the acceptance.
    pub late_bounce: Option<Nanos>,
}

/// What a network keeps of each sender that it tells apart.
struct Sender {
    rate: Option<HiddenRate>,
    quota: Option<Quota>,
    penalty: Option<Penalty>,
    reputation: Option<Reputation>,
    connections: Connections,
}

/// One far end.
pub struct Network {
    spec: NetworkSpec,
    wall_at_zero: Wall,
    random: Random,
    outages: Outages,
    greylist: Option<Greylist>,
    senders: BTreeMap<u32, Sender>,
    sessions: BTreeMap<SessionNo, Session>,
    next_session: SessionNo,
}

struct Session {
    account: u32,
    messages: u32,
}

impl Network {
    /// A network as `spec` describes it. `wall_at_zero` is what the wall clock
    /// reads when the simulation starts: quotas and outages follow a calendar.
    pub fn new(spec: NetworkSpec, wall_at_zero: Wall, random: Random) -> Self {
        Self {
            outages: Outages::new(spec.outages.clone()),
            greylist: spec.greylist.clone().map(Greylist::new),
            spec,
            wall_at_zero,
            random,
            senders: BTreeMap::new(),
            sessions: BTreeMap::new(),
            next_session: 1,
        }
    }

    /// What this network is made from.
    pub fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    /// How many sessions are open.
    pub fn open_sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Somebody connects with the credentials or the address of `account`.
    pub fn connect(&mut self, now: Nanos, account: u32) -> ConnectAnswer {
        let after = self.spec.connect.draw(&mut self.random);
        let refused = |after, reply| ConnectAnswer {
            after,
            result: Err(reply),
        };
        match self.outages.at(now) {
            Some(OutageKind::Refuse) => {
                return refused(after, network(Stage::Connect, "connection refused"));
            }
            Some(OutageKind::Timeout | OutageKind::Hang) => {
                return refused(
                    self.spec.timeout.0,
                    network(Stage::Connect, "connection timed out"),
                );
            }
            Some(OutageKind::Fail) | None => {}
        }
        let protocol = self.spec.protocol;
        let sender = self.sender(account);
        if !sender.connections.open() {
            return refused(after, protocol.too_many_connections());
        }
        let session = self.next_session;
        self.next_session += 1;
        self.sessions.insert(
            session,
            Session {
                account,
                messages: 0,
            },
        );
        ConnectAnswer {
            after,
            result: Ok(session),
        }
    }

    /// The sender closes a session, or its node is gone.
    pub fn disconnect(&mut self, session: SessionNo) {
        if let Some(gone) = self.sessions.remove(&session) {
            self.sender(gone.account).connections.close();
        }
    }

    /// A message arrives on a session.
    pub fn deliver(&mut self, now: Nanos, delivery: Delivery) -> Answer {
        let answer = self.judge(now, delivery);
        if answer.closes_session {
            self.disconnect(delivery.session);
        }
        answer
    }

    fn judge(&mut self, now: Nanos, delivery: Delivery) -> Answer {
        let after = self.spec.latency.draw(&mut self.random);
        let Some(session) = self.sessions.get_mut(&delivery.session) else {
            return refusal(after, network(Stage::Sender, "connection reset")).closing();
        };
        session.messages = session.messages.saturating_add(1);
        let (account, messages) = (session.account, session.messages);
        if let Some(answer) = self.outage(now, after) {
            return answer;
        }
        let protocol = self.spec.protocol;
        if self
            .spec
            .connections
            .is_some_and(|cap| messages > cap.messages_max())
        {
            return refusal(after, protocol.too_many_messages()).closing();
        }
        if let Some(asked) = self.suspended(now, account) {
            let reply = spec::asking(protocol.blocked(), Some(asked));
            return refusal(after, reply).closing_if(protocol == Protocol::Smtp);
        }
        if let Some(reply) = self.too_fast(now, account, delivery.cost) {
            return refusal(after, reply).closing_if(protocol == Protocol::Smtp);
        }
        if let Some(greylist) = &mut self.greylist
            && let Some(reply) = greylist.judge(now, delivery.recipient, &mut self.random)
        {
            return refusal(after, reply);
        }
        if let Some(noise) = &self.spec.failures
            && let Some(answer) =
                noise.judge(protocol, after, self.spec.timeout.0, &mut self.random)
        {
            return answer;
        }
        Answer {
            after,
            reply: protocol.accepted(),
            taken: true,
            closes_session: false,
            late_bounce: self
                .spec
                .late_bounces
                .as_ref()
                .and_then(|bounces| bounces.draw(&mut self.random)),
        }
    }

    fn outage(&mut self, now: Nanos, after: Nanos) -> Option<Answer> {
        let timeout = self.spec.timeout.0;
        Some(match self.outages.at(now)? {
            OutageKind::Refuse => {
                refusal(after, network(Stage::Sender, "connection reset")).closing()
            }
            OutageKind::Timeout => refusal(timeout, network(Stage::Sender, "timed out")).closing(),
            OutageKind::Hang => refusal(timeout, Reply::Uncertain).closing(),
            OutageKind::Fail => refusal(after, self.spec.protocol.unavailable()),
        })
    }

    /// How long an account that the far end suspended is asked to wait.
    fn suspended(&self, now: Nanos, account: u32) -> Option<Nanos> {
        let mut suspensions = self.spec.suspensions.iter();
        suspensions.find_map(|it| it.asks(now, account))
    }

    /// Whatever of penalty, quota, rate and reputation stands against it.
    fn too_fast(&mut self, now: Nanos, account: u32, cost: u32) -> Option<Reply> {
        let protocol = self.spec.protocol;
        let wall = self.wall_at_zero + now;
        let shape = self.spec.shape.factor(wall);
        let sender = self.sender(account);
        if let Some(penalty) = &mut sender.penalty
            && penalty.pushes(now)
        {
            return Some(protocol.blocked());
        }
        if let Some(quota) = &mut sender.quota
            && !quota.take(wall, cost)
        {
            return Some(protocol.over_quota());
        }
        let factor = shape * sender.reputation.as_mut().map_or(1.0, |it| it.factor(now));
        let Some(rate) = &mut sender.rate else {
            return None;
        };
        let fits = rate.take(now, cost, factor);
        if let Some(reputation) = &mut sender.reputation {
            reputation.saw(fits);
        }
        if fits {
            return None;
        }
        if let Some(quota) = &mut sender.quota {
            quota.give_back(cost);
        }
        if let Some(penalty) = &mut sender.penalty {
            penalty.start(now);
        }
        let asked = self.spec.rate.and_then(|rate| rate.retry_after);
        Some(spec::asking(protocol.too_fast(), asked.map(|span| span.0)))
    }

    fn sender(&mut self, account: u32) -> &mut Sender {
        let key = match self.spec.judges {
            Judges::Account => account,
            Judges::Everyone => 0,
        };
        let spec = &self.spec;
        self.senders.entry(key).or_insert_with(|| Sender {
            rate: spec.rate.map(HiddenRate::new),
            quota: spec.quota.clone().map(Quota::new),
            penalty: spec.penalty.map(Penalty::new),
            reputation: spec.reputation.map(Reputation::new),
            connections: Connections::new(spec.connections),
        })
    }
}

/// A connection that failed.
fn network(stage: Stage, text: &str) -> Reply {
    Reply::Network {
        stage,
        text: text.to_owned().into(),
    }
}

/// An answer that takes nothing.
fn refusal(after: Nanos, reply: Reply) -> Answer {
    Answer {
        after,
        reply,
        taken: false,
        closes_session: false,
        late_bounce: None,
    }
}

impl Answer {
    fn closing(self) -> Self {
        self.closing_if(true)
    }

    fn closing_if(mut self, closes: bool) -> Self {
        self.closes_session = closes;
        self
    }
}

#[cfg(test)]
mod tests;
