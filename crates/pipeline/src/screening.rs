//! Keeps messages to suppressed recipients from being sent.
//!
//! A message is looked at twice: when it is submitted, so that it is settled as
//! soon as it is durable, and when the store hands it over, so that one that was
//! accepted before its recipient was suppressed, or right before a crash, is
//! not sent either. One that the engine holds already is looked at again when
//! the list has changed: a flow may hold its heads for hours. That goes on in
//! slices, and costs nothing while the list stays as it is. A node without a
//! screen looks at nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_core::engine::Engine;
use outflow_core::handle::FlowId;
use outflow_core::message::{Head, Seq};
use outflow_core::message_id::MessageId;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::{Mono, Nanos};
use outflow_ports::intake::{Given, Submission};
use outflow_ports::store::{BatchId, Store};
use outflow_ports::suppression::{NoSuchRecipient, Screen, Stopped};

/// Messages that must not be sent, and what is kept of them.
type Marked = Vec<(Seq, Box<LastError>)>;

/// Heads, and flows, that are looked at again in one turn.
const HEADS_SLICE: usize = 8_192;
const FLOWS_SLICE: usize = 32_768;
/// While the list changes all the time, all heads are looked at so often.
const AGAIN: Nanos = Nanos::from_secs(1);

/// A look at all heads that are held.
#[derive(Debug, Default)]
struct Review {
    /// The list was of this generation when the last one began.
    seen: u64,
    /// When the next one may begin.
    may_begin: Mono,
    /// The flow at which it goes on, if one is under way.
    next: Option<usize>,
}

/// Asks the screen.
#[derive(Debug, Default)]
pub(crate) struct Screening {
    screen: Option<Arc<dyn Screen>>,
    review: Review,
    /// Batches on their way to the disk with messages that are not to be sent:
    /// their places, and why.
    batches: VecDeque<(BatchId, Vec<(usize, Stopped)>)>,
}

impl Screening {
    pub fn by(screen: Arc<dyn Screen>) -> Self {
        let review = Review {
            seen: screen.generation(),
            ..Review::default()
        };
        Self {
            screen: Some(screen),
            review,
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

    /// When heads that are held are to be looked at again.
    pub fn next_review(&self) -> Mono {
        let Some(screen) = &self.screen else {
            return Mono::NEVER;
        };
        match self.review.next {
            Some(_) => Mono(0),
            None if screen.generation() != self.review.seen => self.review.may_begin,
            None => Mono::NEVER,
        }
    }

    /// Looks at some of the heads that are held, if it is time: which are not
    /// to be sent. What changes after a look has begun is for the next one.
    pub fn review(&mut self, mono: Mono, engine: &Engine) -> Vec<(FlowId, Marked)> {
        let is_time = self.next_review() <= mono;
        let (Some(screen), true) = (&self.screen, is_time) else {
            return Vec::new();
        };
        let start = match self.review.next.take() {
            Some(start) => start,
            None => {
                self.review.seen = screen.generation();
                self.review.may_begin = mono + AGAIN;
                0
            }
        };
        let mut found = Vec::new();
        let (mut seen, mut flows) = (0, 0);
        for (flow, key, heads) in engine.heads_from(start) {
            if seen >= HEADS_SLICE || flows >= FLOWS_SLICE {
                self.review.next = Some(flow.index());
                break;
            }
            flows += 1;
            seen += heads.len();
            let stopped = |head: &Head| {
                let stopped = screen.stops(key, head.recipient)?;
                Some((head.seq, error(stopped)))
            };
            let marked: Marked = heads.iter().filter_map(stopped).collect();
            if !marked.is_empty() {
                found.push((flow, marked));
            }
        }
        found
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
