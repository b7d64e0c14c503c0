//! What is carried, what can be found, and what outlives its message.

use std::sync::Arc;

use outflow_core::engine::action::{Hasten, Record};
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::retry::dead_letter::{DeadLetter, LastError};
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::{Nanos, Wall};

use super::bench::{Bench, deferral, keyed, plain};
use super::{Case, Harness, begin};
use crate::parcel::Parcel;
use crate::store::{Found, NewMessage, Store, StoreWork};

const FLOW: FlowId = FlowId(0);
const OTHER: FlowId = FlowId(1);

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("a known key says so", a_known_key_says_so),
        ("a parcel is what was given", a_parcel_is_what_was_given),
        ("what is alive is found", what_is_alive_is_found),
        ("a scan finds all in order", a_scan_finds_all_in_order),
        ("deferred ones are counted", deferred_ones_are_counted),
        ("haste makes due", haste_makes_due),
        ("haste outlives a crash", haste_outlives_a_crash),
        (
            "haste leaves the submitter's time",
            haste_leaves_the_submitters_time,
        ),
        (
            "a dead letter stays until forgotten",
            a_dead_letter_stays_until_forgotten,
        ),
    ]
}

fn a_known_key_says_so<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let earliest = bench.now().wall;
    let seqs = bench.accept(vec![keyed(FLOW, "a"), plain(FLOW)]);
    let first = bench.given.clone();
    assert!(first.iter().all(|given| !given.known), "all are new");
    assert!(
        first
            .iter()
            .all(|given| earliest <= given.accepted_at && given.accepted_at <= bench.now().wall),
        "accepted between asking and answer"
    );
    for settled in [false, true] {
        if settled {
            bench.drain(FLOW);
            bench.settle(FLOW, seqs.first().copied().unwrap_or_default());
        }
        for crashes in [false, true] {
            bench.pass(Nanos::from_secs(1));
            if crashes {
                bench.restart();
            }
            bench.given.clear();
            bench.accept(vec![keyed(FLOW, "a")]);
            let again = bench.given.first().copied();
            let again = again.expect("one was submitted");
            assert!(again.known, "the key is known");
            let expected = first.first().map(|it| (it.seq, it.accepted_at));
            assert_eq!(
                Some((again.seq, again.accepted_at)),
                expected,
                "it is the message of then, with its time of then"
            );
        }
    }
    let head = bench
        .harness
        .store()
        .find(seqs.last().copied().unwrap_or_default());
    let accepted_at = head.map(|found| found.head.accepted_at);
    assert_eq!(
        accepted_at,
        first.last().map(|it| it.accepted_at),
        "the head has the same time"
    );
}

fn parcel<H: Harness>(bench: &mut Bench<H>, seq: Seq) -> Option<Parcel> {
    let parcel = bench.harness.store().parcel(seq);
    parcel.map(|parcel| {
        parcel
            .read()
            .expect("the parcel of a live message can be read")
    })
}

fn a_parcel_is_what_was_given<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let body: Arc<[u8]> = Arc::from(vec![7; 3_000]);
    let messages = (0..20_u8).map(|no| NewMessage {
        envelope: Arc::from([no; 5]),
        // Most share one body; some have their own, some have none.
        body: match no % 7 {
            3 => Arc::from([no; 900]),
            5 => Arc::from([]),
            _ => Arc::clone(&body),
        },
        ..plain(FLOW)
    });
    let messages: Vec<NewMessage> = messages.collect();
    let seqs = bench.accept(messages.clone());
    for round in 0..2 {
        for (seq, message) in seqs.iter().zip(&messages) {
            let expected = Parcel {
                envelope: Arc::clone(&message.envelope),
                body: Arc::clone(&message.body),
            };
            let found = parcel(&mut bench, *seq);
            // Every second one is settled in between.
            let is_alive = round == 0 || seq.0.is_multiple_of(2);
            assert_eq!(found, is_alive.then_some(expected), "parcel of {seq:?}");
        }
        if round == 0 {
            for seq in bench.drain(FLOW) {
                if !seq.0.is_multiple_of(2) {
                    bench.settle(FLOW, seq);
                }
            }
            bench.restart();
        }
    }
    assert!(
        parcel(&mut bench, Seq(1 << 40)).is_none(),
        "nobody's parcel"
    );
}

fn what_is_alive_is_found<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.open(OTHER);
    let seqs = bench.accept(vec![plain(FLOW), plain(OTHER), plain(FLOW)]);
    let (Some(&first), Some(&second)) = (seqs.first(), seqs.get(1)) else {
        unreachable!("three were accepted");
    };
    bench.page(FLOW, 1);
    let until = bench.in_secs(50);
    bench.commit(deferral(FLOW, first, until));
    for _ in 0..2 {
        let found = bench.harness.store().find(first);
        let found = found.expect("it is alive");
        assert_eq!((found.flow, found.due_at), (FLOW, Some(until)));
        assert_eq!((found.head.seq, found.dead), (first, false));
        let found = bench.harness.store().find(second);
        let found = found.map(|found| (found.flow, found.due_at));
        assert_eq!(found, Some((OTHER, None)), "it waits for nothing");
        bench.restart();
    }
    bench.page(OTHER, 1);
    bench.settle(OTHER, second);
    assert_eq!(bench.harness.store().find(second), None, "it is gone");
    assert_eq!(bench.harness.store().find(Seq(1 << 40)), None);
}

fn scan<H: Harness>(bench: &mut Bench<H>, looks: usize) -> Vec<Found> {
    let mut all = Vec::new();
    let mut from = Some(Seq(0));
    while let Some(next) = from {
        let before = all.len();
        from = bench
            .harness
            .store()
            .scan(next, looks, &mut |found| all.push(found));
        assert!(
            all.len() - before <= looks,
            "no more than that is looked at"
        );
        assert!(from.is_none_or(|from| from > next), "a scan gets on");
    }
    all
}

fn a_scan_finds_all_in_order<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.open(OTHER);
    assert!(scan(&mut bench, 3).is_empty(), "nothing is there yet");
    let mut expected = bench.accept_plain(FLOW, 30);
    expected.extend(bench.accept_plain(OTHER, 11));
    for seq in bench.drain(FLOW) {
        if seq.0.is_multiple_of(3) {
            bench.settle(FLOW, seq);
            expected.retain(|it| *it != seq);
        }
    }
    for looks in [1, 4, 1_000] {
        let found = scan(&mut bench, looks);
        let seqs: Vec<Seq> = found.iter().map(|it| it.head.seq).collect();
        assert_eq!(seqs, expected, "all that live, in order");
        let others = found.iter().filter(|it| it.flow == OTHER).count();
        assert_eq!(others, 11, "with their flows");
        bench.restart();
    }
}

fn deferred<H: Harness>(bench: &mut Bench<H>) -> Vec<(FlowId, u64)> {
    let mut all = Vec::new();
    bench
        .harness
        .store()
        .deferred(&mut |flow, count| all.push((flow, count)));
    all.sort_unstable();
    all
}

fn deferred_ones_are_counted<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.open(OTHER);
    bench.accept_plain(FLOW, 3);
    let later = NewMessage {
        not_before: Some(bench.in_secs(9)),
        ..plain(OTHER)
    };
    bench.accept(vec![later, plain(OTHER)]);
    for seq in bench.page_seqs(FLOW, 2) {
        let until = bench.in_secs(5);
        bench.commit(deferral(FLOW, seq, until));
    }
    for _ in 0..2 {
        assert_eq!(deferred(&mut bench), [(FLOW, 2), (OTHER, 1)]);
        bench.restart();
    }
    bench.pass(Nanos::from_secs(6));
    assert_eq!(deferred(&mut bench), [(OTHER, 1)], "due ones do not count");
}

/// Defers all messages of a flow for long.
fn defer_all<H: Harness>(bench: &mut Bench<H>, count: usize) -> Vec<Seq> {
    let seqs = bench.accept_plain(FLOW, count);
    bench.drain(FLOW);
    for &seq in &seqs {
        let until = bench.in_secs(3_600);
        bench.commit(deferral(FLOW, seq, until));
    }
    bench.take_announced(FLOW);
    seqs
}

fn haste_makes_due<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.open(OTHER);
    let seqs = defer_all(&mut bench, 4);
    let (Some(&second), Some(&third)) = (seqs.get(1), seqs.get(2)) else {
        unreachable!("four were accepted");
    };
    let hasten = |which| Record::Hastened { flow: FLOW, which };
    bench.commit(hasten(Hasten::One(second)));
    bench.wait("the message to be due", |bench| {
        (bench.take_announced(FLOW) == (0, 1)).then_some(())
    });
    assert_eq!(bench.drain(FLOW), [second], "that one");
    bench.commit(hasten(Hasten::Through(third)));
    bench.wait("the messages to be due", |bench| {
        (bench.take_announced(FLOW) == (0, 2)).then_some(())
    });
    let mut rest = bench.drain(FLOW);
    rest.sort_unstable();
    let expected: Vec<Seq> = seqs.iter().copied().filter(|it| *it < second).collect();
    let expected: Vec<Seq> = expected.into_iter().chain([third]).collect();
    assert_eq!(
        rest, expected,
        "up to that one, but not what was handed out"
    );
    // Of another flow, or gone: nothing happens.
    bench.commit(Record::Hastened {
        flow: OTHER,
        which: Hasten::One(seqs.last().copied().unwrap_or_default()),
    });
    bench.commit(hasten(Hasten::One(Seq(1 << 40))));
    bench.pass(Nanos::from_secs(1));
    assert!(bench.drain(FLOW).is_empty(), "the last one waits");
}

fn haste_outlives_a_crash<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = defer_all(&mut bench, 3);
    let second = seqs.get(1).copied().unwrap_or_default();
    bench.commit(Record::Hastened {
        flow: FLOW,
        which: Hasten::Through(second),
    });
    let recovered = bench.restart();
    let ready: Vec<u32> = recovered.flows.iter().map(|flow| flow.2).collect();
    assert_eq!(ready, [2], "what was hastened is ready");
    let mut due = bench.drain(FLOW);
    due.sort_unstable();
    assert_eq!(Some(due.as_slice()), seqs.get(..2), "those");
}

fn haste_leaves_the_submitters_time<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let later = NewMessage {
        not_before: Some(bench.in_secs(60)),
        ..plain(FLOW)
    };
    let seq = bench.accept(vec![later]).first().copied();
    let seq = seq.expect("one was accepted");
    for which in [Hasten::One(seq), Hasten::Through(seq)] {
        bench.commit(Record::Hastened { flow: FLOW, which });
        bench.pass(Nanos::from_secs(1));
        assert!(bench.drain(FLOW).is_empty(), "its sender said when");
    }
    bench.restart();
    assert!(bench.drain(FLOW).is_empty(), "also over a crash");
    bench.pass(Nanos::from_secs(60));
    assert_eq!(bench.drain(FLOW), [seq], "then it goes");
    // Once it was put off, its time is ours.
    let until = bench.in_secs(3_600);
    bench.commit(deferral(FLOW, seq, until));
    bench.take_announced(FLOW);
    let which = Hasten::One(seq);
    bench.commit(Record::Hastened { flow: FLOW, which });
    bench.wait("the message to be due", |bench| {
        (bench.take_announced(FLOW) == (0, 1)).then_some(())
    });
}

fn a_dead_letter_stays_until_forgotten<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = bench.accept_plain(FLOW, 2);
    let seq = bench.page_seqs(FLOW, 1).first().copied();
    let seq = seq.expect("two were accepted");
    let record = Record::Dead {
        flow: FLOW,
        seq,
        account: None,
        letter: Box::new(DeadLetter {
            first_attempt_at: Wall(1),
            last_attempt_at: Wall(2),
            attempts: 3,
            cause: DeathCause::Attempts,
            error: LastError {
                code: Some(451),
                enhanced: None,
                class: ReplyClass::Other,
                rule: Name::from("other"),
                text: String::from("not now"),
            },
        }),
    };
    bench.commit(record);
    for _ in 0..2 {
        let found = bench.harness.store().find(seq);
        assert!(found.is_some_and(|found| found.dead), "it is kept");
        assert!(parcel(&mut bench, seq).is_some(), "with what it carried");
        let dead = scan(&mut bench, 10).iter().filter(|it| it.dead).count();
        assert_eq!(dead, 1, "a scan finds it");
        let recovered = bench.restart();
        let ready: Vec<u32> = recovered.flows.iter().map(|flow| flow.2).collect();
        assert_eq!(ready, [1], "it is not alive");
    }
    let rest = bench.drain(FLOW);
    assert_eq!(Some(rest.as_slice()), seqs.get(1..), "nor handed out");
    bench.submit(StoreWork::Forget { seqs: vec![seq] });
    // What is answered after it says that it was done.
    bench.accept_plain(FLOW, 1);
    for _ in 0..2 {
        assert_eq!(bench.harness.store().find(seq), None, "then it is gone");
        assert!(parcel(&mut bench, seq).is_none(), "with what it carried");
        bench.restart();
    }
}
