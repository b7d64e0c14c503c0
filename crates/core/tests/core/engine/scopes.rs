//! Whom a refusal slows down: the account there, the account everywhere, or
//! nobody beyond the message.

use outflow_core::classify::{RuleSet, Rules};
use outflow_core::handle::AccountId;
use outflow_core::policy::key::LimitKey;
use outflow_core::tally::{Counter, Teller, Window};

use super::learning::{Hidden, PAIR, SECOND, TOO_FAST, again, flooded};
use super::*;

const WHOLE: &str = "account:main#learnt";
const SES_TOO_FAST: (u16, &str) = (454, "Throttling failure: Maximum sending rate exceeded.");

fn every_account(per_second: u32, most: u32) -> Policies {
    let mut policy = Policy::new(Match::from_pairs([("account", "*")]).unwrap());
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(per_second)));
    policy.max_rate = Some(Rate::per_second(most));
    with(policy)
}

#[test]
fn what_one_destination_says_does_not_slow_an_account_that_learns_everywhere() {
    let (mut desk, flow) = flooded();
    let policies = Box::new(every_account(20, 40));
    desk.step(Event::PolicyChanged { policies });
    let yahoo = desk.flow("yahoo");
    desk.queue(yahoo, 500_001..=700_000);
    let mut far = Hidden::new(1.0, TOO_FAST);
    let mut to_yahoo = 0_u64;
    desk.run(Nanos(120 * SECOND), |now, delivery| {
        if delivery.flow == flow {
            return far.answer(now);
        }
        to_yahoo += 1;
        Reply::accepted()
    });
    assert!(desk.learnt(PAIR).is_some(), "it learns of that destination");
    let whole = desk.learnt(WHOLE).expect("the policy says so");
    assert!(whole.rate >= 20.0, "{}", whole.sentence);
    assert!(to_yahoo > 1_500, "{to_yahoo} to yahoo");
}

#[test]
fn what_a_relay_says_of_its_customer_holds_wherever_that_sends() {
    let (mut desk, _) = flooded();
    let yahoo = desk.flow("yahoo");
    desk.queue(yahoo, 500_001..=700_000);
    let mut relay = Hidden::new(10.0, SES_TOO_FAST);
    desk.run(Nanos(1_800 * SECOND), |now, _| relay.answer(now));
    let whole = desk.learnt(WHOLE).expect("it was refused");
    assert!(whole.rate <= 12.0, "{}", whole.sentence);
    assert!(desk.learnt(PAIR).is_none(), "google said nothing");
    assert!(desk.learnt("account:main/isp:yahoo#learnt").is_none());
    let (taken, refused) = (relay.taken, relay.refused);
    desk.run(Nanos(600 * SECOND), |now, _| relay.answer(now));
    let (taken, refused) = (relay.taken - taken, relay.refused - refused);
    assert!(refused * 20 < taken, "{refused} refused, {taken} taken");

    let mut again = again(&desk, Nanos(3 * SECOND));
    let flow = again.flow("google");
    again.queue(flow, 1..=10_000);
    let mut sent = 0_u64;
    again.run(Nanos(10 * SECOND), |_, _| {
        sent += 1;
        Reply::accepted()
    });
    assert!(sent < 150, "{sent} in 10 s after a restart");
}

#[test]
fn a_day_that_is_used_up_stops_the_account_and_teaches_nothing() {
    let (mut desk, _) = flooded();
    desk.set_account(account("other", &["50/s"]));
    let main = AccountId(0);
    let mut refused_at = None;
    let (mut within, mut others, mut after) = (0_u64, 0_u64, 0_u64);
    desk.run(Nanos(900 * SECOND), |now, delivery| {
        if delivery.account != main {
            others += 1;
            return Reply::accepted();
        }
        let Some(refused_at) = refused_at else {
            refused_at = Some(now);
            let text = "Throttling failure: Daily message quota exceeded.";
            return Reply::said(Stage::Data, 454, text);
        };
        match now.since(refused_at) {
            since if since < Nanos(SECOND) => {}
            since if since < Nanos(600 * SECOND) => within += 1,
            _ => after += 1,
        }
        Reply::accepted()
    });
    assert_eq!(within, 0, "ten minutes");
    assert!(
        after > 0 && others > 10_000,
        "{after} after, {others} by others"
    );
    assert!(desk.learnt(WHOLE).is_none() && desk.learnt(PAIR).is_none());
}

const OWN_WAIT: &str = r#"
[[rule]]
id = "own.later"
code = ["421"]
text = ["unusual rate"]
verdict = "retry"
class = "rate"
scope = "account"
retry = "6h"
samples = ["421 4.7.28 An unusual rate of mail"]
"#;

/// A rule says how long the message waits; only the far end says how long the
/// account does.
#[test]
fn how_long_a_message_waits_is_not_how_long_its_account_does() {
    let (mut desk, flow) = flooded();
    let rules = Rules::built_in().with(RuleSet::parse(OWN_WAIT).unwrap());
    desk.engine.set_rules(rules);
    let yahoo = desk.flow("yahoo");
    desk.queue(yahoo, 500_001..=700_000);
    let mut far = Hidden::new(2.0, TOO_FAST);
    let mut to_yahoo = 0_u64;
    desk.run(Nanos(120 * SECOND), |now, delivery| {
        if delivery.flow == flow {
            return far.answer(now);
        }
        to_yahoo += 1;
        Reply::accepted()
    });
    assert!(to_yahoo > 1_500, "{to_yahoo} to yahoo");
    assert!(desk.learnt(PAIR).is_some(), "it was refused");
    let waits = desk.written.iter().filter_map(|record| match record {
        Record::Deferral { attempt, .. } => attempt.as_ref().map(|it| it.delay),
        _ => None,
    });
    let waits: Vec<Nanos> = waits.collect();
    assert!(!waits.is_empty() && waits.iter().all(|it| *it == Nanos(6 * 3_600 * SECOND)));
}

/// How many replies of the last minute said that we are too fast.
fn too_fast_after(reply: Reply) -> u64 {
    let (mut desk, _) = flooded();
    desk.run(Nanos(SECOND), |_, _| reply.clone());
    let key: LimitKey = "isp:google".parse().unwrap();
    let tally = desk.engine.tally(&key).expect("it was counted");
    tally.count(desk.now.mono, Window::Minute, Counter::Reply429)
}

#[test]
fn only_what_is_said_of_us_counts_as_too_fast() {
    let said = |stage, code, text| Reply::said(stage, code, text);
    assert!(too_fast_after(said(Stage::Data, TOO_FAST.0, TOO_FAST.1)) > 0);
    assert!(too_fast_after(said(Stage::Data, 429, "Too Many Requests")) > 0);
    let mailbox = "4.2.1 The user you are trying to contact is receiving mail too quickly";
    assert_eq!(too_fast_after(said(Stage::Recipient, 450, mailbox)), 0);
    let session = "4.7.0 Too many messages on this connection, reconnect";
    assert_eq!(too_fast_after(said(Stage::Sender, 421, session)), 0);
}

#[test]
fn what_a_tenant_tells_of_its_mail_counts_for_that_tenant_alone() {
    let counted = |teller| {
        let (mut desk, _) = flooded();
        let key = FlowKey::to(Destination::isp("google"));
        let tenant = format!("tenant:{}", key.tenant);
        desk.step(Event::Heard {
            key: Box::new(key),
            account: Some("main".into()),
            counter: Counter::Bounced,
            teller,
        });
        [tenant.as_str(), "isp:google", "account:main"].map(|key| {
            let key: LimitKey = key.parse().unwrap();
            let tally = desk.engine.tally(&key);
            tally.map_or(0, |it| {
                it.count(desk.now.mono, Window::Minute, Counter::Bounced)
            })
        })
    };
    assert_eq!(counted(Teller::FarEnd), [1, 1, 1]);
    assert_eq!(counted(Teller::Tenant), [1, 0, 0]);
}
