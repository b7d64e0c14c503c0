//! The node: drains completions, steps the engine, submits actions.
//!
//! No async and no clock: [`Node::turn`] is called with the time, does bounded
//! work and returns when it wants to be called again. Production runs it on one
//! plain thread, the simulator in virtual time.
//!
//! Reading order: [`node`] (the turn), `intake` (new messages on their way to
//! the disk), [`shutdown`] (how a node ends).

mod intake;
pub mod node;
pub mod shutdown;

pub use node::{Node, Ports};
