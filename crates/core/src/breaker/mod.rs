//! Circuit breakers: who fails again and again is left alone for a while.
//!
//! A refusal for our rate (429) is not a failure: it says how long to wait, and
//! the account is well. Time-outs, broken connections and errors of the far end
//! are, if nothing else comes for a while: then the account, or the account at
//! that destination, may be suspended or out of order, and every message sent
//! there costs an attempt.
//!
//! In reading order: [`settings`]; [`signal`] (what a reply says about whoever
//! carried it); [`window`] (how many of how many, lately); [`circuit`] (closed,
//! open, half open with one probe); [`refusals`] (too many refusals in a minute:
//! stop for a while).

pub mod circuit;
pub mod refusals;
pub mod settings;
pub mod signal;
pub mod window;

pub use circuit::{Breaker, Change, State};
pub use refusals::Refusals;
pub use settings::BreakerSettings;
pub use signal::Signal;
