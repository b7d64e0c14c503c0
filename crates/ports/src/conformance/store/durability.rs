//! What was acknowledged is there after every crash; what was settled is not.

use std::collections::BTreeSet;

use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::Seq;
use outflow_core::time::Nanos;

use super::bench::{Bench, deferral, key_of, keyed, plain, settlement};
use super::{Case, Harness, begin};
use crate::store::{BatchId, Store};

const FLOW: FlowId = FlowId(0);
const OTHER: FlowId = FlowId(1);

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("a crash at every point", a_crash_at_every_point),
        ("a settlement is for good", a_settlement_is_for_good),
        ("flows keep their numbers", flows_keep_their_numbers),
        ("a failed commit tells all", a_failed_commit_tells_all),
        ("what failed can come again", what_failed_can_come_again),
        (
            "a full disk stops intake only",
            a_full_disk_stops_intake_only,
        ),
    ]
}

/// What a store was asked for and what it acknowledged.
#[derive(Default)]
struct Expected {
    submitted: Vec<(BatchId, usize)>,
    accepted: BTreeSet<Seq>,
    /// Settled, and by which append.
    settling: Vec<(Seq, AppendNo)>,
}

/// A little of everything, a step at a time.
fn step<H: Harness>(bench: &mut Bench<H>, expected: &mut Expected, no: usize) {
    match no % 6 {
        0 => {
            let messages = vec![plain(FLOW), plain(OTHER), plain(FLOW)];
            expected.submitted.push((bench.submit_batch(messages), 3));
        }
        1 | 3 => {
            let now = bench.now().mono;
            bench.harness.advance(now + Nanos(300_000));
            bench.turn();
        }
        2 => {
            let page = bench.page_seqs(FLOW, 2);
            for (place, seq) in page.into_iter().enumerate() {
                if place == 0 {
                    expected
                        .settling
                        .push((seq, bench.append(settlement(FLOW, seq))));
                } else {
                    bench.append(deferral(FLOW, seq, bench.in_secs(5)));
                }
            }
        }
        4 => bench.turn(),
        _ => bench.pass(Nanos(700_000)),
    }
    for (batch, _) in &expected.submitted {
        if let Some(Some(seqs)) = bench.batches.get(batch) {
            expected.accepted.extend(seqs);
        }
    }
}

fn a_crash_at_every_point<H: Harness>(make: &dyn Fn() -> H) {
    for steps in 0..40 {
        let mut bench = begin(make);
        bench.open(FLOW);
        bench.open(OTHER);
        let mut expected = Expected::default();
        for no in 0..steps {
            step(&mut bench, &mut expected, no);
        }
        let committed = bench.committed;
        let last = bench.harness.store().last_seq();
        bench.restart();
        check_after_crash(&mut bench, &expected, committed);
        assert!(
            expected.accepted.iter().all(|seq| *seq <= last),
            "the last number covers all"
        );
        let new = bench.harness.store().last_seq();
        let highest = expected.accepted.last().copied().unwrap_or_default();
        assert!(new >= highest, "numbers do not go back over a crash");
        bench.open(FLOW);
        let fresh = bench.accept_plain(FLOW, 1);
        assert!(
            fresh.iter().all(|seq| *seq > highest),
            "numbers are not given twice"
        );
    }
}

fn check_after_crash<H: Harness>(bench: &mut Bench<H>, expected: &Expected, committed: AppendNo) {
    bench.pass(Nanos::from_secs(6));
    let mut found = bench.drain(FLOW);
    found.extend(bench.drain(OTHER));
    let unique: BTreeSet<Seq> = found.iter().copied().collect();
    assert_eq!(
        unique.len(),
        found.len(),
        "a message is handed out twice after a crash"
    );
    for seq in &expected.accepted {
        let settling = expected.settling.iter().find(|(of, _)| of == seq);
        match settling {
            None => assert!(
                unique.contains(seq),
                "an acknowledged message is lost in a crash"
            ),
            Some((_, no)) if *no <= committed => assert!(
                !unique.contains(seq),
                "a settled message comes back after a crash"
            ),
            Some(_) => {}
        }
    }
    let submitted: usize = expected.submitted.iter().map(|(_, count)| count).sum();
    assert!(unique.len() <= submitted, "a message comes from nowhere");
}

fn a_settlement_is_for_good<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = bench.accept_plain(FLOW, 3);
    let page = bench.page_seqs(FLOW, 3);
    assert_eq!(page, seqs, "a page has what was accepted");
    for &seq in page.iter().take(2) {
        bench.settle(FLOW, seq);
    }
    assert!(
        bench.drain(FLOW).is_empty(),
        "nothing is handed out twice while the process lives"
    );
    for _ in 0..2 {
        let recovered = bench.restart();
        assert!(!recovered.fresh, "a store that was used is not fresh");
        let ready: Vec<u32> = recovered.flows.iter().map(|flow| flow.2).collect();
        assert_eq!(ready, [1], "only the living count");
        assert_eq!(
            bench.drain(FLOW).last(),
            page.last(),
            "what was held and not settled comes again"
        );
    }
    bench.settle(FLOW, page.last().copied().expect("three were paged"));
    let recovered = bench.restart();
    assert!(
        recovered.flows.is_empty(),
        "a flow without live messages is not told of"
    );
}

fn flows_keep_their_numbers<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    for flow in [FLOW, OTHER] {
        bench.open(flow);
    }
    bench.accept_plain(OTHER, 2);
    let recovered = bench.restart();
    let expected = vec![(OTHER, key_of(OTHER), 2)];
    assert_eq!(recovered.flows, expected, "flows with messages are told of");
    // A number without messages may name another flow from now on.
    let key = key_of(FlowId(9));
    bench.submit(crate::store::StoreWork::OpenFlow { flow: FLOW, key });
    bench.accept_plain(FLOW, 1);
    let recovered = bench.restart();
    let expected = vec![(FLOW, key_of(FlowId(9)), 1), (OTHER, key_of(OTHER), 2)];
    assert_eq!(recovered.flows, expected, "the last name holds");
}

fn a_failed_commit_tells_all<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = bench.accept_plain(FLOW, 3);
    let page = bench.page_seqs(FLOW, 3);
    bench.harness.fail_commits(true);
    let batch = bench.submit_batch(vec![plain(FLOW), plain(FLOW)]);
    let mut last = AppendNo(0);
    for &seq in &page {
        last = bench.append(settlement(FLOW, seq));
    }
    assert!(
        bench.answer(batch).is_none(),
        "a failed commit accepts nothing"
    );
    bench.wait("a failed commit", |bench| {
        (bench.failed >= Some(last)).then_some(())
    });
    assert_eq!(bench.failed, Some(last), "all lost ones are told of");
    bench.pass(Nanos::from_secs(1));
    assert_eq!(bench.committed, AppendNo(0), "nothing lost is committed");
    bench.harness.fail_commits(false);
    bench.restart();
    let found = bench.drain(FLOW);
    let of_batch = found.iter().filter(|seq| !seqs.contains(seq)).count();
    assert!(
        of_batch == 0 || of_batch == 2,
        "half of a failed batch survives"
    );
}

fn what_failed_can_come_again<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    let seqs = bench.accept_plain(FLOW, 2);
    let page = bench.page_seqs(FLOW, 2);
    assert_eq!(page, seqs, "a page has what was accepted");
    bench.harness.fail_commits(true);
    bench.open(OTHER);
    let batch = bench.submit_batch(vec![keyed(OTHER, "k")]);
    assert!(
        bench.answer(batch).is_none(),
        "a failed commit accepts nothing"
    );
    let until = bench.in_secs(2);
    let records = [
        settlement(FLOW, page.first().copied().unwrap_or_default()),
        deferral(FLOW, page.last().copied().unwrap_or_default(), until),
    ];
    let mut last = AppendNo(0);
    for record in records.clone() {
        last = bench.append(record);
    }
    bench.wait("a failed commit", |bench| {
        (bench.failed >= Some(last)).then_some(())
    });
    bench.pass(Nanos::from_secs(3));
    assert!(
        bench.drain(FLOW).is_empty(),
        "a lost record does not bring its message back"
    );
    bench.harness.fail_commits(false);
    for record in records {
        bench.commit(record);
    }
    bench.pass(Nanos::from_secs(1));
    let again = bench.drain(FLOW);
    assert_eq!(again.as_slice(), seqs.get(1..).unwrap_or_default());
    // The flow was named once only: the store kept that over the failure.
    let first = bench.accept(vec![keyed(OTHER, "k")]);
    let second = bench.accept(vec![keyed(OTHER, "k")]);
    assert_eq!(first, second, "a key that failed is free, and then taken");
    let recovered = bench.restart();
    assert!(
        recovered.flows.contains(&(OTHER, key_of(OTHER), 1)),
        "a name is durable before any message of its flow"
    );
}

fn a_full_disk_stops_intake_only<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(FLOW);
    bench.accept_plain(FLOW, 2);
    let page = bench.page_seqs(FLOW, 2);
    bench.harness.fill_disk(true);
    let batch = bench.submit_batch(vec![plain(FLOW)]);
    assert!(
        bench.answer(batch).is_none(),
        "a full disk takes no messages"
    );
    for &seq in &page {
        bench.settle(FLOW, seq);
    }
    bench.harness.fill_disk(false);
    let seqs = bench.accept_plain(FLOW, 1);
    assert_eq!(bench.drain(FLOW), seqs, "intake resumes by itself");
}
