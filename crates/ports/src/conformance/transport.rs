//! What every transport must do.
//!
//! Exactly one answer per delivery is what keeps permits from leaking: the
//! cases count answers over a while, also of deliveries that cannot succeed.

mod cases;
#[cfg(test)]
mod tests;

use outflow_core::account::AccountSpec;
use outflow_core::destination::Destination;
use outflow_core::time::{Mono, Now};

use crate::parcel::ParcelRef;
use crate::transport::Transport;
pub use cases::cases;

/// How a suite drives a transport.
pub trait Harness {
    /// The transport.
    type Transport: Transport;

    /// The transport as it is now.
    fn transport(&mut self) -> &mut Self::Transport;

    /// Both clocks.
    fn now(&self) -> Now;

    /// Time passes up to this moment.
    fn advance(&mut self, to: Mono);

    /// An account that may send.
    fn account(&self) -> AccountSpec;

    /// A destination that takes messages.
    fn destination(&self) -> Destination;

    /// What is delivered, if the transport reads it.
    fn parcel(&self) -> Option<ParcelRef> {
        None
    }

    /// A destination to which no session can be opened, if there is one.
    fn dead_end(&self) -> Option<Destination> {
        None
    }

    /// Whether the transport knows ahead when something will be done. One that
    /// waits for a real network does not.
    fn foretells(&self) -> bool {
        true
    }
}

/// A named case over a fresh transport.
pub type Case<H> = (&'static str, fn(&dyn Fn() -> H));

/// Runs all cases, each over fresh transports.
pub fn exercise<H: Harness>(make: impl Fn() -> H) {
    for (_, case) in cases() {
        case(&make);
    }
}

/// Runs the one case of this name. Whether there is one.
pub fn exercise_one<H: Harness>(name: &str, make: impl Fn() -> H) -> bool {
    let case = cases().into_iter().find(|(of, _)| *of == name);
    if let Some((_, case)) = case {
        case(&make);
    }
    case.is_some()
}
