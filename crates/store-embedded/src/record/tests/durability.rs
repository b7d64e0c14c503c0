//! What is left after a crash, and what happens while the disk refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outflow_core::message::{Seq, State};
use outflow_core::time::{Nanos, Wall};
use outflow_ports::receipts::{ReceiptFilter, Receipts};
use rusqlite::Connection;

use super::{LONG, Scratch, ago, open, open_eager, open_lazy, receipt};
use crate::boot::SystemBoot;
use crate::record::applier::Applier;
use crate::record::waiting::{Job, Next, Waiting};
use crate::record::{Record, RecordSettings, schema};

#[test]
fn after_a_crash_rows_and_position_agree() {
    let scratch = Scratch::new();
    let settings = RecordSettings {
        batch_time: Nanos::ZERO,
        batch_rows: 7,
        ..RecordSettings::default()
    };
    let record = Record::open(&scratch.file(), settings).unwrap();
    for seq in 1..=1_000 {
        record.settle(vec![receipt(seq, State::Delivered)], seq);
    }
    assert!(record.wait_applied(20, LONG));
    drop(record);

    let record = open(&scratch.file());
    let applied = record.applied();
    assert!(applied >= 20);
    assert_eq!(record.count(&ReceiptFilter::default()).unwrap(), applied);
    let newest = Receipts::list(&record, &ReceiptFilter::default(), None, 1).unwrap();
    assert_eq!(newest[0].seq, Seq(applied));

    // The journal hands over again what it is not sure of.
    let again = (applied - 10..=1_000).map(|seq| receipt(seq, State::Delivered));
    record.settle(again.collect(), 1_000);
    record.close();
    assert_eq!(record.count(&ReceiptFilter::default()).unwrap(), 1_000);
    assert_eq!(open(&scratch.file()).applied(), 1_000);
}

#[test]
fn what_somebody_waits_for_is_written_at_once() {
    let scratch = Scratch::new();
    let record = open_lazy(&scratch.file());
    // Nothing waits: what comes later is in no hurry.
    record.hasten();
    record.settle(vec![receipt(1, State::Delivered)], 30);
    assert_eq!(record.applied(), 0);
    record.hasten();
    assert!(record.wait_applied(30, LONG));
    record.settle(vec![receipt(2, State::Delivered)], 40);
    assert_eq!(record.applied(), 30);
}

#[test]
fn a_position_never_goes_back() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    record.settle(Vec::new(), 50);
    record.settle(Vec::new(), 40);
    record.close();
    assert_eq!(record.applied(), 50);
    assert_eq!(open(&scratch.file()).applied(), 50);
}

#[test]
fn while_the_disk_refuses_nothing_is_lost_and_order_is_kept() {
    let scratch = Scratch::new();
    let record = open_eager(&scratch.file());
    record.settle(vec![receipt(1, State::Delivered)], 1);
    assert!(record.wait_applied(1, LONG));

    let other = Connection::open(scratch.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    record.settle(vec![receipt(2, State::Dead)], 2);
    let accepted_at = ago(5);
    record.remember_keys(vec![(u64::MAX, Seq(2), accepted_at, Wall::NEVER)]);
    let is_failing = |_, error: Option<&str>| error.is_some();
    assert!(record.shared.waiting.wait_until(LONG, is_failing));
    assert!(!record.healthy());
    assert!(record.last_error().unwrap().contains("locked"));

    record.settle(
        vec![receipt(2, State::Cancelled), receipt(3, State::Bounced)],
        3,
    );
    assert_eq!((record.applied(), record.backlog()), (1, 3));
    let state = |record: &Record, seq| Receipts::get(record, Seq(seq)).unwrap().unwrap().state;
    assert_eq!(state(&record, 2), State::Cancelled);
    assert_eq!(record.find_key(u64::MAX), Some((Seq(2), accepted_at)));

    other.execute_batch("ROLLBACK").unwrap();
    assert!(record.wait_applied(3, LONG));
    assert_eq!((record.backlog(), record.healthy()), (0, true));
    assert_eq!(state(&record, 2), State::Cancelled);
    assert_eq!(state(&record, 3), State::Bounced);
}

#[test]
fn a_full_disk_leaves_no_half_batch() {
    let scratch = Scratch::new();
    drop(open(&scratch.file()));
    let waiting = Arc::new(Waiting::new(0, Arc::new(SystemBoot)));
    let connection = schema::writer(&scratch.file()).unwrap();
    connection
        .pragma_update(None, "max_page_count", 40)
        .unwrap();
    let mut applier = Applier::new(
        &scratch.file(),
        RecordSettings::default(),
        Arc::new(SystemBoot),
        connection,
        Arc::clone(&waiting),
        Arc::default(),
    );
    let receipts = (1..=2_000).map(|seq| Arc::new(receipt(seq, State::Bounced)));
    waiting.add(Job::Receipts(receipts.collect(), Some(9)), 1);
    let Next::Apply(batch) = waiting.next(1, Nanos::ZERO) else {
        panic!("a batch is ready");
    };
    let refused = applier.apply(&batch).unwrap_err().to_string();
    assert!(refused.contains("full"), "{refused}");
    let record = open(&scratch.file());
    let rows = || {
        (
            record.count(&ReceiptFilter::default()).unwrap(),
            open(&scratch.file()).applied(),
        )
    };
    assert_eq!(rows(), (0, 0));
    // There is room again.
    let connection = applier.connection.as_ref().unwrap();
    connection
        .pragma_update(None, "max_page_count", 1_000_000)
        .unwrap();
    applier.apply(&batch).unwrap();
    assert_eq!(rows(), (2_000, 9));
}

#[test]
fn closing_gives_up_on_a_disk_that_refuses() {
    let scratch = Scratch::new();
    let record = open_lazy(&scratch.file());
    let other = Connection::open(scratch.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    record.settle(vec![receipt(1, State::Dead)], 9);
    record.close();
    assert_eq!(
        (record.applied(), record.backlog(), record.healthy()),
        (0, 1, false)
    );
    drop(other);
    drop(record);
    assert_eq!(open(&scratch.file()).applied(), 0);
}

#[test]
fn questions_are_answered_while_another_writes() {
    let scratch = Scratch::new();
    let record = open_eager(&scratch.file());
    record.settle(vec![receipt(1, State::Dead)], 1);
    assert!(record.wait_applied(1, LONG));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seq in 2..2_000 {
                record.settle(vec![receipt(seq, State::Dead)], seq);
            }
            assert!(record.wait_applied(1_999, LONG));
            is_over.store(true, Ordering::Release);
        });
        let mut last = 0;
        while !is_over.load(Ordering::Acquire) {
            // What moves from memory to the disk is neither missed nor twice.
            let listed = Receipts::list(&record, &ReceiptFilter::default(), None, 5_000).unwrap();
            let newest = listed[0].seq.0;
            assert_eq!(listed.len() as u64, newest);
            let count = record.count(&ReceiptFilter::default()).unwrap();
            assert!(count >= newest && newest >= last);
            last = newest;
        }
    });
    assert_eq!(record.count(&ReceiptFilter::default()).unwrap(), 1_999);
}
