//! Single harms to a store that was stopped in order, each of which could pass
//! for nothing: the check and the start name the file that is at fault.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outflow_core::handle::FlowId;
use outflow_core::time::Nanos;
use outflow_ports::conformance::store::Harness;

use super::driver::{Driver, Said, message};
use super::harness::Rig;
use super::scratch::Scratch;
use crate::check::check;
use crate::journal::segment::{Kind, read_segment};

const FLOW: FlowId = FlowId(0);
const MESSAGES: u64 = 150;

/// A store with several segments of each kind that was stopped in order; all
/// its messages live.
fn stopped() -> Scratch {
    let mut driver = Driver::new(Rig::paired(Scratch::in_memory()).unwrap());
    driver.open(FLOW);
    for no in 0..MESSAGES {
        let body: Arc<[u8]> = Arc::from(vec![no as u8; 1_000]);
        let said = driver.accept(vec![message(FLOW, no, &body)]);
        assert!(matches!(said, Said::Given(_)), "{said:?}");
        driver.pass(Nanos::from_millis(100));
        driver.turn();
    }
    assert_eq!(driver.rig.store().len(), MESSAGES as usize);
    driver.rig.store = None;
    driver.rig.scratch.copy()
}

/// The segments of a kind, the oldest first.
fn segments(store: &Scratch, kind: Kind) -> Vec<PathBuf> {
    let all = fs::read_dir(store.path().join("journal")).unwrap();
    let mut found: Vec<(u32, PathBuf)> = all
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let (of, number) = Kind::parse(path.file_name()?.to_str()?)?;
            (of == kind).then_some((number, path))
        })
        .collect();
    found.sort();
    assert!(found.len() > 1, "{found:?}");
    found.into_iter().map(|(_, path)| path).collect()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x55;
    fs::write(path, bytes).unwrap();
}

/// Both name it, and neither goes on as if nothing had happened.
fn is_named(store: Scratch, name: &str) {
    let report = check(store.path()).unwrap();
    assert!(!report.is_sound(), "{name}: the check finds nothing");
    let problems = report.problems.join("; ");
    assert!(problems.contains(name), "{name}: {problems}");
    match Rig::paired(store) {
        Ok(mut rig) => panic!("{name}: it starts with {} messages", rig.store().len()),
        Err(error) => {
            assert!(error.is_damage(), "{name}: {error}");
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_store_that_was_not_harmed_is_sound() {
    let store = stopped();
    assert!(check(store.path()).unwrap().is_sound());
    let mut rig = Rig::paired(store).unwrap();
    assert_eq!(rig.store().len(), MESSAGES as usize);
}

/// Nothing behind it vouches for it, so it could pass for a torn end.
#[test]
fn a_byte_of_the_last_commit_is_told() {
    let store = stopped();
    let newest = segments(&store, Kind::Envelope).pop().unwrap();
    let (_, report) = read_segment(&fs::read(&newest).unwrap()).unwrap();
    flip(&newest, report.end as usize - 20);
    is_named(store, &name_of(&newest));
}

#[test]
fn a_segment_that_is_gone_is_told() {
    let store = stopped();
    for kind in [Kind::Envelope, Kind::Body] {
        let all = segments(&store, kind);
        for gone in [all.first().unwrap(), all.last().unwrap()] {
            let store = store.copy();
            let name = name_of(gone);
            fs::remove_file(store.path().join("journal").join(&name)).unwrap();
            is_named(store, &name);
        }
    }
}

#[test]
fn a_body_segment_whose_header_does_not_hold_is_told() {
    let store = stopped();
    let all = segments(&store, Kind::Body);
    for harmed in [all.first().unwrap(), all.last().unwrap()] {
        for at in [0, 9, 20] {
            let store = store.copy();
            let name = name_of(harmed);
            flip(&store.path().join("journal").join(&name), at);
            is_named(store, &name);
        }
    }
}

#[test]
fn a_record_that_is_gone_is_told() {
    let store = stopped();
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(store.path().join(format!("record.sqlite{end}")));
    }
    is_named(store, "record.sqlite");
}

#[test]
fn a_journal_that_is_gone_is_told() {
    let store = stopped();
    fs::remove_dir_all(store.path().join("journal")).unwrap();
    is_named(store, "journal");
}
