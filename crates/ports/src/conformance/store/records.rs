//! What records about several messages do, and idempotency keys.

use outflow_core::engine::action::Record;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::Nanos;

use super::bench::{deferral, keyed, plain};
use super::{Case, Harness, begin};
use crate::store::{NewMessage, Store};

const FLOW: FlowId = FlowId(0);
const TO: FlowId = FlowId(1);

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("a key makes one message", a_key_makes_one_message),
        ("a twin waits for the first", a_twin_waits_for_the_first),
        ("a cancelled flow is empty", a_cancelled_flow_is_empty),
        (
            "what is being cancelled stays",
            what_is_being_cancelled_stays,
        ),
        ("moved messages change flows", moved_messages_change_flows),
        (
            "a waiting message can be settled",
            a_waiting_message_can_be_settled,
        ),
    ]
}

fn a_key_makes_one_message<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let first = bench.accept(vec![keyed(FLOW, "a"), keyed(FLOW, "b")]);
    let again = bench.accept(vec![keyed(FLOW, "b"), plain(FLOW), keyed(FLOW, "a")]);
    assert_eq!(
        again.first(),
        first.last(),
        "a known key has the first number"
    );
    assert_eq!(again.last(), first.first(), "each has its own");
    bench.restart();
    let later = bench.accept(vec![keyed(FLOW, "a")]);
    assert_eq!(later.first(), first.first(), "also after a crash");
    let all = bench.drain(FLOW);
    assert_eq!(all.len(), 3, "one message per key");
    for &seq in &all {
        bench.settle(FLOW, seq);
    }
    let later = bench.accept(vec![keyed(FLOW, "a")]);
    assert_eq!(later.first(), first.first(), "a settled message counts too");
    assert!(bench.drain(FLOW).is_empty(), "and is not sent again");
}

fn a_twin_waits_for_the_first<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let first = bench.submit_batch(vec![keyed(FLOW, "a"), keyed(FLOW, "a")]);
    let twin = bench.submit_batch(vec![keyed(FLOW, "a")]);
    let twin = bench.answer(twin).expect("the twin is accepted");
    let first = bench.batches.get(&first).cloned().flatten();
    let first = first.expect("the first is answered before its twin");
    assert_eq!(first.first(), first.last(), "twins in one batch are one");
    assert_eq!(first.first(), twin.first(), "the twin is the first");
    assert_eq!(bench.drain(FLOW).len(), 1, "one message");
}

fn a_cancelled_flow_is_empty<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let later = NewMessage {
        not_before: Some(bench.in_secs(5)),
        ..plain(FLOW)
    };
    let mut messages = vec![plain(FLOW); 4];
    messages.push(later);
    let old = bench.accept(messages);
    let held = bench.page_seqs(FLOW, 1);
    let through = bench.harness.store().last_seq();
    let new = bench.accept_plain(FLOW, 2);
    bench.commit(Record::Cancelled {
        flow: FLOW,
        through,
    });
    assert_eq!(bench.drain(FLOW), new, "what came after stays");
    bench.pass(Nanos::from_secs(6));
    assert!(
        bench.drain(FLOW).is_empty(),
        "deferred ones are cancelled too"
    );
    bench.restart();
    let left = bench.drain(FLOW);
    let expected: Vec<Seq> = held.iter().chain(&new).copied().collect();
    assert_eq!(left, expected, "held ones and new ones live, for good");
    assert_eq!(held.first(), old.first(), "pages are in order");
}

/// From the moment the record is handed over nothing of it is handed out, even
/// if the commit fails and the record must come again.
fn what_is_being_cancelled_stays<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.accept_plain(FLOW, 3);
    let through = bench.harness.store().last_seq();
    let record = Record::Cancelled {
        flow: FLOW,
        through,
    };
    bench.harness.fail_commits(true);
    let no = bench.append(record.clone());
    assert!(
        bench.drain(FLOW).is_empty(),
        "it is handed out while cancelled"
    );
    bench.wait("a failed commit", |bench| {
        (bench.failed >= Some(no)).then_some(())
    });
    assert!(
        bench.drain(FLOW).is_empty(),
        "it is handed out after a failure"
    );
    bench.harness.fail_commits(false);
    bench.commit(record);
    let new = bench.accept_plain(FLOW, 1);
    assert_eq!(bench.drain(FLOW), new, "the flow goes on");
    let recovered = bench.restart();
    let ready: Vec<u32> = recovered.flows.iter().map(|flow| flow.2).collect();
    assert_eq!(ready, [1], "the cancelled ones are gone");
}

fn moved_messages_change_flows<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let old = bench.accept_plain(FLOW, 5);
    let page = bench.page_seqs(FLOW, 3);
    // One is in flight, one deferred, one held, two wait.
    let (Some(&in_flight), Some(&deferred), Some(&held)) = (page.first(), page.get(1), page.get(2))
    else {
        unreachable!("five were accepted");
    };
    let until = bench.in_secs(5);
    bench.commit(deferral(FLOW, deferred, until));
    bench.open(TO);
    let through = bench.harness.store().last_seq();
    let record = Record::Moved {
        flow: FLOW,
        to: TO,
        through,
        held: vec![held],
    };
    bench.commit(record);
    assert!(bench.drain(FLOW).is_empty(), "nothing is left behind");
    bench.wait("the target to be told", |bench| {
        (bench.take_announced(TO) == (0, 3)).then_some(())
    });
    let mut moved = bench.drain(TO);
    moved.sort_unstable();
    assert_eq!(
        Some(moved.as_slice()),
        old.get(2..),
        "they are in the target"
    );
    bench.pass(Nanos::from_secs(6));
    assert_eq!(bench.take_announced(TO), (0, 1), "the deferred one as well");
    assert_eq!(bench.drain(TO), [deferred], "at its time");
    let recovered = bench.restart();
    let flows: Vec<(FlowId, u32)> = recovered.flows.iter().map(|it| (it.0, it.2)).collect();
    assert_eq!(flows, [(FLOW, 1), (TO, 4)], "for good");
    assert_eq!(bench.drain(FLOW), [in_flight], "what was in flight stayed");
}

fn a_waiting_message_can_be_settled<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = bench.accept_plain(FLOW, 3);
    let second = seqs.get(1).copied().expect("three were accepted");
    bench.append(super::bench::settlement(FLOW, second));
    let left = bench.drain(FLOW);
    assert!(!left.contains(&second), "it is handed out while cancelled");
    assert_eq!(left.len(), 2, "the others stay");
    bench.pass(Nanos::from_secs(1));
    // Settled twice is settled.
    bench.settle(FLOW, second);
    bench.restart();
    assert_eq!(bench.drain(FLOW), left, "for good");
}
