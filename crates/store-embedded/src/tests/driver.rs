//! Speaks to a store: submits, waits for answers.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use outflow_core::destination::Destination;
use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Head, Recipient, Seq, State};
use outflow_core::time::{Nanos, Wall};
use outflow_ports::conformance::store::Harness;
use outflow_ports::intake::Given;
use outflow_ports::store::{BatchId, NewMessage, Store, StoreDone, StoreWork};

use super::harness::Rig;
use crate::disk::Disk;

/// Looks for an answer before giving up.
const LOOKS_MAX: u32 = 10_000;

pub struct Driver {
    pub rig: Rig,
    batches: u64,
    appends: u64,
}

/// What the store said to one piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Given(Vec<Given>),
    Committed,
    Failed,
}

pub fn key_of(flow: FlowId) -> FlowKey {
    FlowKey::to(Destination::isp(format!("isp-{flow}")))
}

pub fn message(flow: FlowId, mark: u64, body: &Arc<[u8]>) -> NewMessage {
    NewMessage {
        flow,
        idempotency_key: None,
        not_before: None,
        expires_at: Wall::NEVER,
        recipient: Recipient(mark),
        cost: 1,
        envelope: Arc::from(format!("envelope {mark}").into_bytes()),
        body: Arc::clone(body),
    }
}

pub fn settlement(flow: FlowId, seq: Seq, state: State) -> Record {
    Record::Settlement {
        flow,
        seq,
        state,
        account: Some(outflow_core::name::Name::from("one")),
        error: None,
    }
}

impl Driver {
    pub fn new(rig: Rig) -> Self {
        let mut driver = Self {
            rig,
            batches: 0,
            appends: 0,
        };
        driver.recover();
        driver
    }

    pub fn recover(&mut self) -> outflow_ports::store::Recovered {
        self.appends = 0;
        let now = self.rig.now();
        self.rig.store().recover(&now)
    }

    pub fn submit(&mut self, work: StoreWork) {
        let now = self.rig.now();
        self.rig.store().submit(&now, work);
    }

    pub fn open(&mut self, flow: FlowId) {
        let key = Arc::new(key_of(flow));
        self.submit(StoreWork::OpenFlow { flow, key });
    }

    pub fn turn(&mut self) -> Vec<StoreDone> {
        let mut done = Vec::new();
        let now = self.rig.now();
        self.rig.store().complete(&now, &mut done);
        done
    }

    /// Time passes.
    pub fn pass(&mut self, span: Nanos) {
        let to = self.rig.now().mono + span;
        self.rig.advance(to);
    }

    /// Whether the disk has stopped working for good.
    pub fn is_dead(&self) -> bool {
        self.rig.disk.mood.dead.load(SeqCst)
    }

    /// Waits for what `wanted` looks for among the answers.
    pub fn wait<T>(&mut self, mut wanted: impl FnMut(&StoreDone) -> Option<T>) -> T {
        for _ in 0..LOOKS_MAX {
            if let Some(found) = self.turn().iter().find_map(&mut wanted) {
                return found;
            }
            self.pass(Nanos::from_millis(1));
        }
        panic!("the store does not answer");
    }

    pub fn accept(&mut self, messages: Vec<NewMessage>) -> Said {
        self.batches += 1;
        let batch = BatchId(self.batches);
        self.submit(StoreWork::Accept { batch, messages });
        self.wait(|done| match done {
            StoreDone::Accepted { batch: of, given } if *of == batch => {
                Some(Said::Given(given.clone()))
            }
            StoreDone::AcceptFailed { batch: of } if *of == batch => Some(Said::Failed),
            _ => None,
        })
    }

    pub fn commit(&mut self, record: Record) -> Said {
        self.appends += 1;
        let no = AppendNo(self.appends);
        self.submit(StoreWork::Append { no, record });
        self.wait(|done| match done {
            StoreDone::Event(Event::Committed { through }) if *through >= no => {
                Some(Said::Committed)
            }
            StoreDone::Event(Event::CommitFailed { through }) if *through >= no => {
                Some(Said::Failed)
            }
            _ => None,
        })
    }

    pub fn page(&mut self, flow: FlowId, max: u32) -> Vec<Head> {
        self.submit(StoreWork::Page { flow, max });
        self.wait(|done| match done {
            StoreDone::Event(Event::Paged { flow: of, heads }) if *of == flow => {
                Some(heads.clone())
            }
            _ => None,
        })
    }

    /// Dies and starts again.
    pub fn restart(&mut self) -> outflow_ports::store::Recovered {
        self.rig.die();
        if let Err(error) = self.rig.open() {
            panic!("{error}: {:?}", self.rig.disk.list());
        }
        self.recover()
    }
}
