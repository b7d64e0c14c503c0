//! The durable queue: the truth about live messages.
//!
//! The store keeps the messages of each flow in order and hands heads out when
//! it is asked for a page, each message at most once until it is deferred or
//! the process starts anew. Messages that become due go to the front of their
//! flow. Its wheel says which messages are due and which have expired, whether
//! they were handed out or not.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::engine::SavedLimit;
use outflow_core::engine::action::{Hold, Record};
use outflow_core::engine::event::Event;
use outflow_core::engine::learners::Lore;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Head, Recipient, Seq};
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Mono, Nanos, Now, Wall};

use crate::intake::Given;
use crate::parcel::ParcelRef;

/// Names a batch of new messages in its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// A message that somebody wants sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The flow it belongs to.
    pub flow: FlowId,
    /// The same submission twice is one message.
    pub idempotency_key: Option<Arc<str>>,
    /// Not to be sent before this.
    pub not_before: Option<Wall>,
    /// Of no use from this on; [`Wall::NEVER`] if always of use.
    pub expires_at: Wall,
    /// Whom it goes to.
    pub recipient: Recipient,
    /// What it takes from each limit.
    pub cost: u32,
    /// What belongs to this message alone; the store does not look into it.
    pub envelope: Arc<[u8]>,
    /// What is to be delivered; the store does not look into it. Messages of
    /// one batch that share it share its place on the disk.
    pub body: Arc<[u8]>,
}

/// Work for a store. All but pages is answered in the order of submission.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum StoreWork {
    /// A flow was given a number, or what is known of it has changed: the last
    /// name holds. Durable before any message that comes later.
    OpenFlow { flow: FlowId, key: Arc<FlowKey> },
    /// Forget a flow once it has no messages that live or are on their way to
    /// the disk, and say so: `FlowClosed`. `OpenFlow` withdraws that.
    CloseFlow { flow: FlowId, request: u32 },
    /// Make new messages durable.
    Accept {
        batch: BatchId,
        messages: Vec<NewMessage>,
    },
    /// Make a record durable.
    Append { no: AppendNo, record: Record },
    /// Hand over up to `max` messages of a flow that are ready.
    Page { flow: FlowId, max: u32 },
    /// These dead letters need not be kept any more. Not answered.
    Forget { seqs: Vec<Seq> },
}

/// What a store answers.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum StoreDone {
    /// Something for the engine: `Accepted`, `Due`, `Expired`, `Paged`,
    /// `FlowClosed`, `Committed`, `CommitFailed`.
    Event(Event),
    /// The batch is durable; one entry per message, in order. A message whose
    /// idempotency key was known has the number of the first one.
    Accepted { batch: BatchId, given: Vec<Given> },
    /// The batch is not durable, as far as is known: nothing was acknowledged.
    AcceptFailed { batch: BatchId },
}

/// A message that the store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Of which flow.
    pub flow: FlowId,
    /// What the engine is told of it.
    pub head: Head,
    /// When it is to be sent, if it waits for that.
    pub due_at: Option<Wall>,
    /// Whether it is a dead letter.
    pub dead: bool,
}

/// What a store knows when it starts.
#[derive(Debug, Default)]
pub struct Recovered {
    /// All flows that have live messages, with how many of them are ready.
    pub flows: Vec<(FlowId, Arc<FlowKey>, u32)>,
    /// Numbers of flows that have dead letters and no live messages. All other
    /// numbers can be given to new flows.
    pub reserved: Vec<FlowId>,
    /// What was reserved of each limit.
    pub limits: BTreeMap<LimitKey, SavedLimit>,
    /// Which accounts are held, and how. What has passed may be left out.
    pub holds: BTreeMap<LimitKey, Hold>,
    /// What was learnt of rates.
    pub adapted: BTreeMap<LimitKey, Lore>,
    /// How long the process was away since its last record, at least.
    pub downtime: Nanos,
    /// When counts of limits were lost, if they were: a limit over a time that
    /// is not among `limits` may have been used up since that time before.
    pub counts_lost_at: Option<Wall>,
    /// Whether this is the first start.
    pub fresh: bool,
}

/// A durable queue.
pub trait Store {
    /// Takes stock after a start. Called once, before anything else.
    fn recover(&mut self, now: &Now) -> Recovered;

    /// Hands work over.
    fn submit(&mut self, now: &Now, work: StoreWork);

    /// Brings what is done by now.
    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>);

    /// When there may be more: the next answer, due time or expiry.
    fn next_completion(&self) -> Mono;

    /// The highest number given to a message so far.
    fn last_seq(&self) -> Seq;

    /// How many messages of its flow are before a waiting message; none if it
    /// is not waiting.
    fn ahead(&self, flow: FlowId, seq: Seq) -> Option<u64>;

    /// Where the content of a live message or a dead letter lies.
    fn parcel(&self, seq: Seq) -> Option<ParcelRef>;

    /// A live message or a dead letter.
    fn find(&self, seq: Seq) -> Option<Found>;

    /// What a flow with live messages or dead letters is called.
    fn flow_key(&self, flow: FlowId) -> Option<&Arc<FlowKey>>;

    /// Live messages and dead letters from `from` on, in order of their numbers;
    /// looks at no more than `looks` of them. Where to go on; none at the end.
    fn scan(&self, from: Seq, looks: usize, found: &mut dyn FnMut(Found)) -> Option<Seq>;

    /// How many messages wait for their time, by flow, for flows with any.
    fn deferred(&self, found: &mut dyn FnMut(FlowId, u64));
}
