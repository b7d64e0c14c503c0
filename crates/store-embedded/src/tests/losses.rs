//! What a commit that fails takes along, step by step.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::handle::FlowId;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::store::{BatchId, NewMessage, Store, StoreDone, StoreWork};

use super::driver::{key_of, message};
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
    _record: RecordMemory,
}

impl Stepped {
    fn new() -> Self {
        let platter = Platter::default();
        let mood = Arc::new(Mood::of(platter.failing()));
        let record = RecordMemory::new().unwrap();
        let disk = Faulty {
            inner: Arc::new(platter),
            mood: Arc::clone(&mood),
        };
        let (store, _, parts) =
            EmbeddedStore::open_stepped(Arc::new(disk), &record, Settings::default(), 1).unwrap();
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
            _record: record,
        };
        stepped.store.recover(&now);
        stepped
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
    stepped.accept_keyed(3, flow, Some("key"));
    stepped.gather();
    stepped.commit(true);
    stepped.hear();
    let known = stepped.done.iter().rev().find_map(|done| match done {
        StoreDone::Accepted { given, .. } => given.first().map(|it| it.known),
        _ => None,
    });
    assert_eq!(known, Some(true), "and is known by its key");
}
