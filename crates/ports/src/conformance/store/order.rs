//! Pages: in order, each message once, due ones first, nothing forgotten.

use outflow_core::engine::event::Event;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::Nanos;

use super::bench::{deferral, plain, settlement};
use super::{Case, Harness, begin};
use crate::store::{NewMessage, Store, StoreWork};

const FLOW: FlowId = FlowId(3);
const OTHER: FlowId = FlowId(0);

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("pages are in order", pages_are_in_order),
        ("due messages come first", due_messages_come_first),
        ("a short page is the end", a_short_page_is_the_end),
        ("heads say what was accepted", heads_say_what_was_accepted),
        ("messages ahead are counted", messages_ahead_are_counted),
        ("an unknown flow is empty", an_unknown_flow_is_empty),
    ]
}

fn pages_are_in_order<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.open(OTHER);
    let mut expected = Vec::new();
    for _ in 0..5 {
        let seqs = bench.accept(vec![plain(FLOW), plain(OTHER), plain(FLOW)]);
        assert!(seqs.is_sorted(), "numbers follow the order of submission");
        expected.extend([seqs.first(), seqs.last()].into_iter().flatten().copied());
    }
    assert_eq!(bench.take_announced(FLOW), (10, 0), "all are announced");
    assert_eq!(bench.take_announced(OTHER), (5, 0), "each to its flow");
    let mut paged = Vec::new();
    for max in [1, 4, 2, 9] {
        let page = bench.page_seqs(FLOW, max);
        assert!(
            page.len() <= max as usize,
            "a page has at most what was asked"
        );
        paged.extend(page);
    }
    assert_eq!(paged, expected, "pages are in order, each message once");
    assert_eq!(bench.drain(OTHER).len(), 5, "flows do not mix");
}

fn due_messages_come_first<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = bench.accept_plain(FLOW, 6);
    let page = bench.page_seqs(FLOW, 2);
    let (first, second) = (bench.in_secs(2), bench.in_secs(1));
    for (&seq, until) in page.iter().zip([first, second]) {
        bench.commit(deferral(FLOW, seq, until));
    }
    bench.take_announced(FLOW);
    bench.pass(Nanos::from_secs(3));
    assert_eq!(bench.take_announced(FLOW), (0, 2), "due ones are announced");
    let mut expected: Vec<Seq> = seqs.clone();
    expected.swap(0, 1);
    assert_eq!(bench.drain(FLOW), expected, "due ones first, by their time");
    // Over a crash the same order holds.
    let recovered = bench.restart();
    let ready: Vec<u32> = recovered.flows.iter().map(|flow| flow.2).collect();
    assert_eq!(ready, [6], "due ones count as ready");
    assert_eq!(bench.drain(FLOW), expected, "due ones first after a crash");
}

/// If a page has fewer messages than asked for, all that were announced before
/// it have been handed out: whoever counts may start at nothing.
fn a_short_page_is_the_end<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let (mut announced, mut paged) = (0, 0);
    for round in 0..200_u64 {
        let count = round % 3;
        bench.submit_batch((0..count).map(|_| plain(FLOW)).collect());
        bench.submit(StoreWork::Page { flow: FLOW, max: 4 });
        let now = bench.now().mono;
        bench.harness.advance(now + Nanos(round % 7 * 200_000));
        bench.turn();
        for event in std::mem::take(&mut bench.events) {
            match event {
                Event::Accepted { count, .. } | Event::Due { count, .. } => announced += count,
                Event::Paged { heads, .. } => {
                    paged += heads.len() as u32;
                    let is_short = heads.len() < 4;
                    assert!(
                        !is_short || paged >= announced,
                        "a short page leaves announced messages behind"
                    );
                    assert!(
                        paged <= announced,
                        "a message is handed out before it was announced"
                    );
                }
                _ => {}
            }
        }
    }
    bench.pass(Nanos::from_secs(1));
    let rest = bench.drain(FLOW).len() as u32;
    assert_eq!(paged + rest, 199, "every message is handed out");
}

fn heads_say_what_was_accepted<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let earliest = bench.now().wall;
    let expires_at = bench.in_secs(100);
    let message = NewMessage {
        cost: 3,
        expires_at,
        ..plain(FLOW)
    };
    let recipient = message.recipient;
    bench.accept(vec![message]);
    let latest = bench.now().wall;
    for _ in 0..2 {
        let page = bench.page(FLOW, 1);
        let head = page.first().expect("one message was accepted");
        assert!(earliest <= head.accepted_at && head.accepted_at <= latest);
        assert_eq!(head.expires_at, expires_at);
        assert_eq!(head.recipient, recipient);
        assert_eq!((head.cost, head.attempts), (3, 0));
        assert_eq!(head.first_attempt_at, outflow_core::time::Wall::NEVER);
        bench.restart();
    }
}

fn messages_ahead_are_counted<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = bench.accept_plain(FLOW, 5);
    let mut ahead = |seq: &Seq| bench.harness.store().ahead(FLOW, *seq);
    let counts: Vec<Option<u64>> = seqs.iter().map(&mut ahead).collect();
    assert_eq!(counts, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
    let held = bench.page_seqs(FLOW, 2);
    let mut ahead = |seq: &Seq| bench.harness.store().ahead(FLOW, *seq);
    let counts: Vec<Option<u64>> = seqs.iter().map(&mut ahead).collect();
    assert_eq!(counts, [None, None, Some(0), Some(1), Some(2)]);
    let first = held.first().copied().expect("two were paged");
    bench.commit(settlement(FLOW, first));
    assert_eq!(bench.harness.store().ahead(FLOW, first), None);
    assert_eq!(bench.harness.store().ahead(FLOW, Seq(1_000_000)), None);
    let second = held.last().copied().expect("two were paged");
    let until = bench.in_secs(1);
    bench.commit(deferral(FLOW, second, until));
    assert_eq!(bench.harness.store().ahead(FLOW, second), None);
    bench.pass(Nanos::from_secs(2));
    assert_eq!(bench.harness.store().ahead(FLOW, second), Some(0));
    let last = seqs.last().copied().expect("five were accepted");
    assert_eq!(bench.harness.store().ahead(FLOW, last), Some(3));
}

fn an_unknown_flow_is_empty<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    assert!(bench.drain(FlowId(77)).is_empty(), "nobody knows that flow");
}
