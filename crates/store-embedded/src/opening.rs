//! Names of flows on their way to the disk.
//!
//! Messages are taken in behind the name of their flow, before that is durable.
//! When a commit fails, what was ordered behind it and before anybody heard of it
//! is lost as well, and is answered later; but what is ordered from then on is
//! written. So all names under way are ordered again at once, in front of that:
//! else messages become durable in a flow that has no name yet, and nobody is
//! told of them.

use std::sync::Arc;

use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;

use crate::journal::place::Place;
use crate::journal::task::Task;
use crate::store::EmbeddedStore;

/// A name on its way to the disk.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The latest one.
    key: Arc<FlowKey>,
    /// Orders that are not answered yet.
    orders: u32,
}

impl EmbeddedStore {
    /// A flow whose name went with an old segment is named again.
    pub(crate) fn name_again(&mut self, id: FlowId) {
        let Some(flow) = self.index.flow(id) else {
            return;
        };
        if flow.named == Place::NONE && !self.opening.contains_key(&id) {
            let key = Arc::clone(&flow.key);
            self.open_flow(id, key);
        }
    }

    /// Whether the journal has this name for a flow, and no other is on its way.
    pub(crate) fn is_named(&self, id: FlowId, key: &FlowKey) -> bool {
        let flow = self.index.flow(id);
        let is_it = flow.is_some_and(|flow| *flow.key == *key && flow.named != Place::NONE);
        is_it && !self.opening.contains_key(&id)
    }

    /// Orders the name of a flow.
    pub(crate) fn open_flow(&mut self, flow: FlowId, key: Arc<FlowKey>) {
        let orders = self.opening.get(&flow).map_or(0, |it| it.orders);
        let opening = Opening {
            key: Arc::clone(&key),
            orders: orders + 1,
        };
        self.opening.insert(flow, opening);
        let place = Place::NONE;
        self.order(Task::Open { flow, key, place });
    }

    /// A name is durable.
    pub(crate) fn opened(&mut self, flow: FlowId) {
        if let Some(opening) = self.opening.get_mut(&flow) {
            opening.orders = opening.orders.saturating_sub(1);
            if opening.orders == 0 {
                self.opening.remove(&flow);
            }
        }
    }

    /// A name did not reach the disk: it was ordered again or is about to be.
    pub(crate) fn not_opened(&mut self, flow: FlowId) {
        if let Some(opening) = self.opening.get_mut(&flow) {
            opening.orders = opening.orders.saturating_sub(1);
        }
    }

    /// A commit failed: what was given before this generation is lost or was
    /// answered.
    pub(crate) fn begin_generation(&mut self, generation: u64) {
        if generation <= self.generation {
            return;
        }
        self.generation = generation;
        if self.orders.is_none() {
            return;
        }
        let again = self.opening.iter();
        let again = again.map(|(id, it)| (*id, Arc::clone(&it.key)));
        let again: Vec<_> = again.collect();
        for (flow, key) in again {
            self.open_flow(flow, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use outflow_core::destination::Destination;
    use outflow_core::engine::action::Record;
    use outflow_core::engine::event::Event;
    use outflow_core::entropy::Entropy;
    use outflow_core::handle::AppendNo;
    use outflow_core::message::Recipient;
    use outflow_core::time::{Mono, Now, Wall};
    use outflow_ports::intake::Given;
    use outflow_ports::store::{BatchId, NewMessage, Store, StoreDone, StoreWork};

    use super::*;
    use crate::disk::simulated::{Faulty, Mood, Platter};
    use crate::settings::Settings;
    use crate::stepped::{Parts, RecordMemory};

    const NOW: Now = Now {
        mono: Mono(1_000_000_000),
        wall: Wall(1_767_225_600_000_000_000),
        entropy: Entropy(0),
    };
    const FIRST: FlowId = FlowId(0);
    const SECOND: FlowId = FlowId(1);

    /// A store whose parts are stepped, on a disk that fails as told.
    struct Stage {
        store: EmbeddedStore,
        parts: Parts,
        mood: Arc<Mood>,
        platter: Platter,
        record: RecordMemory,
    }

    fn key(name: &str) -> Arc<FlowKey> {
        Arc::new(FlowKey::to(Destination::isp(name)))
    }

    fn message(flow: FlowId) -> NewMessage {
        NewMessage {
            flow,
            idempotency_key: Some(Arc::from("order-17")),
            not_before: None,
            expires_at: Wall::NEVER,
            recipient: Recipient(1),
            cost: 1,
            envelope: Arc::from(*b"to somebody"),
            body: Arc::from(*b"hello"),
        }
    }

    impl Stage {
        fn new() -> Self {
            let (platter, mood) = (Platter::default(), Arc::new(Mood::default()));
            let record = RecordMemory::new().unwrap();
            let disk = Arc::new(Faulty {
                inner: Arc::new(platter.clone()),
                mood: Arc::clone(&mood),
            });
            let opened = EmbeddedStore::open_stepped(disk, &record, Settings::default(), 1);
            let (mut store, _, parts) = opened.unwrap();
            store.recover(&NOW);
            Self {
                store,
                parts,
                mood,
                platter,
                record,
            }
        }

        fn open(&mut self, flow: FlowId, name: &str) {
            let key = key(name);
            self.store.submit(&NOW, StoreWork::OpenFlow { flow, key });
        }

        fn accept(&mut self, no: u64, flow: FlowId) {
            let (batch, messages) = (BatchId(no), vec![message(flow)]);
            let work = StoreWork::Accept { batch, messages };
            self.store.submit(&NOW, work);
        }

        fn append(&mut self, no: u64, record: Record) {
            let no = AppendNo(no);
            self.store.submit(&NOW, StoreWork::Append { no, record });
        }

        /// One group, whether it reaches the disk or not.
        fn commit(&mut self, fails: bool) {
            self.mood.failing.store(fails, SeqCst);
            self.parts.writer.gather();
            assert_eq!(self.parts.writer.commit(), !fails);
        }

        fn hear(&mut self) -> Vec<StoreDone> {
            let mut done = Vec::new();
            self.store.complete(&NOW, &mut done);
            done
        }

        /// The store as it is after a crash.
        fn restart(self) -> (EmbeddedStore, Parts) {
            let (platter, record) = (self.platter, self.record);
            drop((self.store, self.parts));
            let settings = Settings::default();
            let opened = EmbeddedStore::open_stepped(Arc::new(platter), &record, settings, 2);
            let (mut store, _, parts) = opened.unwrap();
            store.recover(&NOW);
            (store, parts)
        }
    }

    fn moved(store: &EmbeddedStore) -> Record {
        Record::Moved {
            flow: FIRST,
            to: SECOND,
            through: store.last_seq(),
            held: Vec::new(),
        }
    }

    fn is_closed(done: &[StoreDone], flow: FlowId) -> bool {
        done.iter().any(
            |it| matches!(it, StoreDone::Event(Event::FlowClosed { flow: it, .. }) if *it == flow),
        )
    }

    fn given(done: &[StoreDone]) -> Vec<Given> {
        let given = done.iter().filter_map(|it| match it {
            StoreDone::Accepted { given, .. } => Some(given.iter().copied()),
            _ => None,
        });
        given.flatten().collect()
    }

    #[test]
    fn a_name_that_is_lost_unheard_of_comes_before_the_messages_of_its_flow() {
        let mut stage = Stage::new();
        stage.open(FIRST, "google");
        stage.commit(true);
        // Lost with the other, which nobody has heard of yet.
        stage.open(SECOND, "yahoo");
        stage.hear();
        stage.accept(1, SECOND);
        stage.commit(false);
        let mut done = stage.hear();
        stage.commit(false);
        done.extend(stage.hear());
        let seq = given(&done).first().unwrap().seq;
        let flow = stage.store.index.flow(SECOND).unwrap();
        assert_eq!((flow.live, flow.fresh.len()), (1, 1));
        assert!(stage.store.opening.is_empty());

        let (store, _parts) = stage.restart();
        assert_eq!(store.find(seq).unwrap().flow, SECOND);
        assert_eq!(store.flow_key(SECOND), Some(&key("yahoo")));
    }

    #[test]
    fn the_key_of_a_message_that_is_lost_unheard_of_is_not_known() {
        let mut stage = Stage::new();
        stage.open(FIRST, "google");
        stage.commit(false);
        stage.hear();
        stage.open(SECOND, "yahoo");
        stage.commit(true);
        // Lost with the name, which nobody has heard of yet.
        stage.accept(1, FIRST);
        stage.hear();
        // The caller comes again with the same key.
        stage.accept(2, FIRST);
        stage.commit(false);
        let done = stage.hear();
        let given = given(&done);
        assert_eq!(given.len(), 1);
        assert!(given.iter().all(|it| !it.known));
        assert!(given.iter().all(|it| stage.store.find(it.seq).is_some()));
        // From now on it is.
        stage.accept(3, FIRST);
        stage.commit(false);
        assert!(self::given(&stage.hear()).iter().all(|it| it.known));
    }

    /// Else they stay where they are until a restart, which moves them: by then
    /// the number of the other flow may have been given to a third.
    #[test]
    fn messages_are_moved_whose_flow_has_no_name_on_the_disk_yet() {
        for is_lost_once in [false, true] {
            let mut stage = Stage::new();
            stage.open(FIRST, "google");
            if is_lost_once {
                stage.accept(1, FIRST);
                stage.open(SECOND, "yahoo");
                stage.append(1, moved(&stage.store));
                stage.commit(true);
                stage.hear();
            } else {
                stage.open(SECOND, "yahoo");
            }
            stage.accept(2, FIRST);
            stage.append(2, moved(&stage.store));
            stage.commit(false);
            let seq = given(&stage.hear()).first().unwrap().seq;
            assert_eq!(stage.store.find(seq).unwrap().flow, SECOND);
            let flow = stage.store.index.flow(SECOND).unwrap();
            assert_eq!((flow.live, flow.fresh.len()), (1, 1));
            for (flow, request) in [(FIRST, 1), (SECOND, 2)] {
                let work = StoreWork::CloseFlow { flow, request };
                stage.store.submit(&NOW, work);
            }
            let done = stage.hear();
            assert!(is_closed(&done, FIRST) && !is_closed(&done, SECOND));

            let (store, _parts) = stage.restart();
            assert_eq!(store.find(seq).unwrap().flow, SECOND);
        }
    }

    #[test]
    fn messages_are_cancelled_whose_flow_has_no_name_on_the_disk_yet() {
        let mut stage = Stage::new();
        stage.open(FIRST, "google");
        stage.accept(1, FIRST);
        let (flow, through) = (FIRST, stage.store.last_seq());
        stage.append(1, Record::Cancelled { flow, through });
        stage.commit(false);
        let seq = given(&stage.hear()).first().unwrap().seq;
        assert!(stage.store.find(seq).is_none());
        let (store, _parts) = stage.restart();
        assert!(store.find(seq).is_none());
    }
}
