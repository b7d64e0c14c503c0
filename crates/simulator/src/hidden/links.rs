//! The connections of a sender to a provider that counts them.

use outflow_core::time::Nanos;

use super::sender::Sender;
use super::spec::ConnectionSpec;

/// Open connections. Those that carry nothing at the moment are listed with the
/// number of messages that they have carried.
#[derive(Clone, Debug, Default)]
pub struct Links {
    idle: Vec<u32>,
    open: u32,
}

/// What became of the wish for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// One that has carried so many messages.
    Ready(u32),
    /// The provider refused another.
    Refused,
    /// The sender wants no more of them: wait for one.
    Busy,
}

impl Links {
    /// A connection for the next message.
    pub fn take(&mut self, now: Nanos, spec: &ConnectionSpec, sender: &mut Sender) -> Link {
        while let Some(carried) = self.idle.pop() {
            if carried < sender.messages_max() {
                return Link::Ready(carried);
            }
            self.open -= 1;
        }
        if self.open >= sender.connections_max(now) {
            return Link::Busy;
        }
        if self.open >= spec.max {
            sender.connection_refused(now, self.open);
            return Link::Refused;
        }
        self.open += 1;
        sender.connection_opened(now, self.open);
        Link::Ready(0)
    }

    /// A connection has carried its message and is free again, or is closed
    /// because it carried too many.
    pub fn give_back(&mut self, carried: u32, spec: &ConnectionSpec) {
        if carried > spec.messages {
            self.open = self.open.saturating_sub(1);
        } else {
            self.idle.push(carried);
        }
    }
}
