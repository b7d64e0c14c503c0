//! Who hosts a domain.

use outflow_core::engine::event::Event;
use outflow_core::name::Name;
use outflow_core::time::{Mono, Now};

/// Finds the destination of a domain.
pub trait Resolver {
    /// Asks for a domain; answered by `Resolved`, sooner or later.
    fn submit(&mut self, now: &Now, domain: Name);

    /// Brings what is done by now: `Resolved`.
    fn complete(&mut self, now: &Now, done: &mut Vec<Event>);

    /// When there may be more.
    fn next_completion(&self) -> Mono;
}
