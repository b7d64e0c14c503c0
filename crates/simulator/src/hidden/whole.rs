//! The whole engine in place of a rule: what it reads is what a provider says,
//! in words, and what it sends is what its limits let through.

use std::collections::{BTreeSet, VecDeque};

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::adapt::Cause;
use outflow_core::destination::Destination;
use outflow_core::engine::action::Action;
use outflow_core::engine::event::Event;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::flow::FlowKey;
use outflow_core::handle::{FlowId, PermitId};
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

/// A message on its way, and what it will be told.
struct InFlight {
    sent_at: Nanos,
    permit: PermitId,
    answer: Answer,
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
        account.sessions = Sessions::slots(SLOTS);
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
        let (end, latency) = (self.case.length, self.case.provider.latency.0);
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
        match reply.answer {
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
            reply: said(reply.answer),
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
                Action::OpenSession { session, .. } => {
                    self.step(now, Event::SessionReady { session });
                }
                Action::Deliver(delivery) => {
                    self.count(now, |counts| counts.attempts += 1);
                    let is_known = self.known.remove(&delivery.head.seq);
                    let answer = self.provider.judge(now, is_known);
                    self.in_flight.push_back(InFlight {
                        sent_at: now,
                        permit: delivery.permit,
                        answer,
                    });
                }
                _ => {}
            }
        }
        if let Some(through) = through {
            self.step(now, Event::Committed { through });
        }
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
