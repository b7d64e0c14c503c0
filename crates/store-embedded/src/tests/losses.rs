//! What a commit that fails takes along, step by step.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::intake::Given;
use outflow_ports::store::{BatchId, NewMessage, Store, StoreDone, StoreWork};

use super::driver::{key_of, message, settlement};
use crate::disk::simulated::{Faulty, Mood, Platter};
use crate::settings::Settings;
use crate::stepped::{Parts, RecordMemory};
use crate::store::EmbeddedStore;

/// A store whose writer works when it is told to.
struct Stepped {
    store: EmbeddedStore,
    parts: Parts,
    mood: Arc<Mood>,
    now: Now,
    done: Vec<StoreDone>,
    platter: Platter,
    record: RecordMemory,
}

impl Stepped {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let platter = Platter::default();
        let mood = Arc::new(Mood::of(platter.failing()));
        let record = RecordMemory::new().unwrap();
        let disk = Faulty {
            inner: Arc::new(platter.clone()),
            mood: Arc::clone(&mood),
        };
        let (store, _, parts) =
            EmbeddedStore::open_stepped(Arc::new(disk), &record, settings, 1).unwrap();
        let now = Now {
            mono: Mono(1),
            wall: Wall(1_767_225_600_000_000_000),
            entropy: Entropy(0),
        };
        let mut stepped = Self {
            store,
            parts,
            mood,
            now,
            done: Vec::new(),
            platter,
            record,
        };
        stepped.store.recover(&now);
        stepped
    }

    /// Whether a message is there after the process was killed and started again.
    fn survives(self, seq: Seq) -> bool {
        let Self {
            store,
            parts,
            platter,
            record,
            now,
            ..
        } = self;
        drop((store, parts));
        let disk = Arc::new(platter);
        let opened = EmbeddedStore::open_stepped(disk, &record, Settings::default(), 2);
        let (mut store, _, _parts) = opened.unwrap();
        store.recover(&now);
        store.find(seq).is_some()
    }

    fn open(&mut self, flow: FlowId) {
        let key = Arc::new(key_of(flow));
        self.store
            .submit(&self.now, StoreWork::OpenFlow { flow, key });
    }

    fn accept(&mut self, batch: u64, flow: FlowId) {
        self.accept_keyed(batch, flow, None);
    }

    fn accept_keyed(&mut self, batch: u64, flow: FlowId, key: Option<&str>) {
        let messages = vec![NewMessage {
            idempotency_key: key.map(Arc::from),
            ..message(flow, batch, &Arc::from([7]))
        }];
        let batch = BatchId(batch);
        self.store
            .submit(&self.now, StoreWork::Accept { batch, messages });
    }

    /// The writer takes what waits.
    fn gather(&self) {
        assert!(self.parts.writer.gather());
    }

    /// The writer commits what it took.
    fn commit(&self, works: bool) {
        self.mood.failing.store(!works, SeqCst);
        self.parts.writer.commit();
    }

    /// The store hears of it.
    fn hear(&mut self) {
        self.now.mono = self.now.mono + Nanos::from_millis(1);
        self.store.complete(&self.now, &mut self.done);
    }

    fn accepted(&self, batch: u64) -> Option<bool> {
        self.done.iter().find_map(|done| match done {
            StoreDone::Accepted { batch: it, .. } if it.0 == batch => Some(true),
            StoreDone::AcceptFailed { batch: it } if it.0 == batch => Some(false),
            _ => None,
        })
    }
}

impl Stepped {
    /// What became of the last batch.
    fn given(&self) -> Option<Given> {
        self.done.iter().rev().find_map(|done| match done {
            StoreDone::Accepted { given, .. } => given.first().copied(),
            _ => None,
        })
    }

    /// Whether a message with this key is there when it is accepted.
    fn knows(&mut self, batch: u64, flow: FlowId, key: &str) -> bool {
        self.accept_keyed(batch, flow, Some(key));
        self.gather();
        self.commit(true);
        self.hear();
        self.given().is_some_and(|it| it.known)
    }

    /// What the engine has to say is durable.
    fn append(&mut self, record: Record) {
        let no = AppendNo(1);
        self.store
            .submit(&self.now, StoreWork::Append { no, record });
        self.gather();
        self.commit(true);
        self.hear();
    }

    /// How many messages of these flows are handed over.
    fn handed_over(&mut self, flows: &[FlowId]) -> usize {
        for &flow in flows {
            let page = StoreWork::Page { flow, max: 9 };
            self.store.submit(&self.now, page);
        }
        self.hear();
        let heads = self.done.iter().filter_map(|done| match done {
            StoreDone::Event(Event::Paged { heads, .. }) => Some(heads.len()),
            _ => None,
        });
        heads.sum()
    }
}

/// A failure is told in two parts, and between them the disk fails again: a
/// message that was handed over before the second failure was heard of must not
/// reach the disk ahead of the name of its flow.
#[test]
fn what_was_handed_over_before_a_failure_was_heard_of_is_lost_with_it() {
    let (first, second) = (FlowId(0), FlowId(1));
    let mut stepped = Stepped::new();
    stepped.open(first);
    stepped.gather();
    stepped.open(second);
    stepped.commit(false);
    stepped.gather();
    stepped.hear();
    stepped.commit(false);
    // The name of the first flow comes again, by itself.
    stepped.gather();
    stepped.hear();
    stepped.accept(1, first);
    stepped.commit(false);
    stepped.gather();
    stepped.commit(true);
    stepped.hear();
    assert_eq!(stepped.accepted(1), Some(false), "its flow has no name yet");
    for _ in 0..3 {
        if stepped.parts.writer.gather() {
            stepped.commit(true);
        }
        stepped.hear();
    }
    stepped.accept(2, first);
    stepped.accept(3, second);
    stepped.gather();
    stepped.commit(true);
    stepped.hear();
    assert_eq!(
        (stepped.accepted(2), stepped.accepted(3)),
        (Some(true), Some(true))
    );
    assert_eq!(stepped.handed_over(&[first, second]), 2);
}

/// The store has heard of a failure, but not yet that a name was lost with it:
/// what it accepts now must come behind that name all the same.
#[test]
fn a_message_comes_behind_the_name_of_its_flow_though_that_was_lost() {
    let (first, second) = (FlowId(0), FlowId(1));
    let mut stepped = Stepped::new();
    stepped.open(first);
    stepped.gather();
    stepped.open(second);
    stepped.commit(false);
    stepped.hear();
    stepped.accept(1, second);
    stepped.gather();
    stepped.commit(true);
    stepped.hear();
    assert_eq!(stepped.accepted(1), Some(true));
    assert_eq!(stepped.handed_over(&[first, second]), 1);
    assert!(!stepped.parts.writer.gather(), "names are written once");
}

/// Nor is a message known by a key whose first message is lost.
#[test]
fn a_key_of_a_message_that_is_lost_can_be_used_again() {
    let flow = FlowId(0);
    let mut stepped = Stepped::new();
    stepped.open(flow);
    stepped.gather();
    stepped.accept_keyed(1, flow, Some("key"));
    stepped.commit(false);
    stepped.hear();
    stepped.accept_keyed(2, flow, Some("key"));
    stepped.gather();
    stepped.commit(true);
    stepped.hear();
    let accepted = (stepped.accepted(1), stepped.accepted(2));
    assert_eq!(accepted, (Some(false), Some(true)));
    assert_eq!(stepped.handed_over(&[flow]), 1, "the second is there");
    assert!(stepped.knows(3, flow, "key"), "and is known by its key");
}

/// Keys that are too many for memory go to the record. Until the clerk has
/// worked, which may be long, they are known all the same.
#[test]
fn a_key_is_known_while_it_is_on_its_way_to_the_record() {
    let flow = FlowId(0);
    let mut stepped = Stepped::with(Settings {
        keys_max: 1,
        // The record goes by the machine's clock.
        key_life: Nanos::from_secs(200 * 365 * 86_400),
        ..Settings::default()
    });
    stepped.open(flow);
    for batch in 1..=3 {
        let key = batch.to_string();
        assert!(!stepped.knows(batch, flow, &key));
        let seq = stepped.given().unwrap().seq;
        stepped.handed_over(&[flow]);
        stepped.append(settlement(flow, seq, State::Delivered));
    }
    let all = |batch: u64| stepped.knows(9 + batch, flow, &batch.to_string());
    assert_eq!((1..=3).map(all).collect::<Vec<_>>(), [true; 3]);
}

/// A segment that could not be named may have its name all the same, and says how
/// far the one before it counts: nothing is written there any more, though there
/// would be room.
#[test]
fn nothing_is_written_behind_what_the_next_segment_says_counts() {
    let flow = FlowId(0);
    let mut stepped = Stepped::with(Settings {
        envelope_segment_bytes: 4 << 10,
        ..Settings::default()
    });
    stepped.open(flow);
    // So that a segment for bodies is there.
    stepped.accept(1, flow);
    stepped.gather();
    stepped.commit(true);
    stepped.hear();
    // Too much for what is left of the first segment.
    for batch in 2..=100 {
        stepped.accept(batch, flow);
    }
    stepped.gather();
    stepped.mood.names_failing.store(1, SeqCst);
    stepped.commit(true);
    stepped.hear();
    assert_eq!(stepped.accepted(2), Some(false));
    stepped.accept(101, flow);
    stepped.gather();
    stepped.commit(true);
    stepped.hear();
    assert_eq!(stepped.accepted(101), Some(true));
    let seq = stepped.given().unwrap().seq;
    assert!(stepped.survives(seq));
}
