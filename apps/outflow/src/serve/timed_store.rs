//! The embedded store, with the time that its commits take told.

use std::sync::Arc;

use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::{Mono, Now};
use outflow_ports::parcel::ParcelRef;
use outflow_ports::store::{Found, Recovered, Store, StoreDone, StoreWork};
use outflow_store_embedded::EmbeddedStore;
use outflow_telemetry::catalogue::{Commit, Event};
use outflow_telemetry::sink::Sink;

/// A store that tells how long its commits take.
pub struct TimedStore {
    /// The store.
    pub store: EmbeddedStore,
    /// Who is told.
    pub sink: Arc<dyn Sink>,
}

impl Store for TimedStore {
    fn recover(&mut self, now: &Now) -> Recovered {
        self.store.recover(now)
    }

    fn submit(&mut self, now: &Now, work: StoreWork) {
        self.store.submit(now, work);
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>) {
        self.store.complete(now, done);
        for duration in self.store.take_commit_times() {
            self.sink.emit(&Event::Committed(Commit {
                duration,
                ..Commit::default()
            }));
        }
    }

    fn next_completion(&self) -> Mono {
        self.store.next_completion()
    }

    fn last_seq(&self) -> Seq {
        self.store.last_seq()
    }

    fn ahead(&self, flow: FlowId, seq: Seq) -> Option<u64> {
        self.store.ahead(flow, seq)
    }

    fn parcel(&self, seq: Seq) -> Option<ParcelRef> {
        self.store.parcel(seq)
    }

    fn find(&self, seq: Seq) -> Option<Found> {
        self.store.find(seq)
    }

    fn flow_key(&self, flow: FlowId) -> Option<&Arc<FlowKey>> {
        self.store.flow_key(flow)
    }

    fn scan(&self, from: Seq, looks: usize, found: &mut dyn FnMut(Found)) -> Option<Seq> {
        self.store.scan(from, looks, found)
    }

    fn deferred(&self, found: &mut dyn FnMut(FlowId, u64)) {
        self.store.deferred(found);
    }
}
