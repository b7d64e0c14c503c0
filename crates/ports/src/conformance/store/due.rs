//! Due times and expiry: never early, and wherever the message is.

use outflow_core::engine::action::{Attempt, Record};
use outflow_core::handle::FlowId;
use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::Nanos;

use super::bench::{deferral, plain};
use super::{Case, Harness, begin};
use crate::store::{NewMessage, Store};

const FLOW: FlowId = FlowId(0);

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("a deferral ends at its time", a_deferral_ends_at_its_time),
        ("not before means not before", not_before_means_not_before),
        ("attempts are remembered", attempts_are_remembered),
        (
            "expiry finds a message anywhere",
            expiry_finds_a_message_anywhere,
        ),
        (
            "expired messages are not handed out",
            expired_are_not_handed_out,
        ),
        (
            "expiry in flight is told once",
            expiry_in_flight_is_told_once,
        ),
    ]
}

fn a_deferral_ends_at_its_time<H: Harness>(make: &dyn Fn() -> H) {
    for crashes in [false, true] {
        let mut bench = begin(make);
        bench.open(FLOW);
        let seqs = bench.accept_plain(FLOW, 1);
        let seq = bench.page_seqs(FLOW, 1).first().copied();
        let until = bench.in_secs(2);
        bench.commit(deferral(FLOW, seq.unwrap_or_default(), until));
        bench.take_announced(FLOW);
        if crashes {
            let recovered = bench.restart();
            let ready: Vec<u32> = recovered.flows.iter().map(|flow| flow.2).collect();
            assert_eq!(ready, [0], "a deferred message is not ready");
        }
        let early = until.since(bench.now().wall).minus(Nanos::from_millis(50));
        bench.pass(early);
        assert!(bench.drain(FLOW).is_empty(), "a deferred message waits");
        assert_eq!(bench.take_announced(FLOW), (0, 0), "it is not yet due");
        let next = bench.harness.store().next_completion();
        let latest = bench.now().mono + Nanos::from_secs(1);
        assert!(next <= latest, "the store says when it will have something");
        bench.pass(Nanos::from_secs(1));
        assert_eq!(bench.take_announced(FLOW), (0, 1), "then it is due");
        assert_eq!(bench.drain(FLOW), seqs, "and handed out again");
        assert!(bench.drain(FLOW).is_empty(), "once");
    }
}

fn not_before_means_not_before<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let later = NewMessage {
        not_before: Some(bench.in_secs(5)),
        ..plain(FLOW)
    };
    let seqs = bench.accept(vec![later, plain(FLOW)]);
    assert_eq!(bench.take_announced(FLOW), (1, 0), "only one is ready");
    let page = bench.drain(FLOW);
    assert_eq!(page.first(), seqs.last(), "the one that may go goes");
    assert_eq!(page.len(), 1, "the other waits");
    bench.restart();
    assert_eq!(bench.drain(FLOW).len(), 1, "it waits over a crash");
    bench.pass(Nanos::from_secs(6));
    assert_eq!(bench.take_announced(FLOW), (0, 1), "then it is due");
    let page = bench.drain(FLOW);
    assert_eq!(page.first(), seqs.first(), "and goes");
}

fn attempts_are_remembered<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.accept_plain(FLOW, 1);
    let tried_at = bench.now().wall;
    for attempts in 1..=2 {
        let seq = bench.page_seqs(FLOW, 1).first().copied();
        let record = Record::Deferral {
            flow: FLOW,
            seq: seq.unwrap_or_default(),
            until: bench.in_secs(1),
            attempt: Some(Box::new(Attempt {
                first_attempt_at: tried_at,
                attempts,
                uncertain: attempts as u8,
                account: outflow_core::name::Name::from("one"),
                delay: Nanos::from_secs(u64::from(attempts)),
                error: LastError {
                    code: None,
                    enhanced: None,
                    class: ReplyClass::Network,
                    rule: Name::from("network"),
                    text: String::from("nobody there"),
                },
            })),
        };
        bench.commit(record);
        bench.pass(Nanos::from_secs(2));
        if attempts == 2 {
            bench.restart();
        }
    }
    let page = bench.page(FLOW, 1);
    let head = page.first().expect("the message is due");
    assert_eq!(head.attempts, 2, "attempts are counted");
    assert_eq!(head.uncertain, 2, "and so are lost answers");
    assert_eq!(head.first_attempt_at, tried_at, "the first one is known");
    assert_eq!(
        head.last_delay,
        Nanos::from_secs(2),
        "the last wait is known"
    );
    // Stepping aside is no attempt.
    let seq = head.seq;
    let until = bench.in_secs(1);
    bench.commit(deferral(FLOW, seq, until));
    bench.pass(Nanos::from_secs(2));
    let page = bench.page(FLOW, 1);
    let counts = page.first().map(|head| (head.attempts, head.uncertain));
    assert_eq!(counts, Some((2, 2)), "stepping aside is no attempt");
}

fn expiry_finds_a_message_anywhere<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let short = || NewMessage {
        expires_at: bench.now().wall + Nanos::from_secs(5),
        ..plain(FLOW)
    };
    let messages = vec![short(), short(), short(), plain(FLOW)];
    let seqs = bench.accept(messages);
    // One is held, one deferred beyond its end, one waits.
    let held = bench.page_seqs(FLOW, 2);
    let (first, second) = (seqs.first().copied(), seqs.get(1).copied());
    assert_eq!(held.first().copied(), first, "pages are in order");
    let until = bench.in_secs(60);
    bench.commit(deferral(FLOW, second.unwrap_or_default(), until));
    bench.pass(Nanos::from_secs(4));
    assert!(bench.take_expired(FLOW).is_empty(), "nothing expires early");
    bench.pass(Nanos::from_secs(2));
    let mut expired = bench.take_expired(FLOW);
    expired.sort_unstable();
    let expected: Vec<_> = seqs.iter().copied().zip([true, false, false]).collect();
    assert_eq!(expired, expected, "each is told of, with who has it");
    for (seq, _) in expired {
        bench.commit(Record::Settlement {
            flow: FLOW,
            seq,
            state: State::Expired,
            account: None,
            error: None,
        });
    }
    bench.pass(Nanos::from_secs(60));
    assert!(bench.take_expired(FLOW).is_empty(), "settled ones are gone");
    let rest = bench.drain(FLOW);
    assert_eq!(rest.as_slice(), seqs.get(3..).unwrap_or_default());
    bench.restart();
    assert_eq!(bench.drain(FLOW), rest, "also after a crash");
}

fn expired_are_not_handed_out<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let short = NewMessage {
        expires_at: bench.in_secs(1),
        ..plain(FLOW)
    };
    let seqs = bench.accept(vec![short; 3]);
    // The process is away while they expire.
    let later = bench.now().mono + Nanos::from_secs(2);
    bench.harness.advance(later);
    bench.restart();
    assert!(
        bench.drain(FLOW).is_empty(),
        "an expired message is handed out"
    );
    bench.pass(Nanos::from_secs(1));
    let mut expired = bench.take_expired(FLOW);
    expired.sort_unstable();
    let expected: Vec<_> = seqs.into_iter().map(|seq| (seq, false)).collect();
    assert_eq!(expired, expected, "what expired meanwhile is told of");
}

fn expiry_in_flight_is_told_once<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let short = NewMessage {
        expires_at: bench.in_secs(1),
        ..plain(FLOW)
    };
    let seqs = bench.accept(vec![short]);
    let seq = seqs.first().copied().expect("one was accepted");
    bench.page(FLOW, 1);
    bench.pass(Nanos::from_secs(2));
    assert_eq!(bench.take_expired(FLOW), [(seq, true)]);
    bench.pass(Nanos::from_secs(2));
    assert!(bench.take_expired(FLOW).is_empty(), "it is told once");
    // Deferred after all, it waits in the store and is told of again.
    let until = bench.in_secs(60);
    bench.commit(deferral(FLOW, seq, until));
    bench.pass(Nanos::from_secs(2));
    assert_eq!(bench.take_expired(FLOW), [(seq, false)]);
}
