//! The node: drains completions, steps the engine, submits actions.
//!
//! No async and no clock: [`Node::turn`] is called with the time, does bounded
//! work and returns when it wants to be called again. Production runs it on one
//! plain thread, the simulator in virtual time.
//!
//! Reading order: [`node`] (the turn), `intake` (new messages on their way to
//! the disk), `observe` (what is told of it), [`shutdown`] (how a node ends).

mod intake;
pub mod node;
mod observe;
pub mod shutdown;

pub use node::{Node, Ports};
