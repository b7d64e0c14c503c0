//! The whole engine in place of a rule: what it reads is what a provider says,
//! in words, and what it sends is what its limits let through.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use outflow_core::account::{AccountSpec, SessionKind, Sessions};
use outflow_core::adapt::Cause;
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Action, Delivery};
use outflow_core::engine::event::Event;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::flow::FlowKey;
use outflow_core::handle::{FlowId, PermitId, SessionRef};
use outflow_core::limit::spec::Rate;
use outflow_core::message::{Head, Seq};
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::Nanos;

use super::provider::{Answer, Provider};
use super::retries::{Retries, Tried};
use super::run::{Case, Counts, Figures, figures};
use super::sender::moment;
use crate::random::Random;

/// Requests at once: more than any provider here makes wait.
const SLOTS: u32 = 2_000;
/// When a message that was greylisted comes back.
const BACK_AFTER: Nanos = Nanos::from_secs(300);
/// As many messages as anybody cares to send.
const PLENTY: u32 = 1 << 31;

/// More connections than this nobody opens, nor more messages on one.
const CONNECTIONS_MAX: u32 = 10_000;

/// A message on its way, and what it will be told. Nothing if its connection has
/// carried enough.
struct InFlight {
    sent_at: Nanos,
    permit: PermitId,
    session: SessionRef,
    answer: Option<Answer>,
}

struct Whole<'a> {
    case: &'a Case,
    engine: Engine,
    provider: Provider,
    retries: Retries,
    /// Numbers of messages that were greylisted before.
    known: BTreeSet<Seq>,
    next: u64,
    in_flight: VecDeque<InFlight>,
    /// From sending to the reply.
    latency: Nanos,
    /// Open connections, where they are counted, and what each has carried.
    links: BTreeMap<SessionRef, u32>,
    all: Counts,
    converged: Counts,
}

/// Runs a case through the engine: a policy that says where to begin, and up to
/// what it may learn.
pub fn run(case: &Case, cap: f64) -> Result<Figures, String> {
    let zero = moment(Nanos::ZERO, case.starts_at);
    let settings = Settings {
        retry_budget: (1_000_000, 1_000_000),
        ..Settings::default()
    };
    let matches = Match::from_pairs([("isp", "hidden")]).map_err(|error| error.to_string())?;
    let mut policy = Policy::new(matches);
    policy.rate = Some(RateOrShare::Rate(Rate::of_per_second(
        case.start * case.full,
    )));
    policy.max_rate = Some(Rate::of_per_second(cap));
    let mut policies = Policies::default();
    policies.insert(policy).map_err(|error| error.to_string())?;
    let random = Random::named(case.seed, "provider", 0);
    let mut whole = Whole {
        case,
        engine: Engine::new(settings, policies, Start::Fresh, &zero),
        provider: Provider::new(case.provider.clone(), case.full, case.starts_at, random),
        retries: Retries::default(),
        known: BTreeSet::new(),
        next: 1,
        in_flight: VecDeque::new(),
        latency: case.latency(),
        links: BTreeMap::new(),
        all: Counts::default(),
        converged: Counts::default(),
    };
    whole.begin();
    whole.go();
    Ok(figures(case, whole.all, whole.converged, 0))
}

impl Whole<'_> {
    fn begin(&mut self) {
        let mut account = AccountSpec::new("main");
        account.sessions = match self.case.provider.connections {
            None => Sessions::slots(SLOTS),
            Some(_) => Sessions {
                kind: SessionKind::Connections,
                max_connections: CONNECTIONS_MAX,
                per_destination: CONNECTIONS_MAX,
                messages_per_session: CONNECTIONS_MAX,
                connect_rate: None,
                idle_timeout: Nanos::MAX,
            },
        };
        let account = Box::new(account);
        self.step(Nanos::ZERO, Event::AccountChanged { account });
        let zero = moment(Nanos::ZERO, self.case.starts_at);
        let mut actions = Vec::new();
        let key = FlowKey::to(Destination::isp("hidden"));
        let flow = self.engine.open_flow(&zero, key, &mut actions);
        self.carry_out(Nanos::ZERO, actions);
        let count = PLENTY;
        self.step(Nanos::ZERO, Event::Accepted { flow, count });
    }

    fn go(&mut self) {
        let (end, latency) = (self.case.length, self.latency);
        let mut now = Nanos::ZERO;
        while now < end {
            let first = self.in_flight.front();
            let reply_at = first.map_or(Nanos::MAX, |first| first.sent_at + latency);
            let wake = Nanos(self.engine.next_wake().0);
            now = now.max(wake.min(reply_at));
            if now >= end {
                return;
            }
            if reply_at <= now {
                self.reply(now);
            } else {
                self.step(now, Event::Woke);
            }
        }
    }

    fn reply(&mut self, now: Nanos) {
        let Some(reply) = self.in_flight.pop_front() else {
            return;
        };
        let Some(answer) = reply.answer else {
            self.links.remove(&reply.session);
            self.count(reply.sent_at, |counts| counts.refused += 1);
            let event = Event::Replied {
                permit: reply.permit,
                reply: Reply::said(
                    Stage::Sender,
                    421,
                    "4.7.0 Too many messages on this connection, reconnect",
                ),
                session_lives: false,
            };
            return self.step(now, event);
        };
        match answer {
            Answer::Taken => self.count(reply.sent_at, |counts| counts.delivered += 1),
            Answer::Greylisted => self.retries.push(
                now + BACK_AFTER,
                Tried {
                    times: 1,
                    known: true,
                },
            ),
            Answer::Refused(..) => self.count(reply.sent_at, |counts| counts.refused += 1),
        }
        let event = Event::Replied {
            permit: reply.permit,
            reply: said(answer),
            session_lives: true,
        };
        self.step(now, event);
    }

    fn step(&mut self, now: Nanos, event: Event) {
        let mut actions = Vec::new();
        let at = moment(now, self.case.starts_at);
        self.engine.step(&at, event, &mut actions);
        self.carry_out(now, actions);
    }

    fn carry_out(&mut self, now: Nanos, actions: Vec<Action>) {
        let mut through = None;
        for action in actions {
            match action {
                Action::Page { flow, max } => self.page(now, flow, max),
                Action::Append { no, .. } => through = Some(no),
                Action::OpenSession { session, .. } => self.open(now, session),
                Action::CloseSession { session } => {
                    self.links.remove(&session);
                    self.step(now, Event::SessionClosed { session });
                }
                Action::Deliver(delivery) => self.deliver(now, &delivery),
                _ => {}
            }
        }
        if let Some(through) = through {
            self.step(now, Event::Committed { through });
        }
    }

    /// One more connection. That it is refused counts as a message refused.
    fn open(&mut self, now: Nanos, session: SessionRef) {
        let most = self.case.provider.connections.map(|spec| spec.max);
        let is_full = most.is_some_and(|most| self.links.len() >= most as usize);
        let event = if is_full {
            self.count(now, |counts| {
                counts.attempts += 1;
                counts.refused += 1;
            });
            let text = "4.7.0 Too many connections from your host";
            let reply = Box::new(Reply::said(Stage::Greeting, 421, text));
            Event::SessionRefused { session, reply }
        } else {
            self.links.insert(session, 0);
            Event::SessionReady { session }
        };
        self.step(now, event);
    }

    fn deliver(&mut self, now: Nanos, delivery: &Delivery) {
        self.count(now, |counts| counts.attempts += 1);
        let session = delivery.session;
        let carried = self.links.get_mut(&session).map(|carried| {
            *carried += 1;
            *carried
        });
        let most = self.case.provider.connections.map(|spec| spec.messages);
        let has_enough = most.is_some_and(|most| carried.is_some_and(|it| it > most));
        let answer = match has_enough {
            true => None,
            false => {
                let is_known = self.known.remove(&delivery.head.seq);
                Some(self.provider.judge(now, is_known))
            }
        };
        self.in_flight.push_back(InFlight {
            sent_at: now,
            permit: delivery.permit,
            session,
            answer,
        });
    }

    fn page(&mut self, now: Nanos, flow: FlowId, max: u32) {
        let wall = self.case.starts_at + now;
        let heads = (0..max).map(|_| {
            let seq = Seq(self.next);
            self.next += 1;
            let mut head = Head::new(seq, wall);
            if self.retries.pop(now).is_some() {
                head.attempts = 1;
                head.first_attempt_at = self.case.starts_at + now.minus(BACK_AFTER);
                self.known.insert(seq);
            }
            head
        });
        let heads = heads.collect();
        self.step(now, Event::Paged { flow, heads });
    }

    fn count(&mut self, sent_at: Nanos, add: impl Fn(&mut Counts)) {
        add(&mut self.all);
        if sent_at >= super::run::CONVERGED_AFTER {
            add(&mut self.converged);
        }
    }
}

/// What a provider says, in words that the engine's rules know.
fn said(answer: Answer) -> Reply {
    match answer {
        Answer::Taken => Reply::accepted(),
        Answer::Greylisted => Reply::said(
            Stage::Recipient,
            450,
            "4.2.0 Greylisted, see http://postgrey.schweikert.ch/help/example.com.html",
        ),
        Answer::Refused(Cause::Rate, _) => Reply::said(
            Stage::Data,
            421,
            "4.7.0 Our system has detected an unusual rate of unsolicited mail originating from \
             your IP address.",
        ),
        Answer::Refused(Cause::Reputation, _) => Reply::said(
            Stage::Data,
            550,
            "5.7.1 very low reputation of the sending IP address",
        ),
    }
}
