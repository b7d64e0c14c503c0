//! When flows end, and what becomes of their numbers.

use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Head, Seq};
use outflow_core::retry::dead_letter::{DeadLetter, LastError};
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::Nanos;

use super::bench::{Bench, deferral, key_of, plain};
use super::{Case, Harness, begin};
use crate::store::{NewMessage, Store, StoreWork};

const FLOW: FlowId = FlowId(0);
const TO: FlowId = FlowId(1);
/// Longer than an answer takes.
const A_WHILE: Nanos = Nanos::from_secs(2);

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("an empty flow closes", an_empty_flow_closes),
        ("messages keep their flow", messages_keep_their_flow),
        ("a request can be withdrawn", a_request_can_be_withdrawn),
        ("a moved flow closes", a_moved_flow_closes),
        ("orders reach a new flow", orders_reach_a_new_flow),
        ("a number is given anew", a_number_is_given_anew),
        ("a lost name closes no flow", a_lost_name_closes_no_flow),
        ("dead letters keep the number", dead_letters_keep_the_number),
    ]
}

impl<H: Harness> Bench<H> {
    fn close(&mut self, flow: FlowId, request: u32) {
        self.submit(StoreWork::CloseFlow { flow, request });
    }

    /// The flows that were closed lately: by which requests, and whether their
    /// numbers are free.
    fn closed(&mut self) -> Vec<(FlowId, u32, bool)> {
        self.pass(A_WHILE);
        let is_close = |event: &mut Event| matches!(event, Event::FlowClosed { .. });
        let closed = self.events.extract_if(.., is_close);
        let closed = closed.filter_map(|event| match event {
            Event::FlowClosed {
                flow,
                request,
                is_free,
            } => Some((flow, request, is_free)),
            _ => None,
        });
        closed.collect()
    }

    fn open_as(&mut self, flow: FlowId, isp: &str) -> Arc<FlowKey> {
        let key = Arc::new(FlowKey::to(Destination::isp(isp)));
        self.submit(StoreWork::OpenFlow {
            flow,
            key: Arc::clone(&key),
        });
        key
    }

    /// The names of the flows that a start finds.
    fn names(&mut self) -> Vec<(FlowId, Arc<FlowKey>)> {
        let recovered = self.restart();
        let flows = recovered.flows.into_iter();
        flows.map(|(flow, key, _)| (flow, key)).collect()
    }
}

fn an_empty_flow_closes<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.close(FLOW, 7);
    assert_eq!(bench.closed(), [(FLOW, 7, true)], "though it is new");
    bench.open(FLOW);
    for seq in bench.accept_plain(FLOW, 3) {
        bench.settle(FLOW, seq);
    }
    assert!(bench.closed().is_empty(), "nobody asked");
    bench.close(FLOW, 8);
    assert_eq!(bench.closed(), [(FLOW, 8, true)]);
    assert!(bench.harness.store().flow_key(FLOW).is_none());
    assert!(bench.names().is_empty());
}

fn messages_keep_their_flow<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    // Before the messages are durable.
    let batch = bench.submit_batch(vec![plain(FLOW), plain(FLOW)]);
    bench.close(FLOW, 1);
    let seqs = bench.answer(batch).unwrap_or_default();
    assert!(bench.closed().is_empty());
    let &[first, second] = seqs.as_slice() else {
        unreachable!("two messages have two numbers");
    };
    bench.drain(FLOW);
    bench.settle(FLOW, first);
    let later = bench.in_secs(3_600);
    bench.commit(deferral(FLOW, second, later));
    assert!(bench.closed().is_empty(), "one waits for its time");
    bench.settle(FLOW, second);
    assert_eq!(bench.closed(), [(FLOW, 1, true)]);
}

fn a_request_can_be_withdrawn<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = bench.accept_plain(FLOW, 1);
    bench.close(FLOW, 1);
    assert!(bench.closed().is_empty());
    bench.open(FLOW);
    for &seq in &seqs {
        bench.settle(FLOW, seq);
    }
    assert!(bench.closed().is_empty(), "it is not to be closed any more");
    bench.close(FLOW, 2);
    // In one breath: what comes first has its effect first.
    bench.open(FLOW);
    let batch = bench.submit_batch(vec![plain(FLOW)]);
    let seqs = bench.answer(batch).unwrap_or_default();
    assert_eq!(seqs.len(), 1, "an open flow takes messages");
    bench.closed();
    assert_eq!(bench.names(), [(FLOW, key_of(FLOW))]);
}

fn a_moved_flow_closes<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.open(TO);
    let seqs = bench.accept_plain(FLOW, 2);
    bench.close(FLOW, 1);
    bench.commit(Record::Moved {
        flow: FLOW,
        to: TO,
        through: Seq(u64::MAX),
        held: Vec::new(),
    });
    assert_eq!(bench.closed(), [(FLOW, 1, true)]);
    assert_eq!(bench.drain(TO), seqs);
    assert_eq!(bench.names(), [(TO, key_of(TO))]);
}

fn orders_reach_a_new_flow<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    // Before the name of the flow and its messages are durable.
    let batch = bench.submit_batch(vec![plain(FLOW), plain(FLOW)]);
    bench.open(TO);
    bench.commit(Record::Moved {
        flow: FLOW,
        to: TO,
        through: Seq(u64::MAX),
        held: Vec::new(),
    });
    let seqs = bench.answer(batch).unwrap_or_default();
    assert_eq!(bench.drain(FLOW), []);
    assert_eq!(bench.drain(TO), seqs);
    bench.close(FLOW, 1);
    assert_eq!(bench.closed(), [(FLOW, 1, true)]);
    assert_eq!(bench.names(), [(TO, key_of(TO))]);

    bench.open(FLOW);
    let batch = bench.submit_batch(vec![plain(FLOW)]);
    bench.commit(Record::Cancelled {
        flow: FLOW,
        through: Seq(u64::MAX),
    });
    assert!(bench.answer(batch).is_some());
    assert_eq!(bench.drain(FLOW), []);
    assert_eq!(bench.names(), [(TO, key_of(TO))]);
}

fn a_number_is_given_anew<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    let mut last = None;
    for round in 1..6 {
        let key = bench.open_as(FLOW, &format!("round-{round}"));
        let seqs = bench.accept_plain(FLOW, 4);
        assert_eq!(bench.drain(FLOW), seqs, "only its own messages");
        assert_eq!(bench.names(), [(FLOW, key)], "after a crash, too");
        // A cancellation reaches no message of those that have the number later.
        bench.commit(Record::Cancelled {
            flow: FLOW,
            through: Seq(u64::MAX),
        });
        bench.close(FLOW, round);
        assert_eq!(bench.closed(), [(FLOW, round, true)]);
        last = seqs.last().copied();
    }
    let key = bench.open_as(FLOW, "after all");
    let seqs = bench.accept_plain(FLOW, 2);
    assert!(seqs.first().copied() > last);
    assert_eq!(bench.names(), [(FLOW, key)]);
    assert_eq!(bench.drain(FLOW), seqs);
}

fn a_lost_name_closes_no_flow<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.harness.fail_commits(true);
    bench.open(FLOW);
    bench.close(FLOW, 1);
    bench.pass(A_WHILE);
    bench.harness.fail_commits(false);
    let key = bench.open_as(FLOW, "other");
    bench.pass(A_WHILE);
    let seqs = bench.accept_plain(FLOW, 1);
    assert_eq!(bench.names(), [(FLOW, key)]);
    assert_eq!(bench.drain(FLOW), seqs);
}

fn dead_letters_keep_the_number<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let message = NewMessage {
        cost: 9,
        ..plain(FLOW)
    };
    let seqs = bench.accept(vec![message]);
    for seq in seqs.iter().copied() {
        let head = Head::new(seq, bench.now().wall);
        let error = LastError::oversized(9);
        let letter = DeadLetter::new(&head, bench.now().wall, DeathCause::TooLarge, error);
        bench.commit(Record::Dead {
            flow: FLOW,
            seq,
            account: None,
            letter: Box::new(letter),
        });
    }
    bench.close(FLOW, 1);
    assert_eq!(bench.closed(), [(FLOW, 1, false)], "but its number is kept");
    let name = |bench: &mut Bench<H>| bench.harness.store().flow_key(FLOW).cloned();
    assert_eq!(name(&mut bench), Some(key_of(FLOW)));
    let recovered = bench.restart();
    assert!(recovered.flows.is_empty());
    assert_eq!(recovered.reserved, [FLOW], "after a crash, too");
    assert_eq!(name(&mut bench), Some(key_of(FLOW)));
    bench.submit(StoreWork::Forget { seqs });
    assert_eq!(
        bench.closed(),
        [(FLOW, 0, true)],
        "until they are forgotten"
    );
    assert!(bench.names().is_empty());
}
