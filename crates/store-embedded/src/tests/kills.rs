//! A process is killed, another one goes on, and then the power goes: what the
//! first had in the machine's memory only must not take along what the second
//! has acknowledged.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::conformance::store::Harness;
use outflow_ports::receipts::Receipts;

use super::crashes::{Story, begin, check, tell};
use super::driver::{Driver, Said, key_of, message};
use super::harness::{Rig, small};
use super::scratch::Scratch;
use crate::clerk::{Clerk, Papers};
use crate::disk::Disk;
use crate::index::Finished;
use crate::journal::files::Files;
use crate::journal::list::{Contents, SegmentList};
use crate::journal::place::Place;
use crate::journal::segment::Kind;
use crate::library::Library;
use crate::record::{Record, RecordSettings};

const FLOW: FlowId = FlowId(0);

fn kill_and_go_on(driver: &mut Driver, story: &mut Story) {
    driver.rig.kill();
    driver.rig.open().unwrap();
    driver.recover();
    driver.open(FLOW);
    for no in 0..3_u8 {
        let body: Arc<[u8]> = Arc::from([no; 200]);
        let Said::Given(given) = driver.accept(vec![message(FLOW, 500, &body)]) else {
            panic!("a sound disk takes messages");
        };
        story.accepted.extend(given.iter().map(|it| it.seq));
    }
}

#[test]
fn a_power_loss_after_a_kill_at_every_write() {
    let mut driver = begin(0);
    let mood = Arc::clone(&driver.rig.disk.mood);
    mood.operations.store(0, SeqCst);
    tell(&mut driver, &mut Story::default());
    let operations = mood.operations.load(SeqCst);
    drop(driver);
    for no in 1..=operations {
        // The first segments have no spares beside them.
        let tries = if no <= 20 { 6 } else { 1 };
        for seed in 0..tries {
            let mut driver = begin(no * 100 + seed);
            let mood = Arc::clone(&driver.rig.disk.mood);
            mood.operations.store(0, SeqCst);
            mood.dies_at.store(no, SeqCst);
            let mut story = Story::default();
            tell(&mut driver, &mut story);
            kill_and_go_on(&mut driver, &mut story);
            driver.restart();
            check(&mut driver, &story, no);
        }
    }
}

/// The first start of all is killed at each of its operations, when no spare was
/// made yet: what the next process acknowledges does not hang on names that the
/// first one has not synced.
#[test]
fn a_first_start_that_is_killed_takes_nothing_along() {
    for no in 1..=24 {
        for seed in 0..6 {
            let mut rig = Rig::on_memory(no * 100 + seed);
            rig.forget_all();
            let mood = Arc::clone(&rig.disk.mood);
            mood.operations.store(0, SeqCst);
            mood.dies_at.store(no, SeqCst);
            // Whether it comes to an end says nothing.
            let _ = rig.open();
            rig.kill();
            rig.open().unwrap();
            let mut driver = Driver::new(rig);
            driver.open(FLOW);
            let mut story = Story::default();
            let body: Arc<[u8]> = Arc::from([7; 200]);
            let Said::Given(given) = driver.accept(vec![message(FLOW, 1, &body)]) else {
                panic!("a sound disk takes messages");
            };
            story.accepted.extend(given.iter().map(|it| it.seq));
            driver.restart();
            check(&mut driver, &story, no);
        }
    }
}

/// After a failed sync the system counts what was not written as written: a
/// second sync succeeds, and the disk still does not have it.
#[test]
fn what_a_failed_sync_left_in_memory_is_written_again() {
    for seed in 0..20 {
        let mut driver = Driver::new(Rig::on_memory(seed));
        let memory = driver.rig.memory.clone().unwrap();
        driver.open(FLOW);
        let body: Arc<[u8]> = Arc::from([7; 2_000]);
        let mut story = Story::default();
        let Said::Given(given) = driver.accept(vec![message(FLOW, 1, &body)]) else {
            panic!("a sound disk takes messages");
        };
        story.accepted.extend(given.iter().map(|it| it.seq));
        memory.fail_syncs(true);
        let said = driver.accept(vec![message(FLOW, 2, &body)]);
        assert_eq!(said, Said::Failed);
        driver.rig.kill();
        memory.fail_syncs(false);
        kill_and_go_on(&mut driver, &mut story);
        let found = driver.rig.store().len();
        driver.restart();
        check(&mut driver, &story, seed);
        assert_eq!(driver.rig.store().len(), found, "what was found once stays");
    }
}

#[test]
fn a_segment_is_recycled_though_names_could_not_be_synced() {
    let rig = Rig::on_memory(1);
    let settings = small(&rig.clock);
    for kind in [Kind::Envelope, Kind::Body] {
        let disk: Arc<dyn Disk> = Arc::new(rig.disk.clone());
        let list = SegmentList::begin(Arc::clone(&disk), Contents::default()).unwrap();
        let files = Files::new(
            disk,
            Arc::default(),
            Arc::new(list),
            1,
            2,
            Arc::clone(&settings.boot),
            [4_096, 4_096],
        );
        let active = files.begin(kind, 99, 0, 10).unwrap();
        rig.disk.mood.names_failing.store(1, SeqCst);
        assert!(files.recycle(kind, 99, &active.file).is_err());
        files.recycle(kind, 99, &active.file).unwrap();
        assert!(files.begin(kind, 100, 0, 10).is_ok());
    }
}

fn complaint() -> LastError {
    LastError {
        code: None,
        enhanced: None,
        class: ReplyClass::Rate,
        rule: Name::from("rule"),
        text: "they complain".into(),
    }
}

/// When the record says that it covers the journal, it has the feedback too:
/// the journal will not be asked for it again.
#[test]
fn feedback_is_written_before_the_record_covers_it() {
    let scratch = Scratch::new();
    let path = scratch.path().join("record.sqlite");
    let ages = Nanos::from_secs(200 * 365 * 86_400);
    let settings = RecordSettings {
        batch_time: Nanos::from_millis(1),
        batch_rows: 10,
        receipts_for: ages,
        ..RecordSettings::default()
    };
    let record = Record::open(&path, settings).unwrap();
    let library = Arc::new(Library::default());
    let (mut clerk, desk) = Clerk::new(record.clone(), library, settings.receipts);
    clerk.start(desk).unwrap();
    let at = Wall(1_767_225_600_000_000_000);
    let nobody = (2..500).map(|seq| (Seq(seq), at, complaint()));
    clerk.hand_over(Papers {
        finished: vec![Finished {
            seq: Seq(1),
            state: State::Delivered,
            at,
            key: Arc::new(key_of(FLOW)),
            root: Place::NONE,
            latest: Place::NONE,
            end: Place::NONE,
            attempts: 1,
        }],
        feedback: nobody.chain([(Seq(1), at, complaint())]).collect(),
        through: 1_000,
    });
    assert!(record.wait_applied(1_000, std::time::Duration::from_secs(60)));
    // As if the process had died here: what waits is not written.
    let copy = scratch.path().join("copy.sqlite");
    let left = rusqlite::Connection::open(&path).unwrap();
    left.execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
        .unwrap();
    let died = Record::open(&copy, settings).unwrap();
    assert_eq!(died.applied(), 1_000);
    let receipt = died.get(Seq(1)).unwrap().unwrap();
    let said = receipt.events.iter().filter(|it| it.what == "feedback");
    assert_eq!(said.count(), 1);
    drop(clerk);
}
