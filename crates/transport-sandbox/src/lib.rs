//! A transport that takes messages and shows them, for those who have no
//! provider yet, for demonstrations and for tests.
//!
//! Nothing leaves the machine. Each account behaves as it is told, also while
//! messages flow: how long answers take, which share of them fails and how, at
//! which rate it begins to refuse. It has no thread and no clock: answers that
//! are due come when it is asked with the time, so it runs in virtual time as
//! well. A seed decides all that is left to chance.
//!
//! Reading order: [`behaviour`] (what an account does), [`latency`], [`answer`]
//! (what it says), [`kept`] (the last messages), [`handle`] (to look and to
//! change), [`sandbox`] (the transport).

pub mod answer;
pub mod behaviour;
pub mod handle;
pub mod kept;
pub mod latency;
pub mod sandbox;

pub use answer::Answer;
pub use behaviour::{Behaviour, Failure, HiddenRate};
pub use handle::{Counts, SandboxHandle};
pub use kept::Kept;
pub use latency::Latency;
pub use sandbox::{Sandbox, Settings};

#[cfg(test)]
mod tests;
