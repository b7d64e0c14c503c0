//! Days pass: what is dead leaves the disk, what lives stays readable, and a
//! store that has nothing to do rests.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use outflow_core::engine::action::Record;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::Nanos;
use outflow_ports::conformance::store::Harness;
use outflow_ports::store::{BatchId, NewMessage, Store, StoreDone, StoreWork};

use super::driver::{Driver, Said, message, settlement};
use super::harness::Rig;
use super::space::until;
use crate::disk::Disk;
use crate::journal::list::COPIES;
use crate::journal::segment::{Header, Kind};
use crate::settings::Settings;

const FLOW: FlowId = FlowId(0);
const HOUR: Nanos = Nanos::from_secs(3_600);
const DEAD: &[u8] = b"this body is not needed any more";

fn begin() -> Driver {
    begin_with(|_| ())
}

fn begin_with(change: impl FnOnce(&mut Settings)) -> Driver {
    let mut rig = Rig::on_memory(3);
    rig.settings.envelope_segment_bytes = 4_096;
    rig.settings.slack_bytes = 4_096;
    rig.settings.reading_grace = Nanos::ZERO;
    rig.settings.record.batch_time = Nanos::from_millis(1);
    change(&mut rig.settings);
    rig.crash();
    let mut driver = Driver::new(rig);
    driver.open(FLOW);
    driver
}

fn accept(driver: &mut Driver, body: &[u8]) -> Seq {
    match driver.accept(vec![message(FLOW, 1, &Arc::from(body))]) {
        Said::Given(given) => given[0].seq,
        other => panic!("{other:?}"),
    }
}

fn deliver(driver: &mut Driver, seq: Seq) {
    let said = driver.commit(settlement(FLOW, seq, State::Delivered));
    assert_eq!(said, Said::Committed);
}

fn holds_dead(driver: &Driver) -> bool {
    driver.rig.memory.as_ref().unwrap().holds(DEAD)
}

fn body_of(driver: &mut Driver, seq: Seq) -> Vec<u8> {
    let parcel = driver.rig.store().parcel(seq).unwrap();
    parcel.read().unwrap().body.to_vec()
}

/// Turns every half hour.
fn pass_hours(driver: &mut Driver, hours: u64) {
    for _ in 0..2 * hours {
        driver.pass(Nanos(HOUR.0 / 2));
        driver.turn();
    }
}

/// Messages come and go until the first envelope segment does.
fn until_first_segment_is_gone(driver: &mut Driver) {
    let first = Kind::Envelope.name(1);
    until(driver, "the first segment is given up", |driver| {
        let seq = accept(driver, b"filler");
        deliver(driver, seq);
        !driver.rig.disk.list().unwrap().contains(&first)
    });
}

#[test]
fn a_body_that_is_written_while_its_segment_is_ended_stays() {
    for _ in 0..3 {
        let mut driver = begin();
        let dead = accept(&mut driver, DEAD);
        deliver(&mut driver, dead);
        driver.pass(Nanos::from_secs(1));
        driver.turn();
        driver.pass(Nanos(21 * HOUR.0));
        // The writer is at it while the store looks for what can go.
        let mood = Arc::clone(&driver.rig.disk.mood);
        let closed = mood.gate.lock().unwrap();
        let batch = BatchId(u64::MAX);
        let messages = vec![message(FLOW, 2, &Arc::from(*b"alive"))];
        driver.submit(StoreWork::Accept { batch, messages });
        driver.turn();
        drop(closed);
        let seq = driver.wait(|done| match done {
            StoreDone::Accepted { batch: of, given } if *of == batch => Some(given[0].seq),
            _ => None,
        });
        until(&mut driver, "the dead body leaves the disk", |driver| {
            !holds_dead(driver)
        });
        assert_eq!(body_of(&mut driver, seq), b"alive");
        driver.restart();
        assert_eq!(body_of(&mut driver, seq), b"alive");
    }
}

#[test]
fn dead_bodies_leave_the_disk_in_a_day_over_restarts() {
    let mut driver = begin();
    let dead = accept(&mut driver, DEAD);
    let alive = accept(&mut driver, b"alive");
    deliver(&mut driver, dead);
    until_first_segment_is_gone(&mut driver);
    assert!(holds_dead(&driver));
    for _ in 0..5 {
        pass_hours(&mut driver, 5);
        driver.restart();
    }
    until(&mut driver, "the dead body leaves the disk", |driver| {
        !holds_dead(driver)
    });
    assert_eq!(body_of(&mut driver, alive), b"alive");
    driver.restart();
    assert_eq!(body_of(&mut driver, alive), b"alive");
    // What was rewritten is not rewritten again for nothing.
    rests(&mut driver);
    let before = driver.rig.disk.mood.operations.load(SeqCst);
    pass_hours(&mut driver, 30);
    rests(&mut driver);
    let after = driver.rig.disk.mood.operations.load(SeqCst);
    assert_eq!(after, before, "nothing is left to be done");
}

/// After a restart nothing names the dead body any more, and all that is named
/// of its segment lives: it goes all the same.
#[test]
fn a_dead_body_that_nothing_names_leaves_the_disk() {
    let mut driver = begin_with(|settings| settings.body_segment_bytes = 4_096);
    let dead = accept(&mut driver, DEAD);
    let long = [1; 3_500];
    let alive = accept(&mut driver, &long);
    deliver(&mut driver, dead);
    let first = Kind::Envelope.name(1);
    until(&mut driver, "the first segment is given up", |driver| {
        // Too long for what is left of the first body segment.
        let seq = accept(driver, &[2; 600]);
        deliver(driver, seq);
        driver.pass(Nanos::from_millis(600));
        driver.turn();
        !driver.rig.disk.list().unwrap().contains(&first)
    });
    assert!(holds_dead(&driver));
    driver.restart();
    pass_hours(&mut driver, 60);
    until(&mut driver, "the dead body leaves the disk", |driver| {
        !holds_dead(driver)
    });
    assert_eq!(body_of(&mut driver, alive), long);
    driver.restart();
    assert_eq!(body_of(&mut driver, alive), long);
}

#[test]
fn a_rewrite_of_bodies_that_failed_succeeds_later() {
    let mut driver = begin();
    let mood = Arc::clone(&driver.rig.disk.mood);
    *mood.rename_ending.lock().unwrap() = ".rewrite";
    mood.renames_failing.store(3, SeqCst);
    let dead = accept(&mut driver, DEAD);
    let alive = accept(&mut driver, b"alive");
    deliver(&mut driver, dead);
    driver.pass(Nanos::from_secs(1));
    driver.turn();
    driver.pass(Nanos(21 * HOUR.0));
    until(&mut driver, "the rewrite fails", |_| {
        mood.renames_failing.load(SeqCst) == 2
    });
    until(&mut driver, "the dead body leaves the disk", |driver| {
        driver.pass(Nanos::from_secs(60));
        driver.turn();
        !holds_dead(driver)
    });
    let left = driver.rig.disk.list().unwrap();
    assert!(
        left.iter().all(|name| !name.ends_with(".rewrite")),
        "{left:?}"
    );
    assert_eq!(body_of(&mut driver, alive), b"alive");
}

fn keyed(no: u64) -> NewMessage {
    NewMessage {
        idempotency_key: Some(Arc::from(format!("key-{no}"))),
        ..message(FLOW, no, &Arc::from(*b"body"))
    }
}

fn rests(driver: &mut Driver) {
    let mood = Arc::clone(&driver.rig.disk.mood);
    let (mut before, mut quiet) = (0, 0);
    until(driver, "the journal rests", |driver| {
        driver.pass(Nanos::from_millis(600));
        driver.turn();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let now = mood.operations.load(SeqCst);
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
        quiet > 100
    });
}

#[test]
fn keys_of_settled_messages_let_the_journal_rest() {
    const KEYS: u64 = 3_000;
    let mut driver = begin();
    let mut first = Vec::new();
    for from in (0..KEYS).step_by(100) {
        let messages = (from..from + 100).map(keyed).collect();
        let Said::Given(given) = driver.accept(messages) else {
            panic!("messages are accepted");
        };
        for it in given {
            deliver(&mut driver, it.seq);
            first.push(it.seq);
        }
    }
    rests(&mut driver);
    let known = |driver: &mut Driver| {
        for no in [0, 1, KEYS / 2, KEYS - 1] {
            match driver.accept(vec![keyed(no)]) {
                Said::Given(given) => {
                    let is_it = (given[0].seq, given[0].known);
                    assert_eq!(is_it, (first[no as usize], true), "key {no}");
                }
                other => panic!("{other:?}"),
            }
        }
    };
    known(&mut driver);
    driver.restart();
    driver.open(FLOW);
    known(&mut driver);
    // New messages push out the oldest segments, with keys in them.
    for no in 0..200 {
        let seq = accept(&mut driver, &[no; 30]);
        deliver(&mut driver, seq);
        driver.pass(Nanos::from_millis(600));
        driver.turn();
    }
    rests(&mut driver);
    driver.restart();
    driver.open(FLOW);
    known(&mut driver);
    // They are forgotten in the end, and the room comes back.
    driver.pass(Nanos(25 * HOUR.0));
    let seq = accept(&mut driver, b"later");
    deliver(&mut driver, seq);
    rests(&mut driver);
    let left = driver.rig.disk.list().unwrap();
    let left = left
        .iter()
        .filter(|it| it.starts_with("envelope") && it.ends_with("segment"));
    assert!(left.count() <= 3, "segments of forgotten keys are gone");
}

/// So many keys that they fill more than one segment, written again in parts that
/// are smaller than a segment: none is written for ever behind the last one.
#[test]
fn keys_that_fill_several_segments_let_the_journal_rest() {
    const KEYS: u64 = 15_000;
    let mut driver = begin_with(|settings| {
        settings.envelope_segment_bytes = 160 << 10;
        settings.slack_bytes = 160 << 10;
        settings.body_segment_bytes = 1 << 20;
    });
    for from in (0..KEYS).step_by(500) {
        let said = driver.accept((from..from + 500).map(keyed).collect());
        assert!(matches!(said, Said::Given(_)), "{said:?}");
    }
    let (flow, through) = (FLOW, Seq(u64::MAX));
    let said = driver.commit(Record::Cancelled { flow, through });
    assert_eq!(said, Said::Committed);
    // A trickle goes on for a while.
    for no in 0..100 {
        let seq = accept(&mut driver, &[no; 30]);
        deliver(&mut driver, seq);
        driver.pass(Nanos::from_millis(600));
        driver.turn();
    }
    rests(&mut driver);
    driver.restart();
    driver.open(FLOW);
    let Said::Given(given) = driver.accept(vec![keyed(KEYS - 1)]) else {
        panic!("it is known");
    };
    assert!(given[0].known);
}

#[test]
fn numbers_of_segments_go_beyond_24_bits() {
    let mut driver = begin();
    driver.rig.die();
    let number = (1 << 24) - 2;
    for name in COPIES {
        driver.rig.disk.remove(name).unwrap();
    }
    for kind in [Kind::Envelope, Kind::Body] {
        for name in driver.rig.disk.list().unwrap() {
            if name.starts_with(&kind.name(1)[..4]) {
                driver.rig.disk.remove(&name).unwrap();
            }
        }
        let header = Header {
            format: 1,
            kind,
            number,
            epoch: 7,
            before_end: 0,
            key_seed: 5,
            since: driver.rig.now().wall,
        };
        let file = driver.rig.disk.create(&kind.name(number)).unwrap();
        file.write_at(&[0; 4_096], 0).unwrap();
        file.write_at(&header.to_bytes(), 0).unwrap();
        file.sync().unwrap();
    }
    driver.rig.disk.sync_names().unwrap();
    driver.rig.settings.body_segment_bytes = 4_096;
    driver.rig.open().unwrap();
    driver.recover();
    driver.open(FLOW);
    let mut living = Vec::new();
    for no in 0..60_u8 {
        let seq = accept(&mut driver, &[no; 400]);
        living.push((seq, no));
        let dead = accept(&mut driver, &[no; 300]);
        deliver(&mut driver, dead);
        driver.pass(Nanos::from_millis(600));
        driver.turn();
    }
    let names = driver.rig.disk.list().unwrap();
    for kind in [Kind::Envelope, Kind::Body] {
        let beyond =
            |name: &String| Kind::parse(name).is_some_and(|it| it.0 == kind && it.1 > 1 << 24);
        assert!(names.iter().any(beyond), "{names:?}");
    }
    for _ in 0..2 {
        for (seq, no) in &living {
            assert_eq!(body_of(&mut driver, *seq), [*no; 400]);
        }
        driver.restart();
        assert_eq!(driver.rig.store().len(), living.len());
    }
}
