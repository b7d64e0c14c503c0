//! What carries messages: SMTP, HTTP, the sandbox, a simulated network.

use outflow_core::account::AccountSpec;
use outflow_core::destination::Destination;
use outflow_core::engine::action::Delivery;
use outflow_core::engine::event::Event;
use outflow_core::handle::SessionRef;
use outflow_core::time::{Mono, Now};

use crate::parcel::ParcelRef;

/// Work for a transport.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum TransportWork<'a> {
    /// Open a session; answered by `SessionReady`, or by `SessionRefused` if
    /// somebody said why not, or by `SessionClosed`. It counts against the
    /// account's caps together with those that are still closing, and waits for
    /// them.
    Open {
        session: SessionRef,
        account: &'a AccountSpec,
        destination: &'a Destination,
    },
    /// Close a session. Not answered.
    Close { session: SessionRef },
    /// Deliver a message; answered by exactly one `Replied`.
    Deliver {
        delivery: Delivery,
        parcel: Option<ParcelRef>,
        account: &'a AccountSpec,
        destination: &'a Destination,
    },
}

/// A carrier of messages.
pub trait Transport {
    /// Hands work over.
    fn submit(&mut self, now: &Now, work: TransportWork<'_>);

    /// Brings what is done by now: `SessionReady`, `SessionRefused`,
    /// `SessionClosed`, `Replied`.
    fn complete(&mut self, now: &Now, done: &mut Vec<Event>);

    /// When there may be more.
    fn next_completion(&self) -> Mono;
}
