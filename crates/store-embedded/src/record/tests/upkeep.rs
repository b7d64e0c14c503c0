//! What runs out, and idempotency keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Nanos, Wall};
use outflow_ports::receipts::{ReceiptFilter, Receipts};
use rusqlite::{Connection, ffi};

use super::{Scratch, ago, eventually, open, open_lazy, receipt};
use crate::boot::{BootClock, SystemBoot};
use crate::record::applier::Applier;
use crate::record::retention::Sweep;
use crate::record::waiting::{Job, Waiting};
use crate::record::{Record, RecordSettings, keys, schema};

const DAY: u64 = 86_400;

/// A clock that a test moves on.
#[derive(Debug, Default)]
struct SettableClock(AtomicU64);

impl SettableClock {
    fn pass(&self, span: Nanos) {
        self.0.fetch_add(span.0, Ordering::SeqCst);
    }
}

impl BootClock for SettableClock {
    fn id(&self) -> u64 {
        1
    }

    fn time(&self) -> Nanos {
        Nanos(self.0.load(Ordering::SeqCst))
    }

    fn wall(&self) -> Wall {
        SystemBoot.wall()
    }

    fn mono(&self) -> Mono {
        Mono(self.time().0)
    }
}

#[test]
fn what_has_run_out_is_deleted_and_nothing_else() {
    let scratch = Scratch::new();
    let record = open_lazy(&scratch.file());
    // Accepted and settled so many days ago.
    let cases = [
        (State::Delivered, 40, 31, false),
        (State::Delivered, 40, 29, true),
        (State::Bounced, 31, 31, false),
        (State::Dead, 20, 15, false),
        (State::Dead, 20, 13, true),
        (State::Delivered, 20, 20, true),
        (State::Delivered, 0, 0, true),
    ];
    let receipts = (0..)
        .zip(cases)
        .map(|(seq, (state, accepted, settled, _))| {
            let mut one = receipt(seq, state);
            one.accepted_at = ago(accepted * DAY + 60);
            one.settled_at = ago(settled * DAY);
            one
        });
    record.settle(receipts.collect(), 1);
    record.close();
    drop(record);

    let record = open(&scratch.file());
    let all = ReceiptFilter::default();
    eventually("retention", || record.count(&all).unwrap() <= 4);
    let left = Receipts::list(&record, &all, None, 99).unwrap();
    let left: Vec<u64> = left.iter().rev().map(|one| one.seq.0).collect();
    let kept = (0..).zip(cases).filter(|(_, case)| case.3);
    assert_eq!(left, kept.map(|(seq, _)| seq).collect::<Vec<u64>>());
}

#[test]
fn a_walk_is_sliced_and_not_ended_by_one_wrong_clock() {
    let scratch = Scratch::new();
    let keeps_all = RecordSettings {
        receipts_for: Nanos::MAX,
        ..RecordSettings::default()
    };
    let record = Record::open(&scratch.file(), keeps_all).unwrap();
    let receipts = (0..25_000).map(|seq| {
        let mut one = receipt(seq, State::Delivered);
        one.settled_at = ago(31 * DAY);
        // One message was accepted by a clock that was years ahead.
        one.accepted_at = if seq == 5 {
            Wall(i64::MAX / 2)
        } else {
            ago(32 * DAY)
        };
        one.events.clear();
        one
    });
    let mut connection = schema::writer(&scratch.file()).unwrap();
    let mut sweep = Sweep::new(SystemBoot.mono());
    let (settings, all) = (RecordSettings::default(), ReceiptFilter::default());
    record.settle(receipts.collect(), 1);
    record.close();
    let mut left = vec![record.count(&all).unwrap()];
    while left.last() != Some(&0) {
        let wall = SystemBoot.wall();
        sweep.slice(&mut connection, &settings, wall).unwrap();
        left.push(record.count(&all).unwrap());
    }
    assert_eq!(left, [25_000, 15_000, 5_000, 0]);
}

#[test]
fn keys_are_found_until_they_are_forgotten() {
    let scratch = Scratch::new();
    let record = open_lazy(&scratch.file());
    assert_eq!(record.find_key(1), None);
    let (accepted, soon) = (ago(90), Wall(ago(0).0 + 3_600_000_000_000));
    record.remember_keys(vec![
        (1, Seq(10), accepted, soon),
        (u64::MAX, Seq(11), accepted, soon),
        (3, Seq(12), accepted, ago(1)),
    ]);
    record.remember_keys(vec![(1, Seq(20), accepted, soon)]);
    let found = |record: &Record| {
        let seqs = [1, u64::MAX, 3, 4].map(|hash| record.find_key(hash));
        assert_eq!(
            seqs,
            [
                Some((Seq(20), accepted)),
                Some((Seq(11), accepted)),
                None,
                None
            ]
        );
    };
    found(&record);
    record.close();
    found(&record);
    drop(record);
    let record = open(&scratch.file());
    found(&record);
    let connection = schema::reader(&scratch.file()).unwrap();
    let rows = || -> i64 {
        let sql = "SELECT count(*) FROM idempotency_keys";
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    eventually("an old key is deleted", || rows() == 2);
    assert!(keys::any(&connection).unwrap());
    found(&record);
}

/// Bytes of pages that a connection holds in memory.
#[expect(unsafe_code, reason = "nothing else asks SQLite for it")]
fn pages_held(connection: &Connection) -> i32 {
    let (mut held, mut most) = (0, 0);
    // SAFETY: the handle is that of an open connection which nobody else uses,
    // and both numbers outlive the call.
    let code = unsafe {
        ffi::sqlite3_db_status(
            connection.handle(),
            ffi::SQLITE_DBSTATUS_CACHE_USED,
            &mut held,
            &mut most,
            0,
        )
    };
    assert_eq!(code, ffi::SQLITE_OK);
    held
}

#[test]
fn pages_of_a_crowd_of_receipts_are_given_back() {
    let scratch = Scratch::new();
    drop(open(&scratch.file()));
    let clock = Arc::new(SettableClock::default());
    let waiting = Arc::new(Waiting::new(0, clock.clone()));
    let mut applier = Applier::new(
        &scratch.file(),
        RecordSettings::default(),
        clock.clone(),
        schema::writer(&scratch.file()).unwrap(),
        Arc::clone(&waiting),
        Arc::default(),
    );
    let receipts = (1..=5_000).map(|seq| Arc::new(receipt(seq, State::Delivered)));
    waiting.add(Job::Receipts(receipts.collect(), Some(9)), 1);
    // The batch waits for company.
    clock.pass(Nanos::from_secs(2));
    applier.step();
    let held = |applier: &Applier| pages_held(applier.connection.as_ref().unwrap());
    let full = held(&applier);
    clock.pass(Nanos::from_secs(1));
    applier.step();
    assert!(held(&applier) > full / 2, "more may come");
    // A walk over what may have run out reads them all once more.
    clock.pass(Nanos::from_secs(60));
    applier.step();
    clock.pass(Nanos::from_secs(10));
    applier.step();
    assert!(held(&applier) < full / 5, "{} of {full}", held(&applier));
}
