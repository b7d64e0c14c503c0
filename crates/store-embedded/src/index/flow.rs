//! One flow in the store: its messages by where they stand.

use std::sync::Arc;

use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;

use super::list::List;
use super::slots::Stand;
use crate::journal::place::Place;

/// Cancellations and moves of a flow that are not durable yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sweeps {
    open: u32,
    /// Of these the lost ones, which will come again.
    lost: u32,
    /// Up to this message nothing is handed out.
    through: Seq,
}

impl Sweeps {
    /// One is on its way, perhaps again.
    pub fn begin(&mut self, through: Seq) {
        if self.lost > 0 {
            self.lost -= 1;
        } else {
            self.open += 1;
        }
        self.through = self.through.max(through);
    }

    /// One did not reach the disk.
    pub fn lose(&mut self) {
        self.lost += 1;
    }

    /// One is durable. Whether it was the last.
    pub fn end(&mut self) -> bool {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            self.through = Seq(0);
        }
        self.open == 0
    }

    /// These too.
    pub fn add(&mut self, more: Self) {
        self.open += more.open;
        self.lost += more.lost;
        self.through = self.through.max(more.through);
    }

    /// Whether a message must not be handed out for now.
    pub fn reach(&self, seq: Seq) -> bool {
        self.open > 0 && seq <= self.through
    }
}

/// The messages of one flow.
#[derive(Debug)]
pub struct Flow {
    pub key: Arc<FlowKey>,
    /// Where its name was last written; nowhere if that is to be done again.
    pub named: Place,
    /// Live messages, wherever they are.
    pub live: u32,
    /// Messages on their way to the disk, at least.
    pub pending: u32,
    /// Dead letters.
    pub dead: u32,
    /// The request to close it; 0 if there is none.
    pub closing: u32,
    /// Whether it is closed, and only its dead letters are left.
    pub is_closed: bool,
    pub fresh: List,
    pub due: List,
    pub later: List,
    pub aside: List,
    /// Handed out, leaving or expiring.
    pub out: List,
    pub sweeps: Sweeps,
    /// Records about the flow as a whole on their way to the disk, also those
    /// that move messages to it.
    pub records: u32,
    /// Messages that the engine will be told of: new ones, and others.
    pub accepted: u32,
    pub ready: u32,
}

impl Flow {
    pub fn new(key: Arc<FlowKey>) -> Self {
        Self {
            key,
            named: Place::NONE,
            live: 0,
            pending: 0,
            dead: 0,
            closing: 0,
            is_closed: false,
            fresh: List::default(),
            due: List::default(),
            later: List::default(),
            aside: List::default(),
            out: List::default(),
            sweeps: Sweeps::default(),
            records: 0,
            accepted: 0,
            ready: 0,
        }
    }

    /// The list of a stand, if there is one.
    pub fn list_mut(&mut self, stand: Stand) -> Option<&mut List> {
        match stand {
            Stand::Fresh => Some(&mut self.fresh),
            Stand::Due => Some(&mut self.due),
            Stand::Later => Some(&mut self.later),
            Stand::Aside => Some(&mut self.aside),
            Stand::Held | Stand::Leaving | Stand::Expiring => Some(&mut self.out),
            Stand::Free | Stand::Dead => None,
        }
    }

    /// Whether it has messages or is about to get some: its name must stay.
    pub fn is_used(&self) -> bool {
        self.live + self.pending + self.dead + self.records > 0
    }

    /// Whether nothing lives in it or is on its way, and nobody is to be told of
    /// it: it has dead letters at most.
    pub fn is_empty(&self) -> bool {
        self.live + self.pending + self.records + self.sweeps.open == 0
            && self.accepted + self.ready == 0
    }

    /// Forgets what a crash forgets.
    pub fn forget(&mut self) {
        *self = Self {
            live: self.live,
            dead: self.dead,
            is_closed: self.live == 0,
            named: self.named,
            ..Self::new(Arc::clone(&self.key))
        };
    }
}
