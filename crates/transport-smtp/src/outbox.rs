//! What sessions tell the node: events, put down in order and fetched at once.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use outflow_core::engine::event::Event;
use outflow_core::handle::{PermitId, SessionRef};
use outflow_core::reply::{Reply, Stage};

/// Has the node look at its ports.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Which opening of a session speaks. Handles are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub session: SessionRef,
    pub no: u64,
}

/// What sessions told and the node has not fetched.
pub(crate) struct Outbox {
    told: Mutex<Vec<(Opening, Event)>>,
    wake: Wake,
}

impl Outbox {
    pub fn new(wake: Wake) -> Self {
        Self {
            told: Mutex::new(Vec::new()),
            wake,
        }
    }

    /// Tells the node. It is woken once for all that it has not fetched.
    pub fn tell(&self, opening: Opening, event: Event) {
        let is_first = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.push((opening, event));
            told.len() == 1
        };
        if is_first {
            (self.wake)();
        }
    }

    /// All that was told.
    pub fn fetch(&self) -> Vec<(Opening, Event)> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut told)
    }

    pub fn is_empty(&self) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.is_empty()
    }
}

/// The duty to answer a delivery, once. Whoever drops it in the middle, even by
/// a panic, has answered: that nothing is known, or, if the message was not begun
/// with, that it was not sent.
pub(crate) struct Duty {
    opening: Opening,
    permit: PermitId,
    outbox: Arc<Outbox>,
    is_begun: bool,
    is_done: bool,
}

impl Duty {
    pub fn new(opening: Opening, permit: PermitId, outbox: Arc<Outbox>) -> Self {
        Self {
            opening,
            permit,
            outbox,
            is_begun: false,
            is_done: false,
        }
    }

    /// From now on the message may reach the far end.
    pub fn begin(&mut self) {
        self.is_begun = true;
    }

    /// The answer.
    pub fn answer(mut self, reply: Reply, session_lives: bool) {
        self.tell(reply, session_lives);
    }

    fn tell(&mut self, reply: Reply, session_lives: bool) {
        self.is_done = true;
        let event = Event::Replied {
            permit: self.permit,
            reply,
            session_lives,
        };
        self.outbox.tell(self.opening, event);
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if !self.is_done {
            let reply = match self.is_begun {
                true => Reply::Uncertain,
                false => closed(),
            };
            self.tell(reply, false);
        }
    }
}

/// What a delivery over a closed session is told.
pub(crate) fn closed() -> Reply {
    let text = Cow::Borrowed("the session is closed");
    let stage = Stage::Connect;
    Reply::Network { stage, text }
}

/// Tells the node that a session is over, however it ends. Where the node knows
/// that already, it is not told again: see the port.
pub(crate) struct Leaving {
    pub opening: Opening,
    pub outbox: Arc<Outbox>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let session = self.opening.session;
        let event = Event::SessionClosed { session };
        self.outbox.tell(self.opening, event);
    }
}
