//! The last messages that the sandbox took.

use std::collections::VecDeque;

use outflow_core::destination::Destination;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::time::{Mono, Wall};
use outflow_ports::parcel::ParcelRef;

/// A message that was taken.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its number.
    pub seq: Seq,
    /// Where its content lay when it was taken.
    pub parcel: Option<ParcelRef>,
    /// Which account took it.
    pub account: Name,
    /// Where it was sent to.
    pub destination: Destination,
    /// When it was accepted.
    pub accepted_at: Wall,
    /// When it was taken.
    pub at: Wall,
    /// The same on the clock by which rates go.
    pub mono: Mono,
    /// How often it was tried before.
    pub attempts: u16,
}

/// The last messages, oldest first.
#[derive(Debug)]
pub(crate) struct Last {
    messages: VecDeque<Kept>,
    max: usize,
}

impl Last {
    pub fn new(max: usize) -> Self {
        Self {
            messages: VecDeque::new(),
            max,
        }
    }

    pub fn keep(&mut self, message: Kept) {
        if self.max == 0 {
            return;
        }
        if self.messages.len() >= self.max {
            self.messages.pop_front();
        }
        self.messages.push_back(message);
    }

    /// Newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Kept> {
        self.messages.iter().rev()
    }
}
