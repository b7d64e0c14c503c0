//! One flow in the store: its messages by where they wait.

use std::sync::Arc;

use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;

use super::list::List;
use super::slab::Place;

/// Cancellations and moves that are not durable yet, and of these the lost ones,
/// which will come again. Up to `through` nothing is handed out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweeps {
    pub open: u32,
    pub lost: u32,
    pub through: Seq,
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
}

/// The messages of one flow that are in the store's hands.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub key: Arc<FlowKey>,
    /// Live messages, wherever they are.
    pub live: u32,
    /// Dead letters.
    pub dead: u32,
    /// The request to close it, if there is one.
    pub closing: Option<u32>,
    /// Whether it is closed and only its dead letters are left.
    pub is_closed: bool,
    pub fresh: List,
    pub due: List,
    pub later: List,
    pub aside: List,
    pub sweeps: Sweeps,
    /// Messages that the engine will be told of: new ones, and others.
    pub accepted: u32,
    pub ready: u32,
}

impl Flow {
    pub fn new(key: Arc<FlowKey>) -> Self {
        Self {
            key,
            live: 0,
            dead: 0,
            closing: None,
            is_closed: false,
            fresh: List::default(),
            due: List::default(),
            later: List::default(),
            aside: List::default(),
            sweeps: Sweeps::default(),
            accepted: 0,
            ready: 0,
        }
    }

    /// The queue of a place, if there is one.
    pub fn list_mut(&mut self, place: Place) -> Option<&mut List> {
        match place {
            Place::Fresh => Some(&mut self.fresh),
            Place::Due => Some(&mut self.due),
            Place::Later => Some(&mut self.later),
            Place::Aside => Some(&mut self.aside),
            Place::Held | Place::Leaving | Place::Expiring => None,
        }
    }

    /// Whether a message must not be handed out for now.
    pub fn is_swept(&self, seq: Seq) -> bool {
        self.sweeps.open > 0 && seq <= self.sweeps.through
    }

    /// Forgets what a crash forgets.
    pub fn forget(&mut self) {
        *self = Self {
            live: self.live,
            dead: self.dead,
            is_closed: self.live == 0,
            ..Self::new(Arc::clone(&self.key))
        };
    }
}
