//! Every file of a data directory in turn is deleted, cut, and has a byte
//! flipped, after a clean stop and after a kill: each time the start or the
//! check says what is lost, and a salvage brings back all that is whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outflow_core::entropy::Entropy;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::{Nanos, Wall};
use outflow_ports::conformance::store::Harness;
use outflow_ports::registry::{Audit, Change, Document, Kind as DocumentKind};
use outflow_ports::store::Store;

use super::driver::{Driver, Said, message, settlement};
use super::harness::Rig;
use super::scratch::Scratch;
use crate::check::check;
use crate::disk::Directory;
use crate::journal::list;
use crate::journal::segment::Kind;
use crate::record::store_and_position;
use crate::salvage::{Salvaged, salvage};

/// Flips of a byte for each file; `scripts/harm-every-file` asks for many.
const FLIPS: u64 = 4;
const MESSAGES: u64 = 150;

/// What a live message consists of, and in which segments.
struct Known {
    body: Vec<u8>,
    root: u32,
    in_body: u32,
}

/// What was acknowledged.
struct Told {
    live: BTreeMap<Seq, Known>,
    settled: Vec<Seq>,
    documents: Vec<Document>,
}

fn documents(rig: &mut Rig) -> Vec<Document> {
    let registry = rig.store.as_ref().unwrap().registry();
    let all = DocumentKind::ALL.into_iter();
    all.flat_map(|kind| registry.list(kind).unwrap_or_default())
        .collect()
}

fn set(rig: &mut Rig, kind: DocumentKind, id: &str, value: &str) {
    let registry = rig.store.as_ref().unwrap().registry();
    let change = Change {
        kind,
        id,
        value: Some(value),
        expected: None,
    };
    let audit = Audit {
        at: Wall(1),
        actor: "test",
        action: "set",
        target: id,
        detail: "{}",
    };
    registry.change(change, audit).unwrap();
}

/// A store that was used: copies of its directory after a kill and after a
/// clean stop.
fn stories() -> ([Scratch; 2], Told) {
    let mut driver = Driver::new(Rig::paired(Scratch::in_memory()).unwrap());
    for flow in 0..3 {
        driver.open(FlowId(flow));
    }
    for no in 0..4 {
        let (id, value) = (format!("a{no}"), format!("{{\"rate\":{no}}}"));
        set(&mut driver.rig, DocumentKind::Account, &id, &value);
    }
    let mut entropy = Entropy(7);
    let (mut bodies, mut settled) = (BTreeMap::new(), Vec::new());
    for no in 0..MESSAGES {
        let body: Vec<u8> = (0..entropy.between(20, 3_000))
            .map(|_| entropy.between(0, 255) as u8)
            .collect();
        let shared: Arc<[u8]> = Arc::from(body.as_slice());
        let flow = FlowId((no % 3) as u32);
        let Said::Given(given) = driver.accept(vec![message(flow, no, &shared)]) else {
            panic!("a sound disk takes messages");
        };
        let seq = given[0].seq;
        bodies.insert(seq, body);
        if no % 5 == 1 {
            driver.commit(settlement(flow, seq, State::Delivered));
            bodies.remove(&seq);
            settled.push(seq);
        }
        driver.pass(Nanos::from_millis(700));
        driver.turn();
    }
    set(
        &mut driver.rig,
        DocumentKind::Token,
        "t",
        "{\"hash\":\"00\"}",
    );
    let documents = documents(&mut driver.rig);
    let store = driver.rig.store();
    let live = bodies.into_iter().map(|(seq, body)| {
        let slot = store.index.slots.get(seq).unwrap();
        let (root, in_body) = (slot.root.segment(), slot.body.segment());
        let known = Known {
            body,
            root,
            in_body,
        };
        (seq, known)
    });
    let told = Told {
        live: live.collect(),
        settled,
        documents,
    };
    let killed = driver.rig.scratch.copy();
    driver.rig.store = None;
    let stopped = driver.rig.scratch.copy();
    ([stopped, killed], told)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for at in [dir.to_owned(), dir.join("journal")] {
        for entry in fs::read_dir(at).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            // Not the store's: a lock, what SQLite makes anew, spares.
            let counts = name != "lock" && !name.ends_with("-shm") && !name.ends_with(".spare");
            if counts && entry.file_type().unwrap().is_file() {
                let below = entry.path().strip_prefix(dir).unwrap().to_owned();
                all.push(below);
            }
        }
    }
    all.sort();
    all
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Delete,
    Cut(u64),
    Flip(u64),
}

fn harm(path: &Path, harm: Harm) {
    match harm {
        Harm::Delete => fs::remove_file(path).unwrap(),
        Harm::Cut(to) => {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_len(to).unwrap();
        }
        Harm::Flip(at) => {
            let mut bytes = fs::read(path).unwrap();
            bytes[at as usize] ^= 0x55;
            fs::write(path, bytes).unwrap();
        }
    }
}

/// What is not there any more of what was acknowledged, in a store that opens.
fn lost(scratch: Scratch, told: &Told) -> Result<(Vec<Seq>, bool, u64), String> {
    let mut rig = Rig::paired(scratch).map_err(|error| {
        assert!(error.is_damage(), "{error}");
        error.to_string()
    })?;
    let documents_hold = documents(&mut rig) == told.documents;
    let mut driver = Driver::new(rig);
    let store = driver.rig.store();
    let is_lost = |(seq, known): &(&Seq, &Known)| {
        let read = store.parcel(**seq).map(|parcel| parcel.read());
        !read.is_some_and(|read| read.is_ok_and(|parcel| *parcel.body == *known.body))
    };
    let lost = told.live.iter().filter(is_lost).map(|(seq, _)| *seq);
    let lost = lost.collect();
    let again = told
        .settled
        .iter()
        .filter(|seq| store.find(**seq).is_some());
    let again = again.count() as u64;
    Ok((lost, documents_hold, again))
}

/// The segment that a file is, if it is one.
fn segment(file: &Path) -> Option<(Kind, u32)> {
    Kind::parse(file.file_name()?.to_str()?)
}

fn check_salvaged(saved: &Salvaged, new: Scratch, told: &Told, file: &Path, case: &str) {
    let report = check(new.path()).unwrap();
    assert!(report.is_sound(), "{case}: {report:?}");
    // Else what happens next would not reach the record.
    let (_, applied) = store_and_position(&new.path().join("record.sqlite")).expect(case);
    let listed = list::load(&Directory::open(&new.path().join("journal")).unwrap());
    let clean = listed.contents.and_then(|it| it.clean).expect(case);
    assert!(applied <= clean.through, "{case}: {applied}, {clean:?}");
    let (lost, documents_hold, again) = lost(new, told).expect(case);
    let harmed = segment(file);
    for seq in &lost {
        let known = &told.live[seq];
        let in_it = harmed == Some((Kind::Envelope, known.root))
            || harmed == Some((Kind::Body, known.in_body));
        assert!(in_it, "{case}: {seq:?} was whole and is lost: {saved:?}");
    }
    let flips_lose = if case.contains("Flip") { 1 } else { usize::MAX };
    // A name of a flow takes along all that are of it: they are not sent.
    let nameless = saved.ended.len();
    assert!(lost.len() <= flips_lose.max(nameless), "{case}: {lost:?}");
    assert!(
        lost.is_empty() || !saved.lost.is_empty() || !saved.ended.is_empty(),
        "{case}"
    );
    let is_record = file.to_str().unwrap().starts_with("record.sqlite");
    assert!(
        documents_hold || is_record && !saved.lost.is_empty(),
        "{case}: {saved:?}"
    );
    assert!(
        again == 0 || saved.counts_lost,
        "{case}: {again} sent again"
    );
}

/// What was seen of all harms.
#[derive(Debug, Default)]
struct Seen {
    harms: u64,
    /// The check named damage.
    told: u64,
    /// The start refused to go on with what is left.
    refused: u64,
    /// Nothing that was acknowledged is missing from what the start found.
    whole: u64,
    /// A salvage brought everything back.
    saved_whole: u64,
}

/// One file is harmed in one way.
fn try_one(
    base: &Scratch,
    is_clean: bool,
    told: &Told,
    (file, how): (&Path, Harm),
    seen: &mut Seen,
) {
    let case = format!("clean {is_clean}, {}, {how:?}", file.display());
    let copy = base.copy();
    harm(&copy.path().join(file), how);
    let report = check(copy.path());
    let is_told = report.as_ref().is_ok_and(|report| !report.is_sound());
    let is_torn = report.as_ref().is_ok_and(|report| report.torn_bytes > 0);
    assert!(report.is_ok(), "{case}: {report:?}");
    let new = Scratch::in_memory();
    let saved = salvage(copy.path(), new.path()).expect(&case);
    check_salvaged(&saved, new, told, file, &case);
    seen.harms += 1;
    seen.told += u64::from(is_told);
    seen.saved_whole += u64::from(saved.lost.is_empty() && saved.ended.is_empty());
    match lost(copy, told) {
        Ok((lost, documents_hold, again)) => {
            // After a kill the last commit may be torn, and nobody was told of it.
            let may_be_torn = !is_clean && is_torn && lost.len() <= 1 && again <= 1;
            let is_whole = lost.is_empty() && documents_hold && again == 0;
            seen.whole += u64::from(is_whole);
            assert!(
                is_whole || is_told || may_be_torn,
                "{case}: nobody was told: {lost:?}, {documents_hold}, {again}: {report:?}"
            );
        }
        Err(error) => {
            seen.refused += 1;
            assert!(is_told, "{case}: {error}, but the check said {report:?}");
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "what was tried is told")]
fn every_harm_to_every_file_is_told() {
    let number = |name, usual| std::env::var(name).map_or(usual, |it| it.parse().unwrap());
    let flips = number("OUTFLOW_HARM_FLIPS", FLIPS);
    let (bases, told) = stories();
    let mut entropy = Entropy(number("OUTFLOW_FIRST_SEED", 3));
    for (base, is_clean) in bases.iter().zip([true, false]) {
        let all = files(base.path());
        assert!(all.len() > 10, "{all:?}");
        for file in all {
            let mut seen = Seen::default();
            let bytes = fs::metadata(base.path().join(&file)).unwrap().len();
            let mut harms = vec![Harm::Delete, Harm::Cut(0)];
            if bytes > 1 {
                harms.push(Harm::Cut(bytes / 2));
                harms.push(Harm::Cut(bytes - 1));
            }
            if bytes > 0 {
                harms.extend((0..flips).map(|_| Harm::Flip(entropy.between(0, bytes - 1))));
            }
            for how in harms {
                try_one(base, is_clean, &told, (&file, how), &mut seen);
            }
            let after = if is_clean { "a clean stop" } else { "a kill" };
            eprintln!("after {after}, {}, {bytes} bytes: {seen:?}", file.display());
        }
    }
}

/// After a kill nobody knows whether the last commit is torn or damaged, but
/// that there was one is told.
#[test]
fn whatever_byte_of_the_last_commit_is_changed_is_told() {
    let mut driver = Driver::new(Rig::paired(Scratch::in_memory()).unwrap());
    driver.open(FlowId(0));
    let body: Arc<[u8]> = Arc::from([7; 50]);
    driver.accept(vec![message(FlowId(0), 1, &body)]);
    let before = driver.rig.scratch.copy();
    driver.accept(vec![message(FlowId(0), 2, &body)]);
    let killed = driver.rig.scratch.copy();
    let file = Path::new("journal").join(Kind::Envelope.name(1));
    let [old, new] = [&before, &killed].map(|it| fs::read(it.path().join(&file)).unwrap());
    let is_new = |at: &usize| old[*at] != new[*at];
    let changed: Vec<usize> = (0..new.len()).filter(is_new).collect();
    assert!(changed.len() > 50, "{changed:?}");
    for at in changed {
        let copy = killed.copy();
        harm(&copy.path().join(&file), Harm::Flip(at as u64));
        let report = check(copy.path()).unwrap();
        assert_eq!(report.messages, 1, "{at}: {report:?}");
        assert!(report.torn_bytes > 0, "{at}: {report:?}");
    }
}

/// Copies that were made at two times have two halves that do not fit.
#[test]
fn halves_of_two_times_are_told() {
    let mut driver = Driver::new(Rig::paired(Scratch::in_memory()).unwrap());
    driver.open(FlowId(0));
    let body: Arc<[u8]> = Arc::from([7; 50]);
    let messages = (0..4).map(|no| message(FlowId(0), no, &body));
    let Said::Given(given) = driver.accept(messages.collect()) else {
        panic!("a sound disk takes messages");
    };
    driver.rig.store = None;
    let early = driver.rig.scratch.copy();
    driver.rig.open().unwrap();
    driver.recover();
    for given in &given[..2] {
        driver.commit(settlement(FlowId(0), given.seq, State::Delivered));
    }
    driver.rig.store = None;
    let late = driver.rig.scratch.copy();
    let told = Told {
        live: BTreeMap::new(),
        settled: Vec::new(),
        documents: Vec::new(),
    };
    for (journal, record, said) in [
        (&late, &early, "record.sqlite is older"),
        (&early, &late, "the journal is older"),
    ] {
        assert!(check(journal.path()).unwrap().is_sound());
        let mixed = journal.copy();
        for file in files(record.path()) {
            if file.to_str().unwrap().starts_with("record.sqlite") {
                fs::copy(record.path().join(&file), mixed.path().join(&file)).unwrap();
            }
        }
        let report = check(mixed.path()).unwrap();
        assert!(
            report.problems.iter().any(|it| it.starts_with(said)),
            "{report:?}"
        );
        let new = Scratch::in_memory();
        let saved = salvage(mixed.path(), new.path()).unwrap();
        check_salvaged(&saved, new, &told, Path::new("record.sqlite"), said);
        let started = Rig::paired(mixed).map(|_| ()).unwrap_err().to_string();
        assert!(started.starts_with(said), "{started}");
    }
}

/// What there is when the journal's directory is gone, or all of the record.
#[test]
fn a_missing_half_is_told() {
    let (bases, told) = stories();
    for base in &bases {
        let copy = base.copy();
        fs::remove_dir_all(copy.path().join("journal")).unwrap();
        assert!(!check(copy.path()).unwrap().is_sound());
        let new = Scratch::in_memory();
        let saved = salvage(copy.path(), new.path()).unwrap();
        assert!(saved.counts_lost && !saved.lost.is_empty(), "{saved:?}");
        let (gone, documents_hold, _) = lost(new, &told).unwrap();
        assert!(documents_hold && gone.len() == told.live.len());
        assert!(lost(copy, &told).is_err(), "a start makes no new journal");
    }
}
