//! What refusals teach the engine, and whom.

use outflow_core::classify::{RuleSet, Rules};
use outflow_core::engine::action::{Alert, Delivery, Record, Refusal};
use outflow_core::engine::command::{Command, PauseId, Tune};
use outflow_core::engine::event::Event;
use outflow_core::engine::learners::Lore;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::handle::AccountId;
use outflow_core::limit::spec::Rate;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Mono, Nanos};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;

pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const PAIR: &str = "account:main/isp:google#learnt";

/// A far end that takes so many a second, and refuses the rest with these words.
pub(super) struct Hidden {
    per_second: f64,
    burst: f64,
    tokens: f64,
    at: Mono,
    said: (u16, &'static str),
    /// What was taken and what was refused.
    pub(super) taken: u64,
    pub(super) refused: u64,
}

impl Hidden {
    pub(super) fn new(per_second: f64, said: (u16, &'static str)) -> Self {
        let burst = (per_second / 5.0).max(2.0);
        Self {
            per_second,
            burst,
            tokens: burst,
            at: Mono(0),
            said,
            taken: 0,
            refused: 0,
        }
    }

    pub(super) fn answer(&mut self, now: Mono) -> Reply {
        let passed = now.since(self.at).as_secs_f64();
        self.at = now;
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            self.taken += 1;
            return Reply::accepted();
        }
        self.refused += 1;
        Reply::said(Stage::Data, self.said.0, self.said.1)
    }
}

pub(super) const TOO_FAST: (u16, &str) = (
    421,
    "4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address",
);
const DOMAIN_TOO_FAST: (u16, &str) = (
    421,
    "4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your DKIM \
     domain [example.com 35].",
);

impl Desk {
    /// Time passes, and everything that is sent is answered 20 ms later.
    pub(super) fn run(&mut self, span: Nanos, mut answer: impl FnMut(Mono, &Delivery) -> Reply) {
        let end = self.now.mono + span;
        let mut answered = self.deliveries.len();
        let mut due: VecDeque<(Mono, Delivery)> = VecDeque::new();
        while self.now.mono < end {
            for delivery in self.deliveries.drain(..) {
                due.push_back((self.now.mono + Nanos(SECOND / 50), delivery));
            }
            let reply_at = due.front().map_or(Mono::NEVER, |(at, _)| *at);
            let next = self.engine.next_wake().min(reply_at);
            let next = next.max(self.now.mono).min(end);
            self.now.wall = self.now.wall + next.since(self.now.mono);
            self.now.mono = next;
            if reply_at <= next
                && let Some((_, delivery)) = due.pop_front()
            {
                let reply = answer(next, &delivery);
                answered += 1;
                self.step(Event::Replied {
                    permit: delivery.permit,
                    reply,
                    session_lives: true,
                });
            } else {
                self.step(Event::Woke);
            }
        }
        assert!(answered > 0, "nothing was sent");
    }

    pub(super) fn learnt(&self, key: &str) -> Option<outflow_core::engine::view::LearntView> {
        let key: LimitKey = key.parse().unwrap();
        let views = self.engine.limit_views(&self.now);
        views.into_iter().find(|view| *view.key == key)?.learnt
    }

    /// What people were told that they must mend.
    fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.alerts.iter().filter_map(|alert| match alert {
            Alert::Refused(refusal) => Some(&**refusal),
            _ => None,
        })
    }

    /// What was last written of each rate.
    fn lore(&self) -> BTreeMap<LimitKey, Lore> {
        let written = self.written.iter().filter_map(|record| match record {
            Record::Adapted { key, lore } => Some(((**key).clone(), (**lore).clone())),
            _ => None,
        });
        written.collect()
    }
}

/// One account, one flow to google, far more messages than can be sent.
pub(super) fn flooded() -> (Desk, FlowId) {
    let mut desk = Desk::new(Policies::default());
    desk.set_account(account("main", &["50/s"]));
    let mut key = FlowKey::to(Destination::isp("google"));
    key.sender_domain = Some(Name::from("example.com"));
    let flow = desk.flow_of(key);
    desk.queue(flow, 1..=400_000);
    (desk, flow)
}

#[test]
fn a_hidden_limit_is_found_and_kept_to() {
    let (mut desk, _) = flooded();
    let mut far = Hidden::new(5.0, TOO_FAST);
    desk.run(Nanos(600 * SECOND), |now, _| far.answer(now));
    let learnt = desk.learnt(PAIR).expect("it was refused");
    assert!(learnt.factor < 0.2, "{}", learnt.sentence);
    // It climbs back in trials, each of which must first be borne for a while.
    desk.run(Nanos(3 * 3_600 * SECOND), |now, _| far.answer(now));
    let (taken, refused) = (far.taken, far.refused);
    desk.run(Nanos(3_600 * SECOND), |now, _| far.answer(now));
    let (taken, refused) = (far.taken - taken, far.refused - refused);
    assert!(taken > 3_600 * 5 * 9 / 10, "{taken} in an hour at 5/s");
    assert!(refused * 100 < taken, "{refused} of {taken} refused");
}

#[test]
fn only_what_a_reply_speaks_of_slows_down() {
    let (mut desk, flow) = flooded();
    desk.set_account(account("other", &["50/s"]));
    let yahoo = desk.flow("yahoo");
    desk.queue(yahoo, 500_001..=700_000);
    let mut far = Hidden::new(2.0, TOO_FAST);
    let mut through_other = 0_u64;
    let mut to_yahoo = 0_u64;
    // Accounts are numbered in the order in which they came.
    let main = AccountId(0);
    desk.run(Nanos(120 * SECOND), |now, delivery| {
        if delivery.flow != flow {
            to_yahoo += 1;
            return Reply::accepted();
        }
        if delivery.account == main {
            return far.answer(now);
        }
        through_other += 1;
        Reply::accepted()
    });
    assert!(desk.learnt(PAIR).is_some());
    assert!(desk.learnt("account:other/isp:google#learnt").is_none());
    assert!(desk.learnt("account:main/isp:yahoo#learnt").is_none());
    assert!(through_other > 1_000, "{through_other} through the other");
    assert!(to_yahoo > 1_000, "{to_yahoo} to yahoo");
}

#[test]
fn a_sending_domain_is_slowed_whoever_sends() {
    let (mut desk, flow) = flooded();
    let mut key = FlowKey::to(Destination::isp("google"));
    key.sender_domain = Some(Name::from("other.example"));
    let other = desk.flow_of(key);
    desk.queue(other, 500_001..=700_000);
    let mut far = Hidden::new(2.0, DOMAIN_TOO_FAST);
    let mut others = 0_u64;
    desk.run(Nanos(300 * SECOND), |now, delivery| {
        if delivery.flow == flow {
            return far.answer(now);
        }
        others += 1;
        Reply::accepted()
    });
    let learnt = desk.learnt("sender_domain:example.com/isp:google#learnt");
    assert!(learnt.is_some_and(|it| it.factor < 0.2));
    assert!(desk.learnt(PAIR).is_none());
    assert!(others > 5_000, "{others} of the other domain");
}

#[test]
fn a_restart_goes_on_at_what_was_learnt() {
    let (mut desk, _) = flooded();
    let mut far = Hidden::new(5.0, TOO_FAST);
    desk.run(Nanos(900 * SECOND), |now, _| far.answer(now));
    let before = desk.learnt(PAIR).expect("it was refused");
    let start = Start::Again {
        counts_lost_at: None,
        limits: BTreeMap::new(),
        holds: BTreeMap::new(),
        adapted: desk.lore(),
        downtime: Nanos(3 * SECOND),
    };
    let mut again = Desk::new(Policies::default());
    again.now.mono = Mono(77 * SECOND);
    again.now.wall = desk.now.wall + Nanos(3 * SECOND);
    again.engine = Engine::new(Settings::default(), Policies::default(), start, &again.now);
    again.set_account(account("main", &["50/s"]));
    let flow = again.flow("google");
    again.queue(flow, 1..=10_000);
    let mut sent = 0_u64;
    again.run(Nanos(20 * SECOND), |_, _| {
        sent += 1;
        Reply::accepted()
    });
    let after = again.learnt(PAIR).expect("it was written down");
    assert!(
        (after.factor - before.factor).abs() < 0.02,
        "{after:?} {before:?}"
    );
    let most = (before.rate.max(after.rate) * 20.0).ceil() as u64 + 2;
    assert!(sent <= most, "{sent} in 20 s, at most {most}");
}

#[test]
fn trouble_with_authentication_holds_the_domain_and_blames_nobody() {
    let (mut desk, flow) = flooded();
    let other = desk.flow("google");
    desk.queue(other, 500_001..=500_050);
    let mut first = true;
    let mut after = 0_u64;
    desk.run(Nanos(60 * SECOND), |_, delivery| {
        if delivery.flow != flow {
            return Reply::accepted();
        }
        if std::mem::take(&mut first) {
            let text = "5.7.26 Unauthenticated email from example.com is not accepted due to \
                        domain's DMARC policy.";
            return Reply::said(Stage::Data, 550, text);
        }
        after += 1;
        Reply::accepted()
    });
    let key = "sender_domain:example.com/isp:google#learnt";
    let learnt = desk.learnt(key).expect("it is held");
    assert!(learnt.rate == 0.0, "{}", learnt.sentence);
    assert!(after < 30, "{after} were sent after the refusal");
    let settled = desk.settled();
    assert!(settled.iter().all(|(_, state)| *state == State::Delivered));
    assert!(settled.iter().filter(|(seq, _)| *seq > 500_000).count() == 50);
}

const OWN_RULE: &str = r#"
[[rule]]
id = "own.blocked"
code = ["550"]
text = ["come back tomorrow"]
verdict = "blocked"
class = "reputation"
scope = "account"
lasts = "5h"
samples = ["550 5.7.1 Come back tomorrow"]
"#;

/// How many are tried within the hour and after it, after one was refused. The
/// far end would let them through again at once.
fn tried_after_a_block(desk: &mut Desk) -> (u64, u64) {
    let (mut first, mut within, mut after) = (None, 0_u64, 0_u64);
    desk.run(Nanos(6 * 3_600 * SECOND), |now, _| {
        let Some(refused_at) = first else {
            first = Some(now);
            return Reply::said(Stage::Data, 550, "5.7.1 Come back tomorrow");
        };
        match now.since(refused_at) {
            // What was under way already.
            since if since < Nanos(SECOND) => {}
            since if since < Nanos(5 * 3_600 * SECOND) => within += 1,
            _ => after += 1,
        }
        Reply::accepted()
    });
    (within, after)
}

#[test]
fn a_pause_of_ones_own_lasts_as_long_as_it_says() {
    let (mut desk, _) = flooded();
    let rules = Rules::built_in().with(RuleSet::parse(OWN_RULE).unwrap());
    desk.engine.set_rules(rules);
    let (within, after) = tried_after_a_block(&mut desk);
    assert_eq!(within, 0, "it says five hours");
    assert!(after > 0, "then it goes on");
}

#[test]
fn an_operator_holds_a_rate_and_lets_it_go() {
    let (mut desk, _) = flooded();
    let mut far = Hidden::new(5.0, TOO_FAST);
    desk.run(Nanos(120 * SECOND), |now, _| far.answer(now));
    let key: Arc<LimitKey> = Arc::new(PAIR.parse().unwrap());
    let tune = |tune| Command::Tune {
        key: Arc::clone(&key),
        tune,
    };
    desk.command(tune(Tune::Pin {
        rate: Rate::per_second(2),
        until: None,
    }));
    let before = far.taken + far.refused;
    desk.run(Nanos(30 * SECOND), |now, _| far.answer(now));
    let sent = far.taken + far.refused - before;
    assert!((55..=75).contains(&sent), "{sent} in 30 s at 2/s");
    desk.command(tune(Tune::Reset));
    let learnt = desk.learnt(PAIR).unwrap();
    assert!(!learnt.sentence.contains("pinned"), "{}", learnt.sentence);
}

/// A heavy message is not given up for a rate that was learnt.
#[test]
fn no_cost_is_too_large_for_what_was_learnt() {
    let mut desk = Desk::new(Policies::default());
    desk.set_account(account("main", &["50/s burst 50"]));
    let flow = desk.flow("google");
    let heads = (1..=500).map(|seq| {
        let mut head = Head::new(Seq(seq), START);
        head.cost = 7;
        head
    });
    desk.queue_heads(flow, heads.collect());
    let mut far = Hidden::new(1.0, TOO_FAST);
    desk.run(Nanos(300 * SECOND), |now, _| far.answer(now));
    assert!(desk.learnt(PAIR).is_some());
    let dead = |record: &Record| matches!(record, Record::Dead { .. });
    assert!(!desk.written.iter().any(dead), "given up");
    assert!(far.taken > 50, "{}", far.taken);
}

/// What was known when the process stopped, so long ago.
pub(super) fn again(desk: &Desk, downtime: Nanos) -> Desk {
    let start = Start::Again {
        counts_lost_at: None,
        limits: BTreeMap::new(),
        holds: BTreeMap::new(),
        adapted: desk.lore(),
        downtime,
    };
    let mut again = Desk::new(Policies::default());
    again.now.mono = Mono(77 * SECOND);
    again.now.wall = desk.now.wall + downtime;
    again.engine = Engine::new(Settings::default(), Policies::default(), start, &again.now);
    again.set_account(account("main", &["50/s"]));
    again
}

#[test]
fn a_block_that_ended_meanwhile_is_asked_about_at_once() {
    let (mut desk, _) = flooded();
    desk.run(Nanos(600 * SECOND), |_, _| {
        Reply::said(Stage::Data, TOO_FAST.0, TOO_FAST.1)
    });
    let learnt = desk.learnt(PAIR).expect("it was refused");
    assert!(learnt.mode.is_stop(), "{}", learnt.sentence);
    let mut again = again(&desk, Nanos(12 * 3_600 * SECOND));
    let flow = again.flow("google");
    again.queue(flow, 1..=100);
    again.run(Nanos(60 * SECOND), |_, _| Reply::accepted());
    let learnt = again.learnt(PAIR).expect("it was written down");
    assert!(!learnt.mode.is_stop(), "{}", learnt.sentence);
}

#[test]
fn what_was_learnt_is_shown_and_held_before_anybody_sends() {
    let (mut desk, _) = flooded();
    let mut far = Hidden::new(5.0, TOO_FAST);
    desk.run(Nanos(900 * SECOND), |now, _| far.answer(now));
    let mut again = again(&desk, Nanos(3 * SECOND));
    assert!(again.learnt(PAIR).is_some(), "nobody sent anything yet");
    let key: LimitKey = PAIR.parse().unwrap();
    let tune = Tune::Pin {
        rate: Rate::per_second(2),
        until: None,
    };
    again.command(Command::Tune {
        key: Arc::new(key),
        tune,
    });
    let flow = again.flow("google");
    again.queue(flow, 1..=1_000);
    again.run(Nanos(10 * SECOND), |_, _| Reply::accepted());
    assert_eq!(again.learnt(PAIR).unwrap().rate, 2.0);
}

#[test]
fn one_that_could_climb_and_has_no_demand_is_left_alone() {
    let (mut desk, _) = flooded();
    let mut far = Hidden::new(5.0, TOO_FAST);
    desk.run(Nanos(3_600 * SECOND), |now, _| far.answer(now));
    desk.command(Command::Pause {
        id: PauseId(1),
        matches: to("google"),
        until: None,
    });
    let end = desk.now.mono + Nanos(3 * 3_600 * SECOND);
    let mut wakes = 0;
    while desk.now.mono < end {
        let next = desk.engine.next_wake().max(desk.now.mono).min(end);
        desk.now.wall = desk.now.wall + next.since(desk.now.mono);
        desk.now.mono = next;
        desk.step(Event::Woke);
        wakes += 1;
        assert!(wakes < 20_000, "{} left", end.since(next).as_secs_f64());
    }
}

fn google_at(per_second: u32) -> Policy {
    let mut policy = Policy::new(to("google"));
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(per_second)));
    policy
}

#[test]
fn what_is_learnt_during_a_mitigation_does_not_outlive_it() {
    let (mut desk, _) = flooded();
    let policies = Box::new(with(google_at(2)));
    desk.step(Event::PolicyChanged { policies });
    let mut far = Hidden::new(1.0, TOO_FAST);
    desk.run(Nanos(900 * SECOND), |now, _| far.answer(now));
    assert!(desk.learnt(PAIR).is_some(), "it was refused");
    let policies = Box::new(with(google_at(40)));
    desk.step(Event::PolicyChanged { policies });
    desk.run(Nanos(4 * 3_600 * SECOND), |_, _| Reply::accepted());
    let learnt = desk.learnt(PAIR).unwrap();
    assert!(learnt.rate > 10.0, "{}", learnt.sentence);
}

/// An incident cuts where learning begins and where it ends; what was learnt in
/// between is no reason to send faster.
#[test]
fn what_a_policy_has_learnt_holds_on_while_its_rate_is_cut() {
    let between = |rate, most| {
        let mut policy = google_at(rate);
        policy.max_rate = Some(Rate::per_second(most));
        Box::new(with(policy))
    };
    let (mut desk, _) = flooded();
    let policies = between(30, 50);
    desk.step(Event::PolicyChanged { policies });
    let busy = (451, "4.7.500 Server busy. Please try again later");
    let mut far = Hidden::new(3.0, busy);
    desk.run(Nanos(1_800 * SECOND), |now, _| far.answer(now));
    let before = desk.learnt("isp:google#learnt").unwrap().rate;
    assert!(before < 6.0, "{before}");
    for (rate, most) in [(15, 25), (18, 30), (30, 50)] {
        let policies = between(rate, most);
        desk.step(Event::PolicyChanged { policies });
        let (taken, refused) = (far.taken, far.refused);
        desk.run(Nanos(20 * SECOND), |now, _| far.answer(now));
        let sent = far.taken - taken + far.refused - refused;
        assert!(sent < 20 * 6, "{sent} in 20 s at {rate}/s");
    }
}

/// A policy had it learnt, and is replaced by one that does not, in the middle
/// of an incident.
#[test]
fn who_learns_by_a_policy_goes_on_without_it() {
    let mut policy = google_at(10);
    policy.max_rate = Some(Rate::per_second(50));
    let (mut desk, _) = flooded();
    let policies = Box::new(with(policy));
    desk.step(Event::PolicyChanged { policies });
    desk.run(Nanos(60 * SECOND), |_, _| Reply::accepted());
    assert!(desk.learnt("isp:google#learnt").is_some());
    let policies = Box::new(with(google_at(30)));
    desk.step(Event::PolicyChanged { policies });
    let busy = (451, "4.7.500 Server busy. Please try again later");
    let mut far = Hidden::new(3.0, busy);
    desk.run(Nanos(1_800 * SECOND), |now, _| far.answer(now));
    let (taken, refused) = (far.taken, far.refused);
    desk.run(Nanos(600 * SECOND), |now, _| far.answer(now));
    let (taken, refused) = (far.taken - taken, far.refused - refused);
    assert!(refused * 5 < taken, "{refused} refused, {taken} taken");
}

/// A reply about all that we send there begins at all that we sent there, not at
/// what one of many accounts did.
#[test]
fn what_is_learnt_of_a_destination_begins_at_what_all_sent_there() {
    let mut desk = Desk::new(Policies::default());
    for number in 0..20 {
        desk.set_account(account(&format!("a{number}"), &["5/s"]));
    }
    let flow = desk.flow("elsewhere");
    desk.queue(flow, 1..=100_000);
    let mut answers = 0_u64;
    desk.run(Nanos(120 * SECOND), |_, _| {
        answers += 1;
        match answers {
            6_000 => Reply::said(Stage::Data, 421, "Rate limit reached"),
            _ => Reply::accepted(),
        }
    });
    let learnt = desk.learnt("isp:elsewhere#learnt").expect("it is learnt");
    assert!(learnt.rate > 50.0, "{}", learnt.sentence);
}

/// What cruised for hours is used at its rate at once after a restart: that it
/// was in use is written down.
#[test]
fn a_restart_after_hours_of_cruising_goes_on_at_the_same_rate() {
    let (mut desk, _) = flooded();
    let mut far = Hidden::new(5.0, TOO_FAST);
    desk.run(Nanos(6 * 3_600 * SECOND), |now, _| far.answer(now));
    let before = desk.learnt(PAIR).unwrap();
    let mut again = again(&desk, Nanos(3 * SECOND));
    let flow = again.flow("google");
    again.queue(flow, 1..=10_000);
    let mut sent = 0_u64;
    again.run(Nanos(60 * SECOND), |_, _| {
        sent += 1;
        Reply::accepted()
    });
    let (least, most) = (before.rate * 60.0 * 0.9, before.rate * 60.0 + 2.0);
    let sent = sent as f64;
    assert!(least <= sent && sent <= most, "{sent}, {}", before.sentence);
}

/// A DNS slip must not depend on a setting about rates.
#[test]
fn authentication_trouble_is_held_also_where_nothing_is_learnt() {
    let mut desk = Desk::new(Policies::default());
    let settings = Settings {
        learns: false,
        ..Settings::default()
    };
    desk.engine = Engine::new(settings, Policies::default(), Start::Fresh, &desk.now);
    desk.set_account(account("main", &["50/s"]));
    let mut key = FlowKey::to(Destination::isp("google"));
    key.sender_domain = Some(Name::from("example.com"));
    let flow = desk.flow_of(key);
    desk.queue(flow, 1..=10_000);
    let mut refused = 0_u64;
    desk.run(Nanos(60 * SECOND), |_, _| {
        refused += 1;
        let text = "5.7.26 Unauthenticated email from example.com is not accepted due to \
                    domain's DMARC policy.";
        Reply::said(Stage::Data, 550, text)
    });
    assert!(refused < 30, "{refused} were sent into it");
}

#[test]
fn people_are_told_once_of_what_they_must_mend() {
    let (mut desk, _) = flooded();
    desk.run(Nanos(60 * SECOND), |_, _| {
        let text = "5.7.26 Unauthenticated email from example.com is not accepted due to \
                    domain's DMARC policy.";
        Reply::said(Stage::Data, 550, text)
    });
    let told: Vec<&Refusal> = desk.refusals().collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let refusal = told[0];
    assert_eq!(
        refusal.about.to_string(),
        "sender_domain:example.com/isp:google"
    );
    assert!(refusal.until.is_some(), "it is held until then");
    assert_eq!(refusal.account.as_str(), "main");
}

/// What nobody used for a month is forgotten; what an operator holds is not.
#[test]
fn what_nobody_used_for_a_month_is_forgotten() {
    for (is_pinned, is_known) in [(false, false), (true, true)] {
        let (mut desk, _) = flooded();
        let mut far = Hidden::new(5.0, TOO_FAST);
        desk.run(Nanos(300 * SECOND), |now, _| far.answer(now));
        if is_pinned {
            desk.command(Command::Tune {
                key: Arc::new(PAIR.parse().unwrap()),
                tune: Tune::Pin {
                    rate: Rate::per_second(2),
                    until: None,
                },
            });
        }
        let again = again(&desk, Nanos(31 * 86_400 * SECOND));
        assert_eq!(
            again.learnt(PAIR).is_some(),
            is_known,
            "pinned: {is_pinned}"
        );
    }
}

#[test]
fn a_policy_that_was_raised_while_nobody_was_there_bounds_what_was_learnt() {
    let mut desk = Desk::new(with(google_at(10)));
    desk.set_account(account("main", &["50/s"]));
    let flow = desk.flow("google");
    desk.queue(flow, 1..=100_000);
    let mut far = Hidden::new(3.0, (421, "Rate limit reached"));
    desk.run(Nanos(900 * SECOND), |now, _| far.answer(now));
    let key = "isp:google#learnt";
    assert!(desk.learnt(key).is_some(), "it was refused");
    let start = Start::Again {
        counts_lost_at: None,
        limits: BTreeMap::new(),
        holds: BTreeMap::new(),
        adapted: desk.lore(),
        downtime: Nanos(SECOND),
    };
    let policies = with(google_at(40));
    let mut again = Desk::new(policies.clone());
    again.now.wall = desk.now.wall + Nanos(SECOND);
    again.engine = Engine::new(Settings::default(), policies, start, &again.now);
    again.set_account(account("main", &["50/s"]));
    let flow = again.flow("google");
    again.queue(flow, 1..=900_000);
    again.run(Nanos(6 * 3_600 * SECOND), |_, _| Reply::accepted());
    let learnt = again.learnt(key).unwrap();
    assert!(learnt.rate > 20.0, "{}", learnt.sentence);
}
