//! Answers must not depend on how much of what was handed over is on the disk.

use std::collections::BTreeMap;

use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::Wall;
use outflow_ports::receipts::{Receipt, ReceiptFilter, Receipts};
use proptest::prelude::*;

use super::{LONG, Scratch, ago, error, open_eager, open_lazy, receipt};
use crate::record::words::FINAL;
use crate::record::{KeptReceipts, Record, RecordSettings};

#[test]
fn a_receipt_comes_back_whole() {
    let scratch = Scratch::new();
    let record = open_lazy(&scratch.file());
    let all: Vec<Receipt> = (1..)
        .zip(FINAL)
        .map(|(seq, state)| receipt(seq, state))
        .collect();
    record.settle(all.clone(), 7);
    let whole = |record: &Record| {
        for one in &all {
            assert_eq!(Receipts::get(record, one.seq).unwrap().as_ref(), Some(one));
            assert_eq!(record.events(one.seq).unwrap(), one.events);
        }
        assert_eq!(Receipts::get(record, Seq(99)).unwrap(), None);
        assert!(record.events(Seq(99)).unwrap().is_empty());
    };
    whole(&record);
    assert_eq!((record.backlog(), record.applied()), (all.len(), 0));
    record.close();
    assert_eq!((record.backlog(), record.applied()), (0, 7));
    whole(&record);
    drop(record);
    whole(&open_lazy(&scratch.file()));
}

#[test]
fn feedback_joins_the_timeline_once_and_timelines_are_bounded() {
    let scratch = Scratch::new();
    let record = open_lazy(&scratch.file());
    record.settle(
        vec![receipt(1, State::Delivered), receipt(2, State::Delivered)],
        1,
    );
    record.feedback(Seq(1), ago(9), error(550, "complaint"));
    record.feedback(Seq(3), ago(9), error(550, "of a message nobody knows"));
    let with_feedback = |record: &Record, count: usize| {
        let events = record.events(Seq(1)).unwrap();
        assert_eq!(events.len(), 3 + count);
        assert_eq!(events.last().unwrap().error, Some(error(550, "complaint")));
        let listed = Receipts::list(record, &ReceiptFilter::default(), None, 9).unwrap();
        assert_eq!(listed.last().unwrap().events, events);
        assert_eq!(Receipts::get(record, Seq(3)).unwrap(), None);
    };
    with_feedback(&record, 1);
    record.close();
    with_feedback(&record, 1);
    drop(record);

    let record = open_lazy(&scratch.file());
    record.feedback(Seq(1), ago(9), error(550, "before"));
    record.feedback(Seq(1), ago(8), error(550, "complaint"));
    with_feedback(&record, 3);
    (0..200).for_each(|no| record.feedback(Seq(2), ago(9), error(no, &"x".repeat(600))));
    record.close();
    with_feedback(&record, 3);
    let events = record.events(Seq(2)).unwrap();
    assert_eq!(events.len(), 64);
    assert_eq!(events[0].what, "accepted");
    let last = events[63].error.as_ref().unwrap();
    assert_eq!((last.code, last.text.len()), (Some(199), 512));
}

#[test]
fn feedback_that_waits_is_bounded() {
    let scratch = Scratch::new();
    let record = open_lazy(&scratch.file());
    record.settle(vec![receipt(1, State::Delivered)], 1);
    for no in 0..100_100 {
        record.feedback(Seq(no), ago(9), error(550, "complaint"));
    }
    record.feedback(Seq(1), ago(8), error(551, "one too many"));
    assert_eq!(record.events(Seq(1)).unwrap().len(), 4);
    record.close();
    assert_eq!(record.events(Seq(1)).unwrap().len(), 4);
    assert_eq!(record.shared.waiting.feedback(Seq(5)), []);
}

#[test]
fn only_what_is_wanted_is_kept() {
    let cases = [
        (KeptReceipts::All, 6),
        (KeptReceipts::Failures, 5),
        (KeptReceipts::None, 0),
    ];
    for (receipts, kept) in cases {
        let scratch = Scratch::new();
        let settings = RecordSettings {
            receipts,
            batch_time: outflow_core::time::Nanos::ZERO,
            ..RecordSettings::default()
        };
        let record = Record::open(&scratch.file(), settings).unwrap();
        record.settle(
            (1..)
                .zip(FINAL)
                .map(|(seq, state)| receipt(seq, state))
                .collect(),
            5,
        );
        assert!(record.wait_applied(5, LONG));
        assert_eq!(record.count(&ReceiptFilter::default()).unwrap(), kept);
        let mut canary = receipt(50, State::Delivered);
        canary.key.tenant = outflow_core::name::Name::from(outflow_core::runbook::CANARY);
        record.settle(vec![canary], 6);
        assert!(Receipts::get(&record, Seq(50)).unwrap().is_some(), "always");
    }
}

#[test]
fn a_large_hand_over_is_split_and_its_position_comes_last() {
    let scratch = Scratch::new();
    let settings = RecordSettings {
        batch_rows: 10,
        ..RecordSettings::default()
    };
    let record = Record::open(&scratch.file(), settings).unwrap();
    record.settle(
        (0..95).map(|seq| receipt(seq, State::Bounced)).collect(),
        400,
    );
    record.settle(Vec::new(), 500);
    record.close();
    assert_eq!((record.applied(), record.backlog()), (500, 0));
    assert_eq!(record.count(&ReceiptFilter::default()).unwrap(), 95);
}

prop_compose! {
    fn any_receipt()(
        seq in 0u64..40,
        state in proptest::sample::select(FINAL.to_vec()),
        tenant in 0..3,
        campaign in proptest::option::of(0..2),
        destination in 0..3,
        class in proptest::sample::select(Class::ALL.to_vec()),
        pool in 0..2,
        code in proptest::option::of(420u16..423),
        age in proptest::bool::ANY,
        settled in 0i64..5,
    ) -> Receipt {
        let mut one = receipt(seq, state);
        one.key.tenant = Name::from(format!("t{tenant}"));
        one.key.campaign = campaign.map(|no| Name::from(format!("c{no}")));
        one.key.destination = Destination::isp(format!("d{destination}"));
        one.key.class = class;
        one.key.pool = Name::from(format!("p{pool}"));
        one.error = code.map(|code| error(code, "no"));
        one.cause = (state == State::Dead)
            .then_some(if age { DeathCause::Age } else { DeathCause::Attempts });
        let day = ago(0).0 / 86_400_000_000_000 * 86_400_000_000_000;
        one.settled_at = Wall(day - settled * 1_000_000_000);
        one.accepted_at = one.settled_at;
        one.events.truncate(1);
        one.events[0].at = one.accepted_at;
        one
    }
}

prop_compose! {
    fn any_filter()(
        states in proptest::collection::vec(proptest::sample::select(FINAL.to_vec()), 0..4),
        tenant in proptest::option::of(0..3),
        campaign in proptest::option::weighted(0.3, 0..2),
        destination in proptest::option::weighted(0.3, 0..3),
        class in proptest::option::weighted(0.3, proptest::sample::select(Class::ALL.to_vec())),
        pool in proptest::option::weighted(0.3, 0..2),
        since in proptest::option::weighted(0.3, 0i64..5),
        before in proptest::option::weighted(0.3, 0i64..5),
    ) -> ReceiptFilter {
        let day = ago(0).0 / 86_400_000_000_000 * 86_400_000_000_000;
        ReceiptFilter {
            states,
            tenant: tenant.map(|no| format!("t{no}")),
            campaign: campaign.map(|no| format!("c{no}")),
            class: class.map(|class| class.as_str().to_owned()),
            destination: destination.map(|no| format!("isp:d{no}")),
            pool: pool.map(|no| format!("p{no}")),
            settled_since: since.map(|secs| Wall(day - secs * 1_000_000_000)),
            settled_before: before.map(|secs| Wall(day - secs * 1_000_000_000)),
        }
    }
}

/// What a filter means, said once more and without SQL.
fn is_meant(filter: &ReceiptFilter, one: &Receipt) -> bool {
    let differs = |wanted: &Option<String>, has: Option<String>| wanted.is_some() && *wanted != has;
    !(!filter.states.is_empty() && !filter.states.contains(&one.state)
        || differs(&filter.tenant, Some(one.key.tenant.to_string()))
        || differs(
            &filter.campaign,
            one.key.campaign.as_ref().map(Name::to_string),
        )
        || differs(&filter.class, Some(one.key.class.to_string()))
        || differs(&filter.destination, Some(one.key.destination.to_string()))
        || differs(&filter.pool, Some(one.key.pool.to_string()))
        || filter
            .settled_since
            .is_some_and(|since| one.settled_at < since)
        || filter
            .settled_before
            .is_some_and(|before| one.settled_at >= before))
}

fn check(record: &Record, model: &BTreeMap<Seq, Receipt>, filter: &ReceiptFilter, page: usize) {
    let meant: Vec<Receipt> = model
        .values()
        .rev()
        .filter(|one| is_meant(filter, one))
        .cloned()
        .collect();
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let part = Receipts::list(record, filter, before, page).unwrap();
        assert!(part.len() <= page);
        before = part.last().map(|one| one.seq);
        let is_end = part.len() < page;
        listed.extend(part);
        if is_end {
            break;
        }
    }
    assert_eq!(listed, meant, "{filter:?}");
    assert_eq!(record.count(filter).unwrap(), meant.len() as u64);

    let mut dead = BTreeMap::new();
    for one in meant.iter().filter(|one| one.state == State::Dead) {
        let class = one
            .error
            .as_ref()
            .map_or("unknown", |error| error.class.as_str());
        let code = one.error.as_ref().and_then(|error| error.code);
        let group = (
            one.cause.unwrap().as_str(),
            class,
            code,
            one.key.destination.to_string(),
        );
        *dead.entry(group).or_insert(0u64) += 1;
    }
    let causes = record.causes(filter).unwrap();
    assert!(causes.is_sorted_by(|a, b| a.count >= b.count));
    assert_eq!(causes.len(), dead.len());
    for cause in causes {
        let group = (
            &*cause.cause,
            &*cause.error_class,
            cause.code,
            cause.destination,
        );
        assert_eq!(dead.get(&group), Some(&cause.count));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_disk_answer_as_one(
        on_disk in proptest::collection::vec(any_receipt(), 0..60),
        in_memory in proptest::collection::vec(any_receipt(), 0..60),
        filters in proptest::collection::vec(any_filter(), 12),
        page in 1usize..8,
    ) {
        let scratch = Scratch::new();
        let mut model = BTreeMap::new();
        let record = open_eager(&scratch.file());
        model.extend(on_disk.iter().map(|one| (one.seq, one.clone())));
        record.settle(on_disk, 1);
        record.close();
        let record = open_lazy(&scratch.file());
        model.extend(in_memory.iter().map(|one| (one.seq, one.clone())));
        record.settle(in_memory, 2);
        for filter in &filters {
            check(&record, &model, filter, page);
        }
        record.close();
        for filter in &filters {
            check(&record, &model, filter, page);
        }
    }
}
