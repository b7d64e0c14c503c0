//! Replies and what they mean.
//!
//! In reading order: `built_in` (the files that come with the program, and
//! their samples), `golden` (a table of replies), `files` (what rules must look
//! like, and who comes first).

mod built_in;
mod files;
mod golden;

use outflow_core::classify::Rules;
use outflow_core::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};
use outflow_core::reply::{Enhanced, Reply, Stage};
use outflow_core::time::Nanos;
use proptest::prelude::*;

const STAGES: [Stage; 6] = [
    Stage::Connect,
    Stage::Greeting,
    Stage::Auth,
    Stage::Sender,
    Stage::Recipient,
    Stage::Data,
];

fn meaning(stage: Stage, code: u16, text: &str) -> Outcome {
    Rules::generic().classify(None, &Reply::said(stage, code, text), 1)
}

#[track_caller]
fn assert_means(outcome: &Outcome, verdict: Verdict, class: ReplyClass, scope: ReplyScope) {
    assert_eq!(
        (outcome.verdict, outcome.class, outcome.scope),
        (verdict, class, scope),
        "by rule {}",
        outcome.rule
    );
}

#[test]
fn acceptance_needs_the_whole_message() {
    let rules = Rules::generic();
    let delivered = rules.classify(None, &Reply::accepted(), 1);
    assert_means(
        &delivered,
        Verdict::Delivered,
        ReplyClass::Accepted,
        ReplyScope::Message,
    );
    let http = rules.classify(None, &Reply::said(Stage::Data, 202, "spamhaus"), 3);
    assert_eq!(http.verdict, Verdict::Delivered);
    let early = rules.classify(None, &Reply::said(Stage::Recipient, 250, "2.1.5 Ok"), 1);
    assert_eq!(early.verdict, Verdict::Retry);
    let lost = rules.classify(None, &Reply::Uncertain, 1);
    assert_eq!(lost.verdict, Verdict::Uncertain);
}

#[test]
fn a_block_never_costs_the_recipient() {
    for text in [
        "5.7.1 Client host blocked using zen.spamhaus.org",
        "5.1.1 Rejected, see barracudacentral.org",
        "Connection refused: poor reputation",
        "OFR004_104 [104] too many",
        "LPN007_103 refused",
    ] {
        for stage in [
            Stage::Greeting,
            Stage::Sender,
            Stage::Recipient,
            Stage::Data,
        ] {
            let outcome = meaning(stage, 550, text);
            assert_eq!(outcome.verdict, Verdict::Blocked, "{text}");
            assert!(!outcome.suppresses() && outcome.is_about_us());
        }
    }
}

#[test]
fn the_same_code_differs_by_stage() {
    use {ReplyClass as C, ReplyScope as S, Verdict as V};
    for (stage, verdict, class, scope) in [
        (Stage::Greeting, V::Blocked, C::Reputation, S::Account),
        (Stage::Auth, V::Misconfigured, C::Authentication, S::Account),
        (Stage::Sender, V::Blocked, C::Reputation, S::Account),
        (Stage::Recipient, V::Bounced, C::Recipient, S::Recipient),
        (Stage::Data, V::Bounced, C::Content, S::Message),
    ] {
        assert_means(&meaning(stage, 550, "No"), verdict, class, scope);
    }
    assert_eq!(meaning(Stage::Greeting, 421, "Bye").scope, S::Destination);
    assert_eq!(meaning(Stage::Data, 421, "Bye").scope, S::Session);
}

#[test]
fn a_greylist_is_waited_for_once_and_then_the_schedule_decides() {
    let rules = Rules::generic();
    let policy = Reply::said(Stage::Recipient, 450, "4.7.1 Recipient deferred");
    let named = Reply::said(Stage::Recipient, 451, "Greylisted");
    for reply in [&policy, &named] {
        let first = rules.classify(None, reply, 1);
        assert_eq!(first.class, ReplyClass::Greylist);
        assert_eq!(first.retry_after, Some(Nanos::from_secs(300)));
        for attempts in [2, 3, u16::MAX] {
            let later = rules.classify(None, reply, attempts);
            assert_eq!(later.verdict, Verdict::Retry);
            assert_eq!(later.retry_after, None);
        }
    }
    assert_eq!(rules.classify(None, &named, 3).class, ReplyClass::Greylist);
    assert_eq!(
        rules.classify(None, &policy, 3).class,
        ReplyClass::Reputation
    );
}

#[test]
fn awkward_replies() {
    use {ReplyClass as C, ReplyScope as S, Verdict as V};
    // Nothing but a code.
    let outcome = meaning(Stage::Recipient, 550, "");
    assert_means(&outcome, V::Bounced, C::Recipient, S::Recipient);
    assert!(!outcome.suppresses(), "550 alone may be policy");
    // The last of many lines decides, and a phrase may run over two.
    let text =
        "gmx.net Service not available\n554-No SMTP service\n554-IP address is\n554 block listed";
    assert_eq!(
        meaning(Stage::Greeting, 554, text).rule.as_str(),
        "block.listed"
    );
    let text = "5.2.1 is receiving mail at\r\n450-4.2.1 a rate that\r\n450 4.2.1 prevents more";
    assert_eq!(
        meaning(Stage::Recipient, 450, text).rule.as_str(),
        "rate.recipient"
    );
    // The enhanced code stands only in a later line.
    let text = "Sorry\n550-5.1.1 Not here\n550 5.1.1 Bye";
    assert_eq!(
        meaning(Stage::Recipient, 550, text).rule.as_str(),
        "recipient.unknown"
    );
    // Other digits at the start of a line are words.
    let text = "Sorry\n451 spamhaus\n550";
    assert_eq!(
        meaning(Stage::Data, 550, text).rule.as_str(),
        "block.listed"
    );
    // An address is nobody's fault.
    let text = "5.1.1 <spamhaus.blacklist@example.com>: rejected";
    assert_eq!(
        meaning(Stage::Recipient, 550, text).rule.as_str(),
        "recipient.unknown"
    );
    // Codes that disagree are not final.
    assert_eq!(meaning(Stage::Recipient, 550, "4.1.1 Hm").verdict, V::Retry);
    assert_eq!(meaning(Stage::Recipient, 450, "5.1.1 Hm").verdict, V::Retry);
    assert_eq!(meaning(Stage::Data, 451, "2.0.0 Hm").verdict, V::Retry);
    // Huge text, and letters that are not ASCII.
    let huge = format!("5.1.1 User unknown {}", "\u{1F4E8}\u{DF} ".repeat(200_000));
    assert!(meaning(Stage::Recipient, 550, &huge).suppresses());
    // Codes nobody has heard of.
    for code in [0, 99, 100, 302, 354, 600, u16::MAX] {
        assert_eq!(meaning(Stage::Data, code, "Hm").verdict, V::Retry);
    }
}

#[test]
fn what_the_far_end_asks_for_beats_the_rule() {
    let said = |retry_after| Reply::Said {
        stage: Stage::Recipient,
        code: 450,
        enhanced: Some(Enhanced(4, 7, 1)),
        text: "Greylisted".into(),
        retry_after,
        allows: None,
    };
    let rules = Rules::generic();
    let asked = rules.classify(None, &said(Some(Nanos::from_secs(7))), 1);
    assert_eq!(asked.retry_after, Some(Nanos::from_secs(7)));
    let nothing = rules.classify(None, &said(Some(Nanos::ZERO)), 1);
    assert_eq!(nothing.retry_after, Some(Nanos::from_secs(300)));
}

fn any_reply() -> impl Strategy<Value = (Stage, u16, Option<Enhanced>, String)> {
    let text = prop_oneof![
        "\\PC{0,80}",
        "([a-z]{1,6}|550|[45]\\.[0-9]\\.[0-9]|\r?\n|[- @]){0,30}"
    ];
    let enhanced = (2_u8..=5, 0_u16..10, 0_u16..40).prop_map(|(a, b, c)| Enhanced(a, b, c));
    let code = prop_oneof![400_u16..600, any::<u16>()];
    let stage = proptest::sample::select(&STAGES[..]);
    (stage, code, proptest::option::of(enhanced), text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_reply_condemns_a_recipient_by_mistake(
        (stage, code, enhanced, text) in any_reply(),
        attempts in any::<u16>(),
    ) {
        thread_local!(static RULES: Rules = Rules::generic());
        let text = text.into();
        let (retry_after, allows) = (None, None);
        let reply = Reply::Said { stage, code, enhanced, text, retry_after, allows };
        let outcome = RULES.with(|rules| rules.classify(None, &reply, attempts));
        prop_assert_eq!(outcome.verdict == Verdict::Delivered, reply.is_accepted());
        if outcome.suppresses() {
            prop_assert_eq!(outcome.verdict, Verdict::Bounced);
            prop_assert_eq!(outcome.scope, ReplyScope::Recipient);
        }
        if outcome.verdict == Verdict::Bounced {
            let is_http = matches!(code, 400..=418) || (stage == Stage::Data && matches!(code, 422..=428));
            // What is too large, goes in circles or came too late stays so.
            let is_final = matches!(outcome.rule.as_str(), "message.too_large" | "route.broken");
            let may_bounce = (500..600).contains(&code) || is_http || is_final;
            prop_assert!(may_bounce, "{} by {}", code, outcome.rule);
            if outcome.class == ReplyClass::Recipient {
                let was_named = matches!(stage, Stage::Recipient | Stage::Data);
                prop_assert!(was_named || matches!(code, 521 | 556), "by {}", outcome.rule);
            }
        }
    }
}
