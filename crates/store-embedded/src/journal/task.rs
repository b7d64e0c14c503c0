//! What is handed to the writer, and what comes back.
//!
//! Orders carry the generation in which they were given. A commit that fails
//! takes along everything that was handed over behind it: all orders of that
//! generation are lost, and only the next one, which begins when the failure
//! has been heard of, is written again. So what is lost is always the end, and
//! who appends it again keeps the order.

use std::sync::Arc;

use outflow_core::engine::action::Record;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::Seq;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::intake::Given;
use outflow_ports::store::{BatchId, NewMessage};

use super::entry::{Context, OldKey, Tried};
use super::place::Place;

/// A new message with its number.
#[derive(Debug)]
pub struct Numbered {
    pub given: Given,
    /// The hash of its idempotency key; 0 if it has none.
    pub key: u64,
    pub message: NewMessage,
    /// Where it was written: its entry and its body.
    pub root: Place,
    pub body: Place,
}

/// A living message of an old segment.
#[derive(Clone, Debug)]
pub struct Keep {
    pub seq: Seq,
    pub flow: FlowId,
    pub due_at: Option<Wall>,
    pub tried: Tried,
    /// Where it stood: its entry and the last deferral.
    pub root: Place,
    pub latest: Place,
    /// Where it stands now; nowhere if it could not be read.
    pub now: Place,
}

/// Something to be written.
#[derive(Debug)]
pub enum Task {
    Open {
        flow: FlowId,
        key: Arc<FlowKey>,
        place: Place,
    },
    Accept {
        batch: BatchId,
        messages: Vec<Numbered>,
        /// Whether it is answered with a refusal, in its turn.
        refused: bool,
    },
    Append {
        /// None if the store itself writes a record again.
        no: Option<AppendNo>,
        record: Record,
        context: Context,
        place: Place,
    },
    Forget {
        seqs: Vec<Seq>,
    },
    Keep {
        messages: Vec<Keep>,
    },
    Keys {
        keys: Vec<OldKey>,
        moved: bool,
    },
    /// Bodies go to a new segment from now on.
    Turn,
}

impl Task {
    /// How many records it is.
    pub fn records(&self) -> usize {
        match self {
            Self::Accept { messages, .. } => messages.len().max(1),
            Self::Keep { messages } => messages.len().max(1),
            _ => 1,
        }
    }

    /// About how many bytes it is.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Accept { messages, .. } => {
                let size = |it: &Numbered| it.message.envelope.len() + it.message.body.len();
                messages.iter().map(size).sum()
            }
            Self::Keys { keys, .. } => keys.len() * 32,
            _ => 0,
        }
    }

    /// Whether it takes messages in.
    pub const fn is_intake(&self) -> bool {
        matches!(self, Self::Accept { .. })
    }
}

/// A task and when it was given.
#[derive(Debug)]
pub struct Order {
    pub generation: u64,
    pub task: Task,
}

/// What became of a group of tasks.
#[derive(Debug)]
pub struct Answer {
    /// Each task, and whether it is durable.
    pub tasks: Vec<(Task, bool)>,
    /// The journal is durable up to here.
    pub through: u64,
    /// What was given in this generation or before and is not answered yet will
    /// not be written either; intake for certain, the rest if the disk failed.
    pub lost: u64,
    /// How long the disk took; nothing if it was not asked.
    pub took: Nanos,
}
