//! The node: drains completions, steps the engine, submits actions.
//!
//! No async and no clock: [`Node::turn`] is called with the time, does bounded
//! work and returns when it wants to be called again. Production runs it on one
//! plain thread, the simulator in virtual time.
//!
//! Reading order: [`node`] (the turn), `intake` (new messages on their way to
//! the disk), `screening` (what is not sent), `observe` (what is told of it), [`shutdown`] (how a node ends);
//! [`handle`] (how other threads speak to a node), `questions` and `changes` (how
//! they are answered), [`thread`] (production's thread, the one place with a
//! clock).

mod changes;
pub mod handle;
mod intake;
pub mod node;
mod observe;
mod questions;
mod screening;
pub mod shutdown;
pub mod thread;

pub use handle::{Handle, Waker};
pub use node::{Node, Ports};
pub use questions::Meters;
