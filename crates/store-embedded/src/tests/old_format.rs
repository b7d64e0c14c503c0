//! Stores of earlier formats are opened. To add one: run `write_a_store` by
//! hand with OUTFLOW_FIXTURE set to a new directory under `fixtures`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outflow_core::engine::action::Record;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::{Nanos, Wall};
use outflow_ports::conformance::store::Harness;
use outflow_ports::store::{NewMessage, Store};

use super::driver::{Driver, Said, key_of, message, settlement};
use super::harness::Rig;
use crate::disk::{Disk, read_range};
use crate::journal::codec::Out;
use crate::journal::entry::{DEFERRAL, Entry, Tried};
use crate::journal::list::COPIES;
use crate::journal::segment::{FORMAT, HEADER, Header, Kind};

const FLOW: FlowId = FlowId(0);

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

#[test]
#[ignore = "writes a fixture"]
fn write_a_store() {
    let to = PathBuf::from(std::env::var("OUTFLOW_FIXTURE").unwrap());
    let mut rig = Rig::on_memory(0);
    rig.settings.envelope_segment_bytes = 4_096;
    rig.settings.body_segment_bytes = 4_096;
    rig.crash();
    let mut driver = Driver::new(rig);
    driver.open(FLOW);
    let body: Arc<[u8]> = Arc::from(*b"a body");
    let messages = (1..=4).map(|mark| NewMessage {
        idempotency_key: (mark == 2).then(|| Arc::from("key")),
        ..message(FLOW, mark, &body)
    });
    driver.accept(messages.collect());
    driver.page(FLOW, 2);
    driver.commit(settlement(FLOW, Seq(1), State::Delivered));
    driver.commit(Record::Deferral {
        flow: FLOW,
        seq: Seq(2),
        until: Wall(1_900_000_000_000_000_000),
        attempt: None,
    });
    driver.rig.store = None;
    let memory = driver.rig.memory.clone().unwrap();
    std::fs::create_dir_all(&to).unwrap();
    for name in memory.list().unwrap() {
        if name.ends_with(".segment") {
            std::fs::write(to.join(&name), memory.bytes(&name)).unwrap();
        }
    }
}

/// Lost answers are counted in the byte that said only whether a message is a
/// dead letter.
#[test]
fn attempts_without_a_count_of_lost_answers_are_read() {
    for (byte, dead, uncertain) in [(0, false, 0), (1, true, 0), (6, false, 3), (255, true, 127)] {
        let mut payload = Vec::new();
        let mut out = Out(&mut payload);
        out.u64(7).i64(1).i64(2).u64(0).u8(1);
        out.u16(4).i64(5).u64(6).u8(byte);
        let tried = Tried {
            attempts: 4,
            uncertain,
            first_attempt_at: Wall(5),
            last_delay: Nanos(6),
            dead,
        };
        let Some(Entry::Deferral { tried: read, .. }) = Entry::read(DEFERRAL, &payload) else {
            panic!("{byte} is no deferral");
        };
        assert_eq!(read, Some(tried));
        let mut written = Vec::new();
        tried.write(&mut Out(&mut written));
        assert_eq!(written.last(), Some(&byte));
    }
}

#[test]
fn format_1_is_read() {
    let mut rig = Rig::on_directory();
    rig.die();
    let journal = rig.scratch.path().join("journal");
    for name in COPIES {
        std::fs::remove_file(journal.join(name)).unwrap();
    }
    for file in std::fs::read_dir(fixtures().join("format-1")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), journal.join(file.file_name())).unwrap();
    }
    let opened = rig.open().unwrap();
    assert_eq!((opened.messages, opened.flows, opened.bytes_cut), (3, 1, 0));
    let mut driver = Driver::new(rig);
    let recovered = driver.recover();
    assert!(!recovered.fresh);
    assert_eq!(recovered.flows, [(FLOW, Arc::new(key_of(FLOW)), 2)]);
    let store = driver.rig.store();
    let deferred = store.find(Seq(2)).unwrap();
    assert_eq!(deferred.due_at, Some(Wall(1_900_000_000_000_000_000)));
    let parcel = store.parcel(Seq(3)).unwrap().read().unwrap();
    assert_eq!(
        (&*parcel.envelope, &*parcel.body),
        (&b"envelope 3"[..], &b"a body"[..])
    );
    driver.pass(Nanos::from_secs(1));
    // What is written from now on belongs to a list, and who knows of none must
    // not go on with it.
    driver.open(FlowId(1));
    let other: Arc<[u8]> = Arc::from(*b"other");
    driver.accept(vec![message(FlowId(1), 8, &other)]);
    let newest = driver.rig.disk.open(&Kind::Envelope.name(2)).unwrap();
    let newest = Header::read(&read_range(&*newest, 0, HEADER).unwrap()).unwrap();
    assert_eq!(newest.format, FORMAT);
    let body: Arc<[u8]> = Arc::from([]);
    let again = driver.accept(vec![NewMessage {
        idempotency_key: Some(Arc::from("key")),
        ..message(FLOW, 9, &body)
    }]);
    match again {
        Said::Given(given) => assert_eq!((given[0].seq, given[0].known), (Seq(2), true)),
        other => panic!("{other:?}"),
    }
}
