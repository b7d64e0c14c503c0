//! Damage is named and never skipped; a torn end is cut; a directory has one
//! owner; any bytes can be read.

use std::sync::Arc;

use outflow_core::handle::FlowId;
use outflow_core::message::State;
use outflow_ports::conformance::store::Harness;
use outflow_ports::store::Store;
use proptest::prelude::*;

use super::driver::{Driver, Said, message, settlement};
use super::harness::{Rig, small};
use super::scratch::Scratch;
use crate::check::{check, check_journal};
use crate::journal::segment::{HEADER, Kind, read_segment};
use crate::lock::LockError;
use crate::{EmbeddedStore, JournalError, OpenError};

const FLOW: FlowId = FlowId(0);

fn filled() -> Driver {
    let mut driver = Driver::new(Rig::on_memory(1));
    driver.open(FLOW);
    let body: Arc<[u8]> = Arc::from([1; 100]);
    for mark in 0..5 {
        assert_ne!(
            driver.accept(vec![message(FLOW, mark, &body)]),
            Said::Failed
        );
    }
    driver.rig.die();
    driver
}

#[test]
fn damage_is_named() {
    let mut driver = filled();
    let memory = driver.rig.memory.clone().unwrap();
    let name = Kind::Envelope.name(1);
    let (_, report) = read_segment(&memory.bytes(&name)).unwrap();
    // Somewhere before the last commit, which vouches for it.
    let at = (report.end / 2) as usize;
    assert!(check_journal(&memory).unwrap().is_sound());
    memory.damage(&name, at);
    match driver.rig.open() {
        Err(OpenError::Journal(JournalError::Damaged { name: of, offset })) => {
            assert_eq!(of, name);
            assert!(offset <= at as u64 && at as u64 - offset < 200);
        }
        other => panic!("{other:?}"),
    }
    let report = check_journal(&memory).unwrap();
    assert!(report.problems[0].contains(&name), "{report:?}");
}

#[test]
fn damaged_bodies_are_found() {
    let driver = filled();
    let memory = driver.rig.memory.clone().unwrap();
    memory.damage(&Kind::Body.name(1), HEADER as usize + 60);
    let report = check_journal(&memory).unwrap();
    assert_eq!(report.messages, 5);
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(report.problems[0].contains("message 1:"), "{report:?}");
}

#[test]
fn a_torn_end_is_cut() {
    let mut driver = filled();
    let memory = driver.rig.memory.clone().unwrap();
    let name = Kind::Envelope.name(1);
    let (_, report) = read_segment(&memory.bytes(&name)).unwrap();
    // In the last commit frame: nothing vouches for it.
    memory.damage(&name, report.end as usize - 20);
    let opened = driver.rig.open().unwrap();
    assert_eq!(opened.messages, 4, "the last commit counts for nothing");
    assert!(opened.bytes_cut > 0);
    driver.recover();
    driver.open(FLOW);
    let body: Arc<[u8]> = Arc::from([2; 100]);
    assert_ne!(driver.accept(vec![message(FLOW, 9, &body)]), Said::Failed);
    driver.rig.die();
    let opened = driver.rig.open().unwrap();
    assert_eq!((opened.messages, opened.bytes_cut), (5, 0));
}

#[test]
fn a_directory_has_one_owner() {
    let scratch = Scratch::new();
    let clock = Arc::default();
    let open = || EmbeddedStore::open(scratch.path(), small(&clock), Arc::new(|| {}));
    let first = open().unwrap();
    match open() {
        Err(OpenError::Lock(error @ LockError::InUse { .. })) => {
            let text = error.to_string();
            let id = std::process::id().to_string();
            assert!(text.contains("in use") && text.contains(&id), "{text}");
        }
        _ => panic!("two stores have one directory"),
    }
    assert!(
        check(scratch.path()).is_err(),
        "nor is it checked meanwhile"
    );
    drop(first);
    assert!(check(scratch.path()).unwrap().is_sound());
    assert!(open().is_ok(), "the lock goes with the store");
}

#[test]
fn settled_stays_settled_over_many_restarts() {
    let mut driver = Driver::new(Rig::on_directory());
    for round in 0..10 {
        driver.open(FLOW);
        let body: Arc<[u8]> = Arc::from([round; 10]);
        driver.accept(vec![message(FLOW, u64::from(round), &body); 2]);
        let head = driver.page(FLOW, 1)[0];
        driver.commit(settlement(FLOW, head.seq, State::Delivered));
        driver.restart();
        let mut live = 0;
        driver
            .rig
            .store()
            .scan(outflow_core::message::Seq(0), 100, &mut |_| live += 1);
        assert_eq!(live, u32::from(round) + 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..4_096)) {
        let _ = read_segment(&bytes);
    }

    #[test]
    fn any_change_of_a_segment_can_be_read(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let driver = filled();
        let memory = driver.rig.memory.clone().unwrap();
        let mut bytes = memory.bytes(&Kind::Envelope.name(1));
        bytes.truncate(2_048);
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        let _ = read_segment(&bytes);
    }
}
