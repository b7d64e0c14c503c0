//! Keeps messages to suppressed recipients from being sent.
//!
//! A message is looked at twice: when it is submitted, so that it is settled as
//! soon as it is durable, and when the store hands it over, so that one that was
//! accepted before its recipient was suppressed, or right before a crash, is
//! not sent either. A node without a screen looks at nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_core::engine::Engine;
use outflow_core::handle::FlowId;
use outflow_core::message::{Head, Seq};
use outflow_core::message_id::MessageId;
use outflow_core::retry::dead_letter::LastError;
use outflow_ports::intake::{Given, Submission};
use outflow_ports::store::{BatchId, Store};
use outflow_ports::suppression::{NoSuchRecipient, Screen, Stopped};

/// Messages that must not be sent, and what is kept of them.
type Marked = Vec<(Seq, Box<LastError>)>;

/// Asks the screen.
#[derive(Debug, Default)]
pub(crate) struct Screening {
    screen: Option<Arc<dyn Screen>>,
    /// Batches on their way to the disk with messages that are not to be sent:
    /// their places, and why.
    batches: VecDeque<(BatchId, Vec<(usize, Stopped)>)>,
}

impl Screening {
    pub fn by(screen: Arc<dyn Screen>) -> Self {
        Self {
            screen: Some(screen),
            batches: VecDeque::new(),
        }
    }

    /// A batch is on its way to the disk.
    pub fn submitted(&mut self, id: BatchId, batch: &[Submission]) {
        let Some(screen) = &self.screen else { return };
        let stopped = |(place, one): (usize, &Submission)| {
            let stopped = screen.stops(&one.key, one.recipient)?;
            Some((place, stopped))
        };
        let marked: Vec<_> = batch.iter().enumerate().filter_map(stopped).collect();
        if !marked.is_empty() {
            self.batches.push_back((id, marked));
        }
    }

    /// A batch became durable, or not: which of it is not to be sent. What was
    /// known already is in other hands.
    pub fn answered(&mut self, id: BatchId, given: Option<&[Given]>) -> Marked {
        let Some(at) = self.batches.iter().position(|&(batch, _)| batch == id) else {
            return Vec::new();
        };
        let (Some((_, marked)), Some(given)) = (self.batches.remove(at), given) else {
            return Vec::new();
        };
        let marked = marked.into_iter().filter_map(|(place, stopped)| {
            let given = given.get(place).filter(|given| !given.known)?;
            Some((given.seq, error(stopped)))
        });
        marked.collect()
    }

    /// Messages that the store hands over: which of them are not to be sent.
    pub fn paged(&self, engine: &Engine, flow: FlowId, heads: &[Head]) -> Marked {
        let (Some(screen), Some(key)) = (&self.screen, engine.flow_key(flow)) else {
            return Vec::new();
        };
        let stopped = |head: &Head| {
            let stopped = screen.stops(key, head.recipient)?;
            Some((head.seq, error(stopped)))
        };
        heads.iter().filter_map(stopped).collect()
    }

    /// The far end says that a recipient does not exist.
    pub fn bounced(
        &self,
        engine: &Engine,
        store: &impl Store,
        flow: FlowId,
        seq: Seq,
        error: LastError,
    ) {
        let (Some(screen), Some(key)) = (&self.screen, engine.flow_key(flow)) else {
            return;
        };
        if let Some(found) = store.find(seq) {
            screen.bounced(NoSuchRecipient {
                key: Arc::clone(key),
                message: MessageId::new(found.head.accepted_at, seq),
                parcel: store.parcel(seq),
                error,
            });
        }
    }
}

fn error(stopped: Stopped) -> Box<LastError> {
    Box::new(stopped.reason.error(stopped.since))
}
